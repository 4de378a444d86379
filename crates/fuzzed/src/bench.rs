//! Any bytes as the results of a bench.

use crate::room::Room;
use base::bench::Bench;

/// Panics where a promise is broken by these bytes.
pub fn bench(room: &Room, bytes: &[u8]) {
    let path = room.write("bench.json", bytes);
    let Ok(bench) = Bench::read(&path) else { return };
    for result in &bench.results {
        result.distribution();
    }
}
