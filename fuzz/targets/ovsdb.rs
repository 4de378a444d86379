//! Any text as Open vSwitch's database, a log of JSON transactions.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::ovsdb(room(), bytes));
