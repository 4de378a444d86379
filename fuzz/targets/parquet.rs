//! Any bytes as a part of a data set, which comes from other hosts.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::parquet(room(), bytes));
