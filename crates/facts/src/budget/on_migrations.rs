//! Goals on live migrations, judged by how one went, or by what a model says of one.
//!
//! ```text
//! recorded   total_time    from `migrate` until the target lets the guest run                        +- what events are rounded to
//!            downtime_vmm  from STOP to RESUME, else from checkpoint to checkpoint                   the same
//!            downtime_net  from the last packet answered at the source to the first one at the target    interval and sender
//!            either        nothing but QEMU's own account                                            INCONCLUSIVE at best
//! predicted  the model's interval: PASS if all of it keeps to the limit, FAIL if none of it does
//! ```

use super::verdict::{Bounds, Doubt, Verdict, verdict};
use super::{Goal, Judgement, Metric, Workload};
use crate::migrations::{Migration, REPORTED_ERROR_NS, Train};
use base::recording::Emulator;

/// Judges one goal by one recorded migration of a guest with this workload, if that is stated; `None` where the goal is one of
/// guests with another. `emulated` tells who emulated the guest.
pub(super) fn judge(
    goal: &Goal,
    migration: &Migration,
    workload: Option<Workload>,
    emulated: Option<Emulator>,
) -> Option<Judgement> {
    if !is_of(goal, workload) {
        return None;
    }
    let mut error_ns = migration.across_ns();
    let (seen_ns, reported_ms) = match goal.metric {
        Metric::TotalTime => (migration.total_ns(), migration.last(|poll| poll.total_ms)),
        Metric::DowntimeVmm => {
            (migration.by_events().or(migration.by_checkpoints()), migration.last(|poll| poll.downtime_ms))
        }
        Metric::DowntimeNet => {
            let train = migration.train.as_ref().filter(|_| migration.is_completed());
            error_ns = train.map_or(error_ns, Train::error_ns);
            (train.and_then(|train| train.dark_ns().ok()), None)
        }
        Metric::TimerLatency | Metric::IrqLatency | Metric::PreemptPeriod | Metric::PreemptWindow => return None,
    };
    let reported_ns = reported_ms.filter(|_| migration.is_completed()).map(|ms| ms.saturating_mul(1_000_000));
    let (bounds, mut doubts) = match (seen_ns, reported_ns) {
        (Some(seen_ns), _) => (Some(around(seen_ns, error_ns)), Vec::new()),
        (None, Some(reported_ns)) => {
            // The source's account of the whole ends before the target is done; that of the dark time may say too much as well.
            let is_least = goal.metric == Metric::TotalTime;
            let low_ns = if is_least { reported_ns.saturating_sub(REPORTED_ERROR_NS) } else { 0 };
            let bounds = Bounds { low_ns, value_ns: reported_ns, high_ns: None };
            (Some(bounds), vec![Doubt::AsReported { reported_ns }])
        }
        (None, None) => (None, vec![Doubt::NotTold(goal.metric)]),
    };
    doubts.extend(bounds.and_then(|_| Doubt::of_clock(goal, error_ns)));
    doubts.extend(emulated.map(Doubt::Emulated));
    Some(concluded(goal, bounds, doubts, workload))
}

/// Judges one goal by what a model says of a migration: the interval of its metric, in ns. `Some(None)` as its lower end is never, and
/// `None` as the interval is that the model says nothing of it.
pub fn predicted(goal: &Goal, said: Option<Predicted>, workload: Option<Workload>) -> Option<Judgement> {
    if !is_of(goal, workload) {
        return None;
    }
    let Some(said) = said else { return Some(Judgement::absent(goal, Doubt::NotTold(goal.metric))) };
    let ns = |ns: f64| ns.max(0.0).round() as u64;
    let Some(low_ns) = said.low_ns.map(ns) else {
        // It never ends: no time that is long enough.
        return Some(Judgement { verdict: Verdict::Fail, ..Judgement::of(None, Vec::new()) });
    };
    let value_ns = said.likely_ns.map_or(low_ns, ns);
    let bounds = Bounds { low_ns, value_ns, high_ns: said.high_ns.map(ns) };
    let holds = |ns: u64| goal.op.holds(ns, goal.limit_ns);
    let is_inside = holds(bounds.low_ns) && !bounds.high_ns.is_some_and(holds);
    Some(concluded(goal, Some(bounds), is_inside.then_some(Doubt::Interval).into_iter().collect(), workload))
}

