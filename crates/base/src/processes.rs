//! What the operating system told of the QEMUs of both sides while a guest was moved: `<machine>/processes/<name>.json`.
//!
//! A VMM cannot say that it was stopped, that its thread waited for a CPU, or that it was killed.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema this version reads and writes.
pub const SCHEMA: &str = "kvmscope-processes/1";

/// An hour of looks, fifty a second at both sides, is some 40 MB; a migration of a lab is over in minutes.
const MOST_BYTES: u64 = 64 << 20;

/// Both sides of one move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processes {
    /// [`SCHEMA`].
    pub schema: String,
    /// From when on they were looked at, CLOCK_REALTIME.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// The one that the guest was on.
    pub source: Process,
    /// The one that it was to go to.
    pub target: Process,
}

/// One process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// In order of time.
    pub looks: Vec<Look>,
    /// How it ended, if it did before it was told to.
    pub ended: Option<Ended>,
    /// What it complained of.
    pub words: String,
}

/// What one look showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// CLOCK_REALTIME.
    pub at_ns: u64,
    /// A signal has stopped it (state T of proc_pid_stat(5)).
    pub is_stopped: bool,
    /// The thread that moves memory, where there is one by then.
    pub mover: Option<Mover>,
}

/// A thread that moves memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mover {
    /// Its name.
    pub name: String,
    /// The CPU that it ran on last.
    pub cpu: u32,
    /// How long it has had a CPU since it began (`schedstat`).
    pub run_ns: u64,
    /// How long it has waited for one since then. The kernel adds a wait once it is over, which nobody sees of a thread that then ends.
    pub wait_ns: u64,
    /// Ready, and without a CPU since the look before.
    #[serde(default)]
    pub stands: bool,
    /// Where it was ready and had not run since the look before: which other threads ran or were ready on its CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<String>,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When that was seen, CLOCK_REALTIME.
    pub at_ns: u64,
    /// As waitpid(2) tells: `signal: 9 (SIGKILL)`, `exit status: 1`.
    pub how: String,
}

impl Process {
    /// For how long it stood stopped by a signal, as far as looks tell, and when that began; the longest such time.
    pub fn stopped(&self) -> Option<(u64, u64)> {
        let stops = self.looks.split(|look| !look.is_stopped);
        let lengths = stops.filter_map(|stop| {
            let (first, last) = (stop.first()?, stop.last()?);
            Some((first.at_ns, last.at_ns.saturating_sub(first.at_ns)))
        });
        lengths.filter(|(_, length_ns)| *length_ns > 0).max_by_key(|(_, length_ns)| *length_ns)
    }

    /// Who was on the CPU of its mover while that waited there, whoever was most often first.
    pub fn instead(&self) -> Vec<&str> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let movers = self.looks.iter().filter_map(|look| look.mover.as_ref());
        movers.flat_map(|mover| &mover.instead).for_each(|name| *seen.entry(name).or_default() += 1);
        let mut names: Vec<(&str, usize)> = seen.into_iter().collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        names.into_iter().map(|(name, _)| name).collect()
    }

    /// What its mover did from `from_ns` to `to_ns`, as the looks around that tell: ran and waited.
    pub fn moved(&self, from_ns: u64, to_ns: u64) -> Option<(u64, u64)> {
        let movers = || self.looks.iter().filter_map(|look| Some((look.at_ns, look.mover.as_ref()?)));
        let (_, last) = movers().find(|(at_ns, _)| *at_ns >= to_ns).or(movers().next_back())?;
        // A thread that was not there before began with nothing.
        let first = movers().take_while(|(at_ns, _)| *at_ns <= from_ns).last();
        let (run_ns, wait_ns) = first.map_or((0, 0), |(_, mover)| (mover.run_ns, mover.wait_ns));
        let stood_ns = self.looks.windows(2).filter_map(|pair| {
            let [before, look] = pair else { return None };
            let is_in = from_ns <= before.at_ns && look.at_ns <= to_ns;
            (is_in && look.mover.as_ref()?.stands).then(|| look.at_ns.saturating_sub(before.at_ns))
        });
        let waited_ns = last.wait_ns.checked_sub(wait_ns)?.max(stood_ns.sum());
        Some((last.run_ns.checked_sub(run_ns)?, waited_ns))
    }
}

crate::json_line::read_and_write!(Processes);

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_ns: u64, is_stopped: bool, times: Option<(u64, u64)>) -> Look {
        let mover = times.map(|(run_ns, wait_ns)| Mover {
            name: "live_migration".into(),
            cpu: 0,
            run_ns,
            wait_ns,
            stands: false,
            instead: Vec::new(),
        });
        Look { at_ns, is_stopped, mover }
    }

    #[test]
    fn the_longest_stop_counts_and_one_look_is_none() {
        let process = |stopped: &[u64]| Process {
            looks: (0..10).map(|at_ns| look(at_ns, stopped.contains(&at_ns), None)).collect(),
            ..Process::default()
        };
        assert_eq!(process(&[1, 2, 5, 6, 7, 9]).stopped(), Some((5, 2)));
        assert_eq!(process(&[3]).stopped(), None);
    }

    #[test]
    fn what_the_mover_did_is_the_difference_of_the_looks_around() {
        let looks = vec![look(0, false, None), look(10, false, Some((4, 1))), look(20, false, Some((6, 9)))];
        let process = Process { looks, ..Process::default() };
        assert_eq!(process.moved(12, 18), Some((2, 8)));
        assert_eq!(process.moved(0, 15), Some((6, 9)), "it began in between");
        assert_eq!(process.moved(30, 40), Some((0, 0)));
        let mut process = process;
        process.looks.iter_mut().skip(2).filter_map(|look| look.mover.as_mut()).for_each(|mover| mover.stands = true);
        assert_eq!(process.moved(0, 20), Some((6, 10)), "it stood for a whole look, whatever was added until then");
    }
}
