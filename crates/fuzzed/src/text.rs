//! Any bytes as what `trace-cmd report`, ftrace or `perf script` print.

use crate::room::Room;
use std::path::Path;

/// Panics where a promise is broken by these bytes; false if they are of no use here.
pub fn text(room: &Room, bytes: &[u8]) -> bool {
    // Formats with a magic number have targets of their own.
    if bytes.starts_with(b"PERFILE2") || bytes.starts_with(b"\x17\x08\x44") {
        return false;
    }
    let cut = |from: &Path, to: &Path, window| matches!(trace::text::cut(from, to, window), Ok(Some(_)));
    room.read_and_cut(&room.write("trace.txt", bytes), cut);
    true
}
