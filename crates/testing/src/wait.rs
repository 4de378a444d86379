//! Waiting for a state: a test that waits for a time is wrong on a slower machine.

use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

/// Far longer than anything takes on a loaded machine: it ends a test that would never end, and is no measure.
const PATIENCE: Duration = Duration::from_secs(120);

const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until it is true.
///
/// # Panics
/// If it never is; the message names `what` was awaited.
#[track_caller]
pub fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    wait_for_value(what, || is_there().then_some(()));
}

/// Waits until there is a value, and gives it.
///
/// # Panics
/// If there never is one; the message names `what` was awaited.
#[track_caller]
pub fn wait_for_value<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < deadline, "awaited in vain: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Reads lines until one contains `words`; gives all up to there, and the rest unread.
///
/// # Panics
/// If the output ends before.
#[track_caller]
pub fn wait_for_output<R: Read>(output: R, words: &str) -> (Vec<String>, BufReader<R>) {
    let mut reader = BufReader::new(output);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        let read = reader.read_line(&mut line).expect("output that can be read");
        assert!(read > 0, "it ended before it said {words:?}, having said:\n{}", lines.concat());
        lines.push(line);
        if lines.last().is_some_and(|line| line.contains(words)) {
            return (lines, reader);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_about_is_awaited_and_what_was_printed_until_then_is_given() {
        let mut looks = 0;
        let value = wait_for_value("the third look", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(value, 3);
        let (lines, mut rest) = wait_for_output(&b"one\nit is ready\nthree\n"[..], "ready");
        assert_eq!(lines, ["one\n", "it is ready\n"]);
        let mut after = String::new();
        rest.read_to_string(&mut after).unwrap();
        assert_eq!(after, "three\n");
    }

    #[test]
    #[should_panic(expected = "it ended before it said \"ready\", having said:\none\n")]
    fn an_output_that_ends_early_says_what_it_said() {
        let _ = wait_for_output(&b"one\n"[..], "ready");
    }
}
