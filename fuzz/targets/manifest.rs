//! Any bytes as the manifest of a recording.

#![no_main]

use base::recording::{MANIFEST, Recording};
use libfuzzer_sys::fuzz_target;
use std::path::Component;

fuzz_target!(|bytes: &[u8]| {
    kvmscope_fuzz::write(MANIFEST, bytes);
    let Ok(recording) = Recording::open(kvmscope_fuzz::directory()) else { return };
    for part in &recording.parts {
        let climbs = part.path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
        assert!(!climbs, "a part outside the recording: {}", part.path.display());
    }
});
