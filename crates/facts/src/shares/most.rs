//! The most CPU time that all threads together could get, whoever schedules them.
//!
//! ```text
//! source --wish--> each set of CPUs --wish--> its CPUs --what is left--> their core --SMT_YIELD--> sink
//! ```
//! The largest flow (E. A. Dinic, 1970). What a scheduler really gives is no more: a change after which even this is less has
//! narrowed the sets too far, whatever a finer model expects of it.

use super::{Cpus, SMT_YIELD};
use base::CpuSet;
use std::collections::BTreeMap;

const SOURCE: usize = 0;
const SINK: usize = 1;

/// Less than this is nothing: CPUs.
const NOTHING: f64 = 1e-9;

/// A network of pipes: each stands beside the one back.
#[derive(Default)]
struct Network {
    to: Vec<usize>,
    room: Vec<f64>,
    from: Vec<Vec<usize>>,
}

/// What threads want, each so much on any of its CPUs, less the most that they can get in all.
pub fn missing_at_best(cpus: &Cpus, threads: impl Iterator<Item = (f64, CpuSet)>) -> f64 {
    let mut wishes: BTreeMap<CpuSet, f64> = BTreeMap::new();
    for (wish, set) in threads.filter(|(wish, set)| *wish > 0.0 && cpus.positions(set).next().is_some()) {
        *wishes.entry(set).or_default() += wish;
    }
    let first_core = 2 + cpus.core.len();
    let mut network = Network { from: vec![Vec::new(); first_core + cpus.cores + wishes.len()], ..Network::default() };
    let mut siblings = vec![0_u32; cpus.cores];
    for (cpu, core) in cpus.core.iter().enumerate() {
        siblings[*core] += 1;
        network.pipe(2 + cpu, first_core + core, (1.0 - cpus.taken[cpu]).max(0.0));
    }
    for (core, count) in siblings.iter().enumerate() {
        network.pipe(first_core + core, SINK, if *count > 1 { SMT_YIELD } else { 1.0 });
    }
    for ((set, wish), node) in wishes.iter().zip(first_core + cpus.cores..) {
        network.pipe(SOURCE, node, *wish);
        cpus.positions(set).for_each(|cpu| network.pipe(node, 2 + cpu, *wish));
    }
    (wishes.values().sum::<f64>() - network.largest_flow()).max(0.0)
}

impl Network {
    fn pipe(&mut self, from: usize, to: usize, room: f64) {
        for (from, to, room) in [(from, to, room), (to, from, 0.0)] {
            self.from[from].push(self.to.len());
            self.to.push(to);
            self.room.push(room);
        }
    }

    fn largest_flow(&mut self) -> f64 {
        let mut all = 0.0;
        while let Some(steps) = self.steps_from_source() {
            let mut next = vec![0; self.from.len()];
            while let Some(flow) = self.fill_one_way(&steps, &mut next) {
                all += flow;
            }
        }
        all
    }

    /// How many pipes each node is from the source, as long as the sink is reached.
    fn steps_from_source(&self) -> Option<Vec<usize>> {
        let mut steps = vec![usize::MAX; self.from.len()];
        steps[SOURCE] = 0;
        let mut reached = vec![SOURCE];
        let mut at = 0;
        while let Some(node) = reached.get(at).copied() {
            at += 1;
            for pipe in &self.from[node] {
                if self.room[*pipe] > NOTHING && steps[self.to[*pipe]] == usize::MAX {
                    steps[self.to[*pipe]] = steps[node] + 1;
                    reached.push(self.to[*pipe]);
                }
            }
        }
        (steps[SINK] != usize::MAX).then_some(steps)
    }

    /// Fills one shortest way to the sink; `next` has the pipes of each node that lead nowhere any more.
    fn fill_one_way(&mut self, steps: &[usize], next: &mut [usize]) -> Option<f64> {
        let (mut way, mut node): (Vec<usize>, usize) = (Vec::new(), SOURCE);
        while node != SINK {
            let open = |pipe: &usize| self.room[*pipe] > NOTHING && steps[self.to[*pipe]] == steps[node] + 1;
            match self.from[node].get(next[node]).copied() {
                Some(pipe) if open(&pipe) => {
                    way.push(pipe);
                    node = self.to[pipe];
                }
                Some(_) => next[node] += 1,
                None => {
                    node = self.to[way.pop()? ^ 1];
                    next[node] += 1;
                }
            }
        }
        let flow = way.iter().map(|pipe| self.room[*pipe]).fold(f64::INFINITY, f64::min);
        for pipe in way {
            self.room[pipe] -= flow;
            self.room[pipe ^ 1] += flow;
        }
        Some(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(cores: &[u32], threads: &[(f64, &str)]) -> f64 {
        let cpus = Cpus::new((0..).zip(cores).map(|(cpu, core)| (cpu, *core, 0.0)));
        missing_at_best(&cpus, threads.iter().map(|(wish, set)| (*wish, CpuSet::parse(set).unwrap())))
    }

    #[test]
    fn who_can_go_elsewhere_makes_room_and_siblings_share_a_core() {
        assert!(missing(&[0, 1], &[(0.9, "0-1"), (1.0, "0")]) < 1e-6);
        assert!((missing(&[0, 1], &[(0.9, "0"), (1.0, "0")]) - 0.9).abs() < 1e-6);
        assert!((missing(&[0, 0], &[(1.0, "0"), (0.6, "1")]) - 0.35).abs() < 1e-6);
        assert!((missing(&[0, 1, 2], &[(0.8, "0-1"), (0.8, "0-1"), (0.8, "1-2"), (0.8, "1-2")]) - 0.2).abs() < 1e-6);
    }
}
