//! Any bytes as a trace.dat file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    kvmscope_fuzz::read_everything(&kvmscope_fuzz::write("trace.dat", bytes));
});
