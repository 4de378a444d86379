//! Any bytes as what somebody brings, which is pasted by strangers.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::brought(room(), bytes));
