//! Any text as the kernel's description of an event, and any bytes as a record of it.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::event_format(room(), bytes));
