//! Any bytes as the metadata of a CTF 1.8 trace, plain or in packets, over a stream of a few plausible packets.

use crate::room::{Room, read_everything};

/// CTF 1.8.3, section 5: the magic number, then bytes that may be anything.
fn stream() -> Vec<u8> {
    let mut bytes = 0xc1fc_1fc1_u32.to_le_bytes().to_vec();
    bytes.extend((0..2044_u32).map(|at| ((at * 7) >> 3) as u8));
    bytes
}

/// Panics where a promise is broken by these bytes; false if they are of no use here.
pub fn ctf_metadata(room: &Room, bytes: &[u8]) -> bool {
    // A record separator begins CTF 2.
    if bytes.first() == Some(&0x1e) {
        return false;
    }
    room.write("stream", &stream());
    room.write("metadata", bytes);
    read_everything(room.path());
    true
}
