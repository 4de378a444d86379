//! Which task had a CPU lately?

use base::Span;
use std::collections::VecDeque;

/// Changes kept of each CPU: a thread that was woken gets a CPU after few of them, if nothing is wrong.
const MOST_CHANGES: usize = 64;

/// Which task has each CPU, and had it before; `None` where nothing shows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Holders {
    cpus: Vec<VecDeque<(u64, Option<i32>)>>,
}

impl Holders {
    /// From `at_ns` on task `tid` has `cpu`.
    pub(super) fn has_cpu(&mut self, cpu: usize, tid: Option<i32>, at_ns: u64) {
        if cpu >= self.cpus.len() {
            self.cpus.resize_with(cpu + 1, VecDeque::new);
        }
        let changes = &mut self.cpus[cpu];
        if changes.back().is_some_and(|(_, last)| *last == tid) {
            return;
        }
        if changes.len() == MOST_CHANGES {
            changes.pop_front();
        }
        changes.push_back((at_ns, tid));
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

    #[test]
    fn those_who_had_the_cpu_are_named_in_order_and_what_was_forgotten_is_not() {
        let mut holders = Holders::default();
        for (at_ns, tid) in [(10, Some(1)), (20, Some(2)), (25, Some(2)), (30, None), (40, Some(3))] {
            holders.has_cpu(1, tid, at_ns);
        }
        let span = |from_ns, to_ns| Span { from_ns, to_ns };
        assert_eq!(
            holders.before(1, span(15, 40)),
            [(Some(1), span(15, 20)), (Some(2), span(20, 30)), (None, span(30, 40))]
        );
        assert_eq!(holders.before(1, span(5, 15)), [(Some(1), span(10, 15))], "what was before 10 is not known");
        assert!(holders.before(7, span(0, 9)).is_empty());
        (0..1_000).for_each(|at| holders.has_cpu(0, Some(at as i32), at));
        assert_eq!(holders.cpus[0].len(), MOST_CHANGES);
    }
}
