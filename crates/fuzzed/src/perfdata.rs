//! Any bytes as a perf.data file, in either byte order.

use crate::room::Room;
use std::path::Path;

/// Panics where a promise is broken by these bytes; false if they are of no use here.
pub fn perfdata(room: &Room, bytes: &[u8]) -> bool {
    if !bytes.starts_with(b"PERFILE2") && !bytes.starts_with(b"2ELIFREP") {
        return false;
    }
    let cut = |from: &Path, to: &Path, window| trace::perfdata::cut(from, to, window).is_ok();
    room.read_and_cut(&room.write("perf.data", bytes), cut);
    true
}
