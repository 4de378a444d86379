//! Any text as what Open vSwitch and testpmd print of the packets they forward.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::polled(room(), bytes));
