//! Any bytes as the result of a program that measures latencies.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::samples(room(), bytes));
