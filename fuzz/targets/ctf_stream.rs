//! Any bytes as a stream of a CTF trace whose metadata came with it.
//!
//! An input is the length of the metadata in four bytes, the metadata, and the stream. So metadata and stream fit each
//! other in the seeds, and each can be damaged alone.

#![no_main]

use base::Span;
use libfuzzer_sys::{Corpus, fuzz_target};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Corpus::Reject };
    let length = u32::from_le_bytes(*length) as usize;
    let Some((metadata, stream)) = rest.split_at_checked(length) else { return Corpus::Reject };
    kvmscope_fuzz::write("metadata", metadata);
    kvmscope_fuzz::write("stream", stream);
    let cut = |from: &Path, to: &Path, window: Span| {
        trace::ctf::cut(from, to, window.from_ns, window.to_ns).is_ok_and(|cut| cut.events > 0)
    };
    kvmscope_fuzz::read_and_cut(kvmscope_fuzz::directory(), cut);
    Corpus::Keep
});
