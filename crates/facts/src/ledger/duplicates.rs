//! Which of several traces of one machine answers?
//!
//! perf or LTTng beside the kernel's own trace record the same events once more. One trace answers for the machine, so
//! that nothing counts twice: the one with most exits, of equals the one with most vCPUs, then the first. What only another
//! one has, samples of counters, it takes over.

use super::model::PartFlow;
use std::cmp::Reverse;

/// Chooses for each machine the trace that answers; the others name it in `twin_of` and keep no vCPU.
pub(super) fn choose_primary(parts: &mut [PartFlow]) {
    for place in 0..parts.len() {
        // Two files of one format are two stretches of time, or two parts of the machine.
        let twins: Vec<usize> = (0..parts.len())
            .filter(|at| parts[*at].machine == parts[place].machine)
            .filter(|at| *at == place || parts[*at].format != parts[place].format)
            .collect();
        let tells = |at: &usize| {
            let vcpus = &parts[*at].vcpus;
            (vcpus.iter().map(|vcpu| vcpu.sums.exit_count()).sum::<u64>(), vcpus.len())
        };
        let best = twins.iter().copied().max_by_key(|at| (tells(at), Reverse(*at)));
        let Some(best) = best.filter(|best| *best != place) else { continue };
        let sampled = std::mem::take(&mut parts[place].profile);
        parts[best].profile.extend(sampled);
        parts[place].twin_of = Some(parts[best].path.clone());
        parts[place].vcpus.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::quiet::quiet;
    use walk::events::reasons::Isa;

    /// Two traces of one machine, of which those in `silent` hold no vCPU.
    fn two(silent: &[usize]) -> Vec<PartFlow> {
        let perf = PartFlow { path: "L0/perf.data".into(), format: trace::Format::PerfData, ..quiet(Isa::Vmx) };
        let mut parts = vec![quiet(Isa::Vmx), perf];
        silent.iter().for_each(|at| parts[*at].vcpus.clear());
        parts
    }

    #[test]
    fn one_trace_answers_for_a_machine_whatever_they_hold() {
        let answering = |silent: &[usize]| -> Vec<String> {
            let mut parts = two(silent);
            choose_primary(&mut parts);
            parts.into_iter().filter(|part| part.twin_of.is_none()).map(|part| part.path).collect()
        };
        assert_eq!(answering(&[]), ["L0/trace.dat"], "the first of equals");
        assert_eq!(answering(&[0]), ["L0/perf.data"], "the one that holds vCPUs");
        assert_eq!(answering(&[0, 1]), ["L0/trace.dat"], "one says that there are none");
        let mut halves = two(&[0, 1]);
        halves[1].format = halves[0].format;
        choose_primary(&mut halves);
        assert!(halves.iter().all(|part| part.twin_of.is_none()), "two stretches of time are no twins");
    }
}
