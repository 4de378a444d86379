//! Any lines as the session of a migration's source, and of its target, all the way to the answer.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::qmp(room(), bytes));
