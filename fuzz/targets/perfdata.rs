//! Any bytes as a perf.data file, in either byte order.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if !bytes.starts_with(b"PERFILE2") && !bytes.starts_with(b"2ELIFREP") {
        return Corpus::Reject;
    }
    let cut = |from: &Path, to: &Path, window| trace::perfdata::cut(from, to, window).is_ok();
    kvmscope_fuzz::read_and_cut(&kvmscope_fuzz::write("perf.data", bytes), cut);
    Corpus::Keep
});
