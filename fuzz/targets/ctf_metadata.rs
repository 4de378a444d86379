//! Any bytes as the metadata of a CTF 1.8 trace, plain or in packets, over a stream of a few plausible packets.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

/// CTF 1.8.3, section 5: the magic number, then bytes that may be anything.
fn stream() -> Vec<u8> {
    let mut bytes = 0xc1fc_1fc1_u32.to_le_bytes().to_vec();
    bytes.extend((0..2044_u32).map(|at| (at * 7 >> 3) as u8));
    bytes
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    // A record separator begins CTF 2.
    if bytes.first() == Some(&0x1e) {
        return Corpus::Reject;
    }
    kvmscope_fuzz::write("stream", &stream());
    kvmscope_fuzz::write("metadata", bytes);
    kvmscope_fuzz::read_everything(kvmscope_fuzz::directory());
    Corpus::Keep
});
