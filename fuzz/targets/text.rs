//! Any bytes as what `trace-cmd report`, ftrace or `perf script` print.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    // Formats with a magic number have targets of their own.
    if bytes.starts_with(b"PERFILE2") || bytes.starts_with(b"\x17\x08\x44") {
        return Corpus::Reject;
    }
    let cut = |from: &Path, to: &Path, window| matches!(trace::text::cut(from, to, window), Ok(Some(_)));
    kvmscope_fuzz::read_and_cut(&kvmscope_fuzz::write("trace.txt", bytes), cut);
    Corpus::Keep
});
