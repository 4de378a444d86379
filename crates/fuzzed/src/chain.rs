//! Any text as the TOML of a planned chain.

use crate::room::Room;
use analysis::datapath::read;

/// Panics where a promise is broken by these bytes.
pub fn chain(_room: &Room, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match read("f", &text) {
        Ok(stated) => {
            assert!(!stated.chains.is_empty() && !stated.frames.is_empty(), "a plan of nothing");
            stated.plan().expect("what is read is complete");
        }
        Err(error) => {
            let line = text.split('\n').nth(error.line - 1).expect("a line of the text");
            assert!(error.column <= line.chars().count() + 1, "{error}");
            assert!(!error.to_string().contains('\n'), "more than a line");
        }
    }
}
