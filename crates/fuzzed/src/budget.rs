//! Any text as the TOML of a latency budget.

use crate::room::Room;
use analysis::facts::budget::Budget;

/// Panics where a promise is broken by these bytes.
pub fn budget(_room: &Room, bytes: &[u8]) {
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
}
