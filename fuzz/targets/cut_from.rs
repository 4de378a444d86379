//! Any bytes as `cut-from.json` beside a small trace, all the way to the answer.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::cut_from(room(), bytes));
