//! Any bytes as `live.json`, which a server reads while a recorder writes it.

use crate::room::Room;
use base::gauges::{Gauges, LIVE_FILE, Look, MOST_SAMPLES, RateLook, Sample};

/// Panics where a promise is broken by these bytes.
pub fn live(room: &Room, bytes: &[u8]) {
    room.write(LIVE_FILE, bytes);
    let directory = room.path();
    let kept = [
        Gauges::<Sample>::read(directory).map(|gauges| gauges.samples.len()),
        Gauges::<RateLook>::read(directory).map(|gauges| gauges.samples.len()),
        Gauges::<Look>::read(directory).map(|gauges| gauges.samples.len()),
    ];
    assert!(kept.iter().flatten().all(|kept| *kept <= MOST_SAMPLES), "more samples than are kept");
}
