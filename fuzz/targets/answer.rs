//! Any bytes as a trace of any format, all the way to the answer: the ledgers must close whatever the events say.

#![no_main]

use base::recording::Recording;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = kvmscope_fuzz::write("trace", bytes);
    if let Ok(recording) = Recording::open(&path) {
        kvmscope_fuzz::answer(recording);
    }
});
