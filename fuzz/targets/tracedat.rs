//! Any bytes as a trace.dat file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let cut = |from: &Path, to: &Path, window| trace::tracedat::cut(from, to, window).is_ok();
    kvmscope_fuzz::read_and_cut(&kvmscope_fuzz::write("trace.dat", bytes), cut);
});
