//! Any text as the TOML of a planned chain.

#![no_main]

use analysis::datapath::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
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
});
