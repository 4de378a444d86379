//! Any text as the TOML of a latency budget.

#![no_main]

use analysis::facts::budget::Budget;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match Budget::read("f", &text) {
        Ok(budget) => {
            assert!(!budget.goals.is_empty(), "a budget without goals");
            for goal in &budget.goals {
                assert!(goal.limit_ns > 0, "a limit of nothing");
                assert_eq!(goal.window_ns.is_some(), goal.metric.has_window(), "{goal:?}");
            }
        }
        Err(error) => {
            let line = text.split('\n').nth(error.line - 1).expect("a line of the text");
            assert!(error.column <= line.chars().count() + 1, "{error}");
            assert!(!error.to_string().contains('\n'), "more than a line");
        }
    }
});
