//! Any bytes as `live.json`, which a server reads while a recorder writes it.

#![no_main]

use base::gauges::{Gauges, LIVE_FILE, Look, MOST_SAMPLES, RateLook, Sample};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    kvmscope_fuzz::write(LIVE_FILE, bytes);
    let directory = kvmscope_fuzz::directory();
    let kept = [
        Gauges::<Sample>::read(directory).map(|gauges| gauges.samples.len()),
        Gauges::<RateLook>::read(directory).map(|gauges| gauges.samples.len()),
        Gauges::<Look>::read(directory).map(|gauges| gauges.samples.len()),
    ];
    assert!(kept.iter().flatten().all(|kept| *kept <= MOST_SAMPLES), "more samples than are kept");
});
