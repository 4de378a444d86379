//! Any bytes as a trace.dat file.

use crate::room::Room;
use std::path::Path;

/// Panics where a promise is broken by these bytes.
pub fn tracedat(room: &Room, bytes: &[u8]) {
    let cut = |from: &Path, to: &Path, window| trace::tracedat::cut(from, to, window).is_ok();
    room.read_and_cut(&room.write("trace.dat", bytes), cut);
}
