//! What has a guest said on its console, and how did it end?
//!
//! What is meant for whoever started the lab is passed on, so that they hear all levels.

use super::{DONE, FAILED, SAYS};
use crate::Error;
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;

/// Lines of the console that an error shows.
const LAST_LINES: usize = 8;

/// What was heard so far.
#[derive(Default)]
pub struct Heard {
    last: VecDeque<String>,
    done: bool,
    failed: Option<String>,
}

impl Heard {
    /// Takes the next line; breaks once the guest has said its last word.
    pub fn hear(&mut self, line: &str) -> ControlFlow<()> {
        match line.split_once(SAYS).map(|(_, said)| said) {
            Some(DONE) => self.done = true,
            Some(said) => match said.strip_prefix(FAILED) {
                Some(why) => self.failed = Some(why.to_owned()),
                None => super::say(said),
            },
            None => {}
        }
        self.last.push_back(line.to_owned());
        self.last.drain(..self.last.len().saturating_sub(LAST_LINES));
        if self.last_word() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether the guest has said its last word.
    pub fn last_word(&self) -> bool {
        self.done || self.failed.is_some()
    }

    /// How the machine of level `guest` ended, whose VMM ended with `how`.
    ///
    /// # Errors
    /// If it failed, or never said that it was done.
    pub fn end(self, guest: u8, how: impl fmt::Display) -> Result<(), Error> {
        match self.failed {
            Some(why) => Err(Error::Died(format!("L{guest}: {why}"))),
            None if self.done => Ok(()),
            None => {
                let last: Vec<_> = self.last.into_iter().collect();
                Err(Error::Died(format!("L{guest} ended without being done ({how}): {}", last.join(" | "))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_what_the_guest_said_last_or_what_its_console_shows() {
        let end = |lines: &[&str]| {
            let mut heard = Heard::default();
            let _ = lines.iter().try_for_each(|line| heard.hear(line));
            heard.end(1, "exit status: 0").map_err(|error| error.to_string())
        };
        assert_eq!(end(&["noise", "kvmscope lab: done", "kvmscope lab: failed: never heard"]), Ok(()));
        assert_eq!(end(&["[ 1.0] kvmscope lab: failed: no kvm"]), Err("L1: no kvm".to_owned()));
        let panicked = end(&["Kernel panic", "Rebooting"]).unwrap_err();
        assert!(panicked.ends_with("(exit status: 0): Kernel panic | Rebooting"), "{panicked}");
    }
}
