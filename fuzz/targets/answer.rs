//! Any bytes as a trace of any format, all the way to the answer: the ledgers must close whatever the events say.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::answer(room(), bytes));
