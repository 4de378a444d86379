//! Any bytes as the files of a machine that another tool has gathered, all the way to the answer about placement.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::sosreport(room(), bytes));
