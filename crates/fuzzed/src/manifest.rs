//! Any bytes as the manifest of a recording.

use crate::room::Room;
use base::recording::{MANIFEST, Recording};
use std::path::Component;

/// Panics where a promise is broken by these bytes.
pub fn manifest(room: &Room, bytes: &[u8]) {
    room.write(MANIFEST, bytes);
    let Ok(recording) = Recording::open(room.path()) else { return };
    for part in &recording.parts {
        let climbs = part.path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
        assert!(!climbs, "a part outside the recording: {}", part.path.display());
    }
}
