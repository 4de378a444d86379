//! Any bytes as an archive: plain, or packed by gzip, xz or zstd.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::archive(room(), bytes));
