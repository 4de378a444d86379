//! Any bytes as `live.json`, which a server reads while a recorder writes it.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::live(room(), bytes));
