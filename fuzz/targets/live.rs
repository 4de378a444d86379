//! Any bytes as `live.json`, which a server reads while a recorder writes it.

#![no_main]

use base::gauges::{Gauges, LIVE_FILE, MOST_SAMPLES};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    kvmscope_fuzz::write(LIVE_FILE, bytes);
    let Ok(gauges) = Gauges::read(kvmscope_fuzz::directory()) else { return };
    assert!(gauges.samples.len() <= MOST_SAMPLES, "more samples than are kept");
});
