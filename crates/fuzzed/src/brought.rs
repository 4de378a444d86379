//! Any bytes as what somebody brings: made plain, split into pieces, each answered by its reader.

use crate::room::{self, Room};
use intake::{Normal, split};

/// Panics where a promise is broken by these bytes.
pub fn brought(room: &Room, bytes: &[u8]) {
    let path = room.write("brought.txt", bytes);
    let normal = Normal::of(bytes);
    let (lines, written) = (normal.lines.len(), |text: &str| !text.trim().is_empty());
    let told = split(normal);
    // Every line is in a piece, typed, or told to be nobody's; a joined one holds several.
    let in_pieces = told.pieces.iter().flat_map(|piece| &piece.lines).filter(|line| written(&line.text)).count();
    assert!(told.rest.len() + told.commands.len() <= lines, "no line is told twice");
    assert!(in_pieces <= 2 * lines, "what a switch prints tells of the machine too");
    let scratch = tempfile::tempdir_in(room.path()).expect("a directory to write to");
    let parted = intake::parted(&path).ok().flatten();
    if let Some(Ok(brought)) = parted.map(|split| intake::open(split, &path, &path, scratch.path())) {
        brought.recordings.into_iter().for_each(room::answer);
    }
}
