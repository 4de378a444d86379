//! Which process made an entry, and does it still run?

use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A process. Pids are used again, so the time it was started belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub pid: u32,
    /// Clock ticks from boot to its start: field 22 of `/proc/PID/stat`, proc_pid_stat(5).
    pub start_ticks: u64,
}

impl Owner {
    /// This process.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn this(proc: &Path) -> Result<Self, Error> {
        Self::of(proc, std::process::id())
    }

    /// The process with that pid.
    ///
    /// # Errors
    /// If it is not there.
    pub fn of(proc: &Path, pid: u32) -> Result<Self, Error> {
        let path = proc.join(pid.to_string()).join("stat");
        let text = std::fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
        let start_ticks = start_ticks(&text);
        let start_ticks =
            start_ticks.ok_or_else(|| Error::Malformed(format!("{}: no start time in it", path.display())))?;
        Ok(Self { pid, start_ticks })
    }

    /// True if this very process runs; one that has ended and was not yet waited for does not.
    pub fn is_alive(&self, proc: &Path) -> bool {
        let stat = std::fs::read_to_string(proc.join(self.pid.to_string()).join("stat")).unwrap_or_default();
        start_ticks(&stat) == Some(self.start_ticks) && !has_ended(&stat)
    }

    /// True while any thread of this very process runs. A killed process is a zombie as soon as its first thread has ended, and
    /// holds its memory and its files until the last has.
    pub(super) fn has_threads(&self, proc: &Path) -> bool {
        let stat = std::fs::read_to_string(proc.join(self.pid.to_string()).join("stat")).unwrap_or_default();
        let others = || field(&stat, 20).is_some_and(|threads| threads != "0" && threads != "1");
        start_ticks(&stat) == Some(self.start_ticks) && (!has_ended(&stat) || others())
    }
}

/// By its state, proc_pid_stat(5): a zombie, or dead.
fn has_ended(stat: &str) -> bool {
    matches!(field(stat, 3), Some("Z" | "X"))
}

fn start_ticks(stat: &str) -> Option<u64> {
    field(stat, 22)?.parse().ok()
}

/// Field `number`, 3 or more, counted from 1. The second is the program's name in parentheses, which may hold any character.
fn field(stat: &str, number: usize) -> Option<&str> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(number - 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_is_not_alive_and_its_other_threads_are_waited_for() {
        let proc = tempfile::tempdir().unwrap();
        std::fs::create_dir(proc.path().join("7")).unwrap();
        let owner = Owner { pid: 7, start_ticks: 4711 };
        let seen = |state: &str, threads: u32| {
            let stat = format!("7 (ovs) {state} 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 4711 9 9");
            std::fs::write(proc.path().join("7/stat"), stat).unwrap();
            (owner.is_alive(proc.path()), owner.has_threads(proc.path()))
        };
        assert_eq!([seen("S", 1), seen("Z", 4), seen("Z", 1)], [(true, true), (false, true), (false, false)]);
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_moves_no_field() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        assert_eq!((field(stat, 3), start_ticks(stat)), (Some("S"), Some(4711)));
    }
}
