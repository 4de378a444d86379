//! Which of several traces of one machine answers?
//!
//! perf or LTTng beside the kernel's own trace record the same events once more. One trace answers for the machine, so
//! that nothing counts twice: the one with most exits, the first of equals. What only another one has, samples of
//! counters, it takes over.

use super::model::PartFlow;
use std::cmp::Reverse;

/// Chooses for each machine the trace that answers; the others name it in `twin_of` and keep no vCPU.
pub fn settle(parts: &mut [PartFlow]) {
    for place in 0..parts.len() {
        let same = |other: &usize| {
            let (one, other) = (&parts[place], &parts[*other]);
            one.machine == other.machine && !one.vcpus.is_empty() && !other.vcpus.is_empty()
        };
        // Two files of one format are two stretches of time, or two parts of the machine.
        let twins: Vec<usize> = (0..parts.len())
            .filter(same)
            .filter(|at| *at == place || parts[*at].format != parts[place].format)
            .collect();
        let exits = |at: &usize| parts[*at].vcpus.iter().map(|vcpu| vcpu.sums.exit_count()).sum::<u64>();
        let best = twins.iter().copied().max_by_key(|at| (exits(at), Reverse(*at)));
        let Some(best) = best.filter(|best| *best != place) else { continue };
        let sampled = std::mem::take(&mut parts[place].profile);
        parts[best].profile.extend(sampled);
        parts[place].twin_of = Some(parts[best].path.clone());
        parts[place].vcpus.clear();
    }
}
