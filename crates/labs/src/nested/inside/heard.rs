//! What has a guest said on its console, and how did it end?
//!
//! What is meant for whoever started the lab is passed on, so that they hear all levels.

use crate::machine::inside::{DONE, FAILED, SAYS, say};
use lab::Error;
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;

/// Lines of the console that an error shows.
const LAST_LINES: usize = 8;

/// What a kernel that panics says before the reason (kernel/panic.c, Linux 6.12). Registers and a stack follow, longer than
/// what is kept.
const PANIC: &str = "Kernel panic - not syncing: ";

#[derive(Default)]
pub(super) struct Heard {
    last: VecDeque<String>,
    done: bool,
    failed: Option<String>,
    panicked: Option<String>,
}

impl Heard {
    /// Takes the next line; breaks once the guest has said its last word.
    pub(super) fn hear(&mut self, line: &str) -> ControlFlow<()> {
        match line.split_once(SAYS).map(|(_, said)| said) {
            Some(DONE) => self.done = true,
            Some(said) => match said.strip_prefix(FAILED) {
                Some(why) => self.failed = Some(why.to_owned()),
                None => say(said),
            },
            None => {}
        }
        if let Some((_, why)) = line.split_once(PANIC) {
            self.panicked.get_or_insert_with(|| why.to_owned());
        }
        self.last.push_back(line.to_owned());
        self.last.drain(..self.last.len().saturating_sub(LAST_LINES));
        if self.last_word() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether the guest has said its last word.
    pub(super) fn last_word(&self) -> bool {
        self.done || self.failed.is_some()
    }

    /// How the machine of level `guest` ended, whose VMM ended with `how`.
    ///
    /// # Errors
    /// If it failed, or never said that it was done.
    pub(super) fn end(self, guest: u8, how: impl fmt::Display) -> Result<(), Error> {
        match self.failed {
            Some(why) => Err(Error::Died(format!("L{guest}: {why}"))),
            None if self.done => Ok(()),
            None => {
                if let Some(why) = self.panicked {
                    return Err(Error::Died(format!("the kernel of L{guest} panicked ({how}): {why}")));
                }
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
        let silent = end(&["Booting", "Rebooting"]).unwrap_err();
        assert!(silent.ends_with("(exit status: 0): Booting | Rebooting"), "{silent}");
        let stack = ["[ 4.9] Kernel panic - not syncing: No working init found.", "[ 4.9] CPU: 0 PID: 1"];
        let panicked = end(&stack.into_iter().chain([" dump_stack_lvl+0x44"; 20]).collect::<Vec<_>>()).unwrap_err();
        assert!(panicked.ends_with("the kernel of L1 panicked (exit status: 0): No working init found."), "{panicked}");
    }
}
