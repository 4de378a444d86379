//! Any text as what people paste into tickets: read, judged and shown.

use crate::room::Room;
use analysis::placement::{Wishes, build, section::section};

/// Panics where a promise is broken by these bytes.
pub fn paste(_room: &Room, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let machine = host::paste::read(&[("ticket".to_owned(), text)]);
    section(&[build::model(base::Level::L0, "L0", machine, true, &Wishes::default())]);
}
