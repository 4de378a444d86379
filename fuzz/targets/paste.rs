//! Any text as what people paste into tickets: read, judged and shown.

#![no_main]

use analysis::placement::{Wishes, build, section::section};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let machine = host::paste::read(&[("ticket".to_owned(), text)]);
    section(&[build::model(base::Level::L0, "L0", machine, true, &Wishes::default())]);
});
