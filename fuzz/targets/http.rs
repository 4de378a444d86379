//! Any bytes as a request of HTTP, sent to a server over a folder of one small recording.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::http(room(), bytes));
