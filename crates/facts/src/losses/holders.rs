//! Which task had a CPU lately?
//!
//! ```text
//! changes of a CPU   o--o-o---o--o----o--o-o--o---> now
//!                          ^ a vCPU thread was woken, and waits: what came since then is kept until it runs
//! ```

use base::Span;
use std::collections::{BTreeSet, VecDeque};

/// Changes that are kept of each CPU in any case: a wait may be told a little after it is over.
const LEAST_CHANGES: usize = 64;

/// Most changes that are kept of all CPUs together, 64 MiB of them: a thread of which nothing tells any more that it waits must not fill the
/// memory. A CPU that changes its task 10,000 times a second has as many in seven minutes.
const MOST_CHANGES: usize = 1 << 22;

/// Which task has each CPU, and had it before; `None` where nothing shows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Holders {
    cpus: Vec<VecDeque<(u64, Option<i32>)>>,
    /// Since when which threads wait, the first one first.
    waiting: BTreeSet<(u64, usize)>,
    /// By thread.
    since_ns: Vec<Option<u64>>,
}

impl Holders {
    /// From `at_ns` on task `tid` has `cpu`.
    pub(super) fn has_cpu(&mut self, cpu: usize, tid: Option<i32>, at_ns: u64) {
        if cpu >= self.cpus.len() {
            self.cpus.resize_with(cpu + 1, VecDeque::new);
        }
        let most = (MOST_CHANGES / self.cpus.len()).max(LEAST_CHANGES);
        let changes = &mut self.cpus[cpu];
        if changes.back().is_some_and(|(_, last)| *last == tid) {
            return;
        }
        let wanted_ns = self.waiting.first().map_or(u64::MAX, |(since_ns, _)| *since_ns);
        // The first one is over where the second one begins.
        while changes.len() >= most || changes.len() >= LEAST_CHANGES && changes[1].0 <= wanted_ns {
            changes.pop_front();
        }
        changes.push_back((at_ns, tid));
    }

    /// The thread waits for a CPU since then, or no longer.
    pub(super) fn waits(&mut self, thread: usize, since_ns: Option<u64>) {
        if thread >= self.since_ns.len() {
            if since_ns.is_none() {
                return;
            }
            self.since_ns.resize(thread + 1, None);
        }
        let before = std::mem::replace(&mut self.since_ns[thread], since_ns);
        if let Some(before_ns) = before {
            self.waiting.remove(&(before_ns, thread));
        }
        if let Some(since_ns) = since_ns {
            self.waiting.insert((since_ns, thread));
        }
    }

    /// Who had `cpu` in `span`, which is not over for long.
    pub(super) fn before(&self, cpu: usize, span: Span) -> Vec<(Option<i32>, Span)> {
        let Some(changes) = self.cpus.get(cpu) else { return Vec::new() };
        let mut held = Vec::new();
        let mut to_ns = span.to_ns;
        for (since_ns, tid) in changes.iter().rev().filter(|(since_ns, _)| *since_ns < span.to_ns) {
            held.push((*tid, Span { from_ns: (*since_ns).max(span.from_ns), to_ns }));
            to_ns = (*since_ns).max(span.from_ns);
            if *since_ns <= span.from_ns {
                break;
            }
        }
        held.reverse();
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from_ns: u64, to_ns: u64) -> Span {
        Span { from_ns, to_ns }
    }

    #[test]
    fn those_who_had_the_cpu_are_named_in_order_and_what_was_forgotten_is_not() {
        let mut holders = Holders::default();
        for (at_ns, tid) in [(10, Some(1)), (20, Some(2)), (25, Some(2)), (30, None), (40, Some(3))] {
            holders.has_cpu(1, tid, at_ns);
        }
        assert_eq!(
            holders.before(1, span(15, 40)),
            [(Some(1), span(15, 20)), (Some(2), span(20, 30)), (None, span(30, 40))]
        );
        assert_eq!(holders.before(1, span(5, 15)), [(Some(1), span(10, 15))], "what was before 10 is not known");
        assert!(holders.before(7, span(0, 9)).is_empty());
        (0..1_000).for_each(|at| holders.has_cpu(0, Some(at as i32), at));
        assert_eq!(holders.cpus[0].len(), LEAST_CHANGES);
    }

    #[test]
    fn all_who_had_the_cpu_while_a_thread_waited_are_kept_however_long_it_waits() {
        let mut holders = Holders::default();
        let change = |holders: &mut Holders, times: std::ops::Range<u64>| {
            times.for_each(|at| holders.has_cpu(0, Some(at as i32), at));
        };
        change(&mut holders, 0..100);
        holders.waits(3, Some(100));
        holders.waits(5, Some(4_000));
        change(&mut holders, 100..10_000);
        let held = holders.before(0, span(100, 10_000));
        assert_eq!((held.len(), held[0]), (9_900, (Some(100), span(100, 101))));
        holders.waits(3, None);
        change(&mut holders, 10_000..10_001);
        assert_eq!(holders.before(0, span(4_000, 10_000)).len(), 6_000, "another one waits still");
        holders.waits(5, None);
        change(&mut holders, 10_001..10_002);
        assert_eq!(holders.cpus[0].len(), LEAST_CHANGES);
    }
}
