//! Any text as what people paste into tickets: read, judged and shown.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::paste(room(), bytes));