/// What a model says of one metric; `None` is never.
#[derive(Debug, Clone, Copy)]
pub struct Predicted {
    /// At least.
    pub low_ns: Option<f64>,
    /// Most likely.
    pub likely_ns: Option<f64>,
    /// At most.
    pub high_ns: Option<f64>,
}

/// Whether the goal may be one of a guest with this workload.
fn is_of(goal: &Goal, workload: Option<Workload>) -> bool {
    goal.workload.is_none_or(|wanted| workload.is_none_or(|stated| stated == wanted))
}

/// A goal of another workload may be broken by right, so that a guest of which nobody stated the workload can only meet it.
fn concluded(goal: &Goal, bounds: Option<Bounds>, mut doubts: Vec<Doubt>, workload: Option<Workload>) -> Judgement {
    let is_met = bounds.and_then(|bounds| bounds.high_ns).is_some_and(|ns| goal.op.holds(ns, goal.limit_ns));
    if let (Some(wanted), None, false) = (goal.workload, workload, is_met || bounds.is_none()) {
        doubts.push(Doubt::Workload(wanted));
    }
    let verdict = verdict(goal, bounds, &doubts);
    Judgement { verdict, ..Judgement::of(bounds, doubts) }
}

fn around(seen_ns: u64, error_ns: u64) -> Bounds {
    Bounds {
        low_ns: seen_ns.saturating_sub(error_ns),
        value_ns: seen_ns,
        high_ns: Some(seen_ns.saturating_add(error_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::built_in;
    use super::*;
    use crate::migrations::Poll;

    const MS: u64 = 1_000_000;

    fn goal(id: &str) -> Goal {
        built_in("kvm4nfv-2015").unwrap().goals.into_iter().find(|goal| goal.id == id).unwrap()
    }

    /// A migration that took `total_ms`, and for the last `dark_ms` of it the guest stood still.
    fn seen(total_ms: u64, dark_ms: u64, reported_ms: u64) -> Migration {
        let poll = Poll { total_ms: Some(total_ms), downtime_ms: Some(reported_ms), ..Poll::default() };
        Migration {
            began_ns: MS,
            stopped_ns: Some((1 + total_ms - dark_ms) * MS),
            resumed_ns: Some((1 + total_ms) * MS),
            ended: Some(((1 + total_ms) * MS, "completed".into())),
            polls: vec![(0, poll)],
            ..Migration::default()
        }
    }

    fn of(id: &str, migration: &Migration, workload: Option<Workload>) -> Option<Verdict> {
        judge(&goal(id), migration, workload, None).map(|judgement| judgement.verdict)
    }

    #[test]
    fn a_migration_is_judged_by_what_was_seen_and_not_by_what_the_source_reports() {
        let io = Some(Workload::Io);
        assert_eq!(of("downtime-vmm-io", &seen(1_000, 9, 30), io), Some(Verdict::Pass));
        assert_eq!(of("downtime-vmm-io", &seen(1_000, 11, 2), io), Some(Verdict::Fail));
        assert_eq!(of("downtime-vmm-io", &seen(1_000, 10, 2), io), Some(Verdict::Inconclusive), "within 2 us");
        assert_eq!(of("migration-total", &seen(1_999, 9, 9), io), Some(Verdict::Pass));
        assert_eq!(of("migration-total", &seen(2_001, 9, 9), io), Some(Verdict::Fail));
        assert_eq!(of("downtime-net", &seen(1_000, 9, 9), io), Some(Verdict::NotMeasured));
    }

    #[test]
    fn the_network_is_judged_by_packets_and_their_interval_decides_what_is_certain() {
        let reached = |after_ms: u64| {
            let (last_on_source_ns, first_on_target_ns) = (Some(MS), Some((1 + after_ms) * MS));
            let (interval_ns, sender_gap_ns) = (MS, MS);
            let train = Train { interval_ns, sender_gap_ns, last_on_source_ns, first_on_target_ns, ..Train::default() };
            of("downtime-net", &Migration { train: Some(train), ..seen(1_000, 9, 9) }, Some(Workload::Io))
        };
        assert_eq!([23, 28].map(reached), [Some(Verdict::Pass), Some(Verdict::Fail)]);
        assert_eq!([24, 27].map(reached), [Some(Verdict::Inconclusive); 2], "give or take 2 ms");
        let silent = Migration { train: Some(Train::default()), ..seen(1_000, 9, 9) };
        assert_eq!(of("downtime-net", &silent, None), Some(Verdict::NotMeasured));
    }

    #[test]
    fn a_report_alone_breaks_the_total_and_decides_nothing_else() {
        let alone = |ms, dark_ms| Migration { stopped_ns: None, resumed_ns: None, ..seen(ms, 0, dark_ms) };
        assert_eq!(of("migration-total", &alone(500, 2), None), Some(Verdict::Inconclusive));
        assert_eq!(of("migration-total", &alone(3_000, 2), None), Some(Verdict::Fail));
        assert_eq!(of("downtime-vmm-io", &alone(500, 2), Some(Workload::Io)), Some(Verdict::Inconclusive));
        assert_eq!(of("downtime-vmm-io", &alone(500, 900), Some(Workload::Io)), Some(Verdict::Inconclusive));
    }

    #[test]
    fn a_goal_of_one_workload_is_not_broken_by_a_guest_that_may_have_another() {
        let slow = seen(1_000, 100, 100);
        assert_eq!(of("downtime-vmm-io", &slow, Some(Workload::Io)), Some(Verdict::Fail));
        assert_eq!(of("downtime-vmm-io", &slow, Some(Workload::Memory)), None);
        assert_eq!(of("downtime-vmm-io", &slow, None), Some(Verdict::Inconclusive));
        assert_eq!(of("downtime-vmm-memory", &slow, None), Some(Verdict::Pass), "whatever it is");
    }

    #[test]
    fn emulation_never_makes_a_pass() {
        let judged = judge(&goal("migration-total"), &seen(500, 2, 2), None, Some(Emulator::Tcg)).unwrap();
        assert_eq!((judged.verdict, judged.doubts), (Verdict::Inconclusive, vec![Doubt::Emulated(Emulator::Tcg)]));
    }

    #[test]
    fn an_interval_passes_as_a_whole_and_fails_as_a_whole() {
        let of = |low: f64, high: Option<f64>| {
            let said = Predicted { low_ns: Some(low), likely_ns: Some(low), high_ns: high };
            predicted(&goal("migration-total"), Some(said), None).unwrap().verdict
        };
        assert_eq!(of(1e9, Some(1.9e9)), Verdict::Pass);
        assert_eq!(of(1e9, Some(2e9)), Verdict::Inconclusive, "the limit itself breaks `<`");
        assert_eq!(of(1e9, None), Verdict::Inconclusive, "at worst never");
        assert_eq!(of(2e9, None), Verdict::Fail);
        let never = Predicted { low_ns: None, likely_ns: None, high_ns: None };
        let never = predicted(&goal("migration-total"), Some(never), None).unwrap();
        assert_eq!((never.verdict, never.bounds), (Verdict::Fail, None));
        assert_eq!(predicted(&goal("downtime-net"), None, None).unwrap().verdict, Verdict::NotMeasured);
    }
}
