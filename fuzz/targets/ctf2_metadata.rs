//! Any bytes as the metadata of a CTF 2 trace: JSON fragments, each behind a record separator (RFC 7464).

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if bytes.first() != Some(&0x1e) {
        return Corpus::Reject;
    }
    let stream: Vec<u8> = (0..2048_u32).map(|at| (at * 5 >> 2) as u8).collect();
    kvmscope_fuzz::write("stream", &stream);
    kvmscope_fuzz::write("metadata", bytes);
    kvmscope_fuzz::read_everything(kvmscope_fuzz::directory());
    Corpus::Keep
});
