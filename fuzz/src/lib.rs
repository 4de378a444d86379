//! What all targets hand to `fuzzed`: room for their files, the same for all inputs of a process.

use fuzzed::Room;
use libfuzzer_sys::Corpus;
use std::sync::OnceLock;

/// The target's room.
pub fn room() -> &'static Room {
    static ROOM: OnceLock<Room> = OnceLock::new();
    ROOM.get_or_init(Room::empty)
}

/// Whether an input is worth keeping.
pub fn corpus(is_of_use: bool) -> Corpus {
    if is_of_use { Corpus::Keep } else { Corpus::Reject }
}
