//! Any bytes as an entry of the journal, whose steps `kvmscope undo` reverts as root.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::journal(room(), bytes));
