//! Any bytes as the results of a bench.

#![no_main]

use base::bench::Bench;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = kvmscope_fuzz::write("bench.json", bytes);
    let Ok(bench) = Bench::read(&path) else { return };
    for result in &bench.results {
        result.distribution();
    }
});
