//! Any bytes as the metadata of a CTF 2 trace: JSON fragments, each behind a record separator (RFC 7464).

use crate::room::{Room, read_everything};

/// Panics where a promise is broken by these bytes; false if they are of no use here.
pub fn ctf2_metadata(room: &Room, bytes: &[u8]) -> bool {
    if bytes.first() != Some(&0x1e) {
        return false;
    }
    let stream: Vec<u8> = (0..2048_u32).map(|at| ((at * 5) >> 2) as u8).collect();
    room.write("stream", &stream);
    room.write("metadata", bytes);
    read_everything(room.path());
    true
}
