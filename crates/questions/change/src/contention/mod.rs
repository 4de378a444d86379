//! Which threads are starved, by whom, and what would a move change?
//!
//! In: the loads of all threads between two samples ([`host::sched`]). Out: starved threads with those that ran where they
//! wanted to run, and a finding with the move that the model ([`shares`](facts::shares)) prefers.
//! ```text
//! CPU 0   CPU 0/KVM   ran 0.50        vhost-7   ran 0.33, waited 0.61: starvation 0.65
//!         CPU 1/KVM   ran 0.17                  against CPU 0/KVM (0.50), CPU 1/KVM (0.17)
//! CPU 1   idle                        move to CPU 1: would get 0.94
//! ```
//! Who is starved is the question of `facts::starvation`, the same for a host's snapshots (`placement`).

mod advise;
mod section;
pub mod tables;

pub use advise::finding;
pub use section::{Moved, QUESTION, Trial, answer, throughput};

use base::number::percent;
use facts::starvation::is_starved;
use host::sched::Load;

pub use facts::starvation::{FLOOR, STARVED};

/// Id of the Section that the netns loop answers with.
pub const ID: &str = "contention";

/// A thread that waits, and those that run meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Starved<'a> {
    pub thread: &'a Load,
    /// Threads that ran on its CPUs, the busiest first.
    pub against: Vec<&'a Load>,
}

/// The starved threads, the worst first.
pub fn starved(loads: &[Load]) -> Vec<Starved<'_>> {
    let mut found: Vec<Starved<'_>> = loads
        .iter()
        .filter(|load| is_starved(load.run, load.wait))
        .map(|thread| Starved { thread, against: rivals(thread, loads) })
        .collect();
    found.sort_by(|a, b| b.thread.wait.total_cmp(&a.thread.wait).then(a.thread.id.cmp(&b.thread.id)));
    found
}

/// Threads that ran where `thread` may run. One that may run in several places is held against those of its last CPU.
fn rivals<'a>(thread: &Load, loads: &'a [Load]) -> Vec<&'a Load> {
    let mut rivals: Vec<&Load> =
        loads.iter().filter(|other| other.id != thread.id && other.cpu == thread.cpu && other.run > FLOOR).collect();
    rivals.sort_by(|a, b| b.run.total_cmp(&a.run).then(a.id.cmp(&b.id)));
    rivals
}

impl Starved<'_> {
    /// The case in a sentence, with its numbers.
    pub fn sentence(&self) -> String {
        let Load { name, id, cpu, run, wait, .. } = self.thread;
        let against: Vec<String> = self
            .against
            .iter()
            .take(MOST_NAMED)
            .map(|other| format!("{} (thread {}, ran {})", other.name, other.id.tid, percent(other.run)))
            .collect();
        let rest = self.against.len().saturating_sub(MOST_NAMED);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        let against = match against.is_empty() {
            true => "no competing thread ran there: interrupts or steal time took the CPU".to_owned(),
            false => format!("it competes with {}{more}", base::number::list(&against)),
        };
        format!(
            "{name} (thread {}) ran {} and waited {} of the time on CPU {cpu}; {against}",
            id.tid,
            percent(*run),
            percent(*wait)
        )
    }
}

/// Rivals named in a sentence.
const MOST_NAMED: usize = 4;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::CpuSet;
    use host::sched::ThreadId;

    pub(crate) fn load(tid: u32, name: &str, cpu: u32, run: f64, wait: f64) -> Load {
        let id = ThreadId { pid: 1, tid, start_ticks: 1 };
        Load { id, name: name.into(), cpu, allowed: CpuSet::from_iter([cpu]), run, wait }
    }

    #[test]
    fn the_starved_thread_is_named_with_those_that_ran_instead() {
        let loads = [
            load(1, "CPU 0/KVM", 0, 0.62, 0.38),
            load(2, "vhost-1", 0, 0.30, 0.55),
            load(3, "load", 1, 0.90, 0.0),
            load(4, "sleeper", 0, 0.0, 0.0),
        ];
        let found = starved(&loads);
        assert_eq!(found.iter().map(|starved| starved.thread.id.tid).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(
            found[0].sentence(),
            "vhost-1 (thread 2) ran 30.0 % and waited 55.0 % of the time on CPU 0; it competes with CPU 0/KVM (thread 1, ran 62.0 %)"
        );
    }

    #[test]
    fn threads_that_run_when_they_want_are_not_starved_and_neither_is_a_small_one() {
        assert!(starved(&[load(1, "a", 0, 0.99, 0.01), load(2, "b", 0, 0.001, 0.01)]).is_empty());
    }
}
