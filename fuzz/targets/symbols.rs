//! Any bytes as a kernel's symbols, `/proc/kallsyms` or `System.map`, and behind the first zero byte as its `/proc/modules`.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::symbols(room(), bytes));
