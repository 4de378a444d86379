//! Which of the threads that work for a VM are drawn?

use super::tasks::Doing;
use base::timeline::LaneKind;
use std::cmp::Reverse;

/// The most that are drawn: a host of a hundred VMs has thousands, and who looks for one finds it by narrowing the trace.
pub(super) const MOST: usize = 128;

/// Those of `workers` that the scheduler met, of which `ran_ns` says how long they ran, by kind, then by number. Of more than
/// [`MOST`] those that ran longest; and how many are left out.
pub(super) fn longest(
    workers: Vec<(LaneKind, i32, &str)>,
    ran_ns: impl Fn(i32) -> Option<u64>,
) -> (Vec<(LaneKind, i32, &str)>, usize) {
    let met = workers.into_iter().filter_map(|worker| Some((Reverse(ran_ns(worker.1)?), worker)));
    let mut met: Vec<_> = met.collect();
    let left_out = met.len().saturating_sub(MOST);
    if left_out > 0 {
        met.sort_by_key(|(ran_ns, _)| *ran_ns);
        met.truncate(MOST);
    }
    let mut found: Vec<_> = met.into_iter().map(|(_, worker)| worker).collect();
    found.sort();
    (found, left_out)
}

/// Says how many are left out, if some are.
pub(super) fn note(drawn: usize, left_out: usize) -> Option<String> {
    (left_out > 0)
        .then(|| format!("Of {} threads on the VMMs' side those {MOST} that ran longest are drawn.", drawn + left_out))
}

/// How long a task ran.
pub(super) fn ran_ns(track: &[(u64, Doing)]) -> u64 {
    let running = track.windows(2).filter(|pair| matches!(pair[0].1, Doing::Running(_)));
    running.map(|pair| pair[1].0 - pair[0].0).sum()
}
