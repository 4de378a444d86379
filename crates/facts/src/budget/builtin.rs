//! The budgets that come with the program, each a file that `kvmscope budget NAME` prints as it is.

use super::Budget;

/// Their names and texts; the files name their sources.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("kvm4nfv-2015", include_str!("builtin/kvm4nfv-2015.toml")),
    ("kvm4nfv-future", include_str!("builtin/kvm4nfv-future.toml")),
];

/// The text of the built-in budget of this name.
pub fn built_in_text(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

pub fn built_in(name: &str) -> Option<Budget> {
    Budget::read(name, built_in_text(name)?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::{Goal, Metric, Op, Stat};
    use super::*;
    use crate::losses::Definition;

    #[test]
    fn every_built_in_budget_reads_and_has_its_name() {
        for (name, text) in BUILT_IN {
            assert_eq!(Budget::read(name, text).unwrap().name, *name);
        }
        assert_eq!(built_in("kvm4nfv-1915"), None);
    }

    /// Limits of the slides, in ns: id, metric, statistic, comparison, limit, future.
    #[test]
    fn the_goals_are_those_of_the_slide() {
        let slide = [
            ("timer-mean", Metric::TimerLatency, Stat::Mean, Op::AtMost, 5_000, None),
            ("timer-max", Metric::TimerLatency, Stat::Max, Op::AtMost, 15_000, None),
            ("irq-max", Metric::IrqLatency, Stat::Max, Op::AtMost, 20_000, Some(5_000)),
            ("preempt-period", Metric::PreemptPeriod, Stat::Max, Op::AtMost, 10_000, Some(2_000)),
            ("preempt-window", Metric::PreemptWindow, Stat::Sup, Op::Below, 20_000, Some(4_000)),
            ("migration-total", Metric::TotalTime, Stat::Max, Op::Below, 2_000_000_000, None),
            ("downtime-vmm-io", Metric::DowntimeVmm, Stat::Max, Op::AtMost, 10_000_000, Some(3_000_000)),
            ("downtime-vmm-memory", Metric::DowntimeVmm, Stat::Max, Op::Below, 500_000_000, None),
            ("downtime-net", Metric::DowntimeNet, Stat::Max, Op::AtMost, 25_000_000, None),
        ];
        let row = |goal: &Goal| (goal.metric, goal.stat, goal.op, goal.limit_ns, goal.future_ns);
        let now = built_in("kvm4nfv-2015").unwrap();
        let rows: Vec<_> = now.goals.iter().map(row).collect();
        assert_eq!(rows, slide.map(|(_, metric, stat, op, limit, future)| (metric, stat, op, limit, future)));
        assert_eq!(now.goals.iter().map(|goal| goal.id.as_str()).collect::<Vec<_>>(), slide.map(|(id, ..)| id));
        let later = built_in("kvm4nfv-future").unwrap();
        let with_future =
            slide.iter().filter_map(|(id, metric, stat, op, _, future)| Some((*id, *metric, *stat, *op, (*future)?)));
        let rows: Vec<_> =
            later.goals.iter().map(|goal| (goal.id.as_str(), goal.metric, goal.stat, goal.op, goal.limit_ns)).collect();
        assert_eq!(rows, with_future.collect::<Vec<_>>());
        assert!(later.goals.iter().all(|goal| goal.future_ns.is_none()));
    }

    #[test]
    fn a_maximum_takes_samples_and_a_loss_takes_a_minute() {
        for goal in BUILT_IN.iter().flat_map(|(name, _)| built_in(name).unwrap().goals) {
            let of_losses = goal.metric.is_of_losses();
            let maximum_of_samples = !of_losses && !goal.metric.is_of_migrations() && goal.stat == Stat::Max;
            assert_eq!(goal.require.trace_ns, of_losses.then_some(60_000_000_000), "{}", goal.id);
            assert_eq!(goal.require.samples, maximum_of_samples.then_some(2_995_732), "{}", goal.id);
            assert_eq!(goal.definition, Definition::Involuntary, "{}", goal.id);
            assert_eq!(goal.window_ns, (goal.metric == Metric::PreemptWindow).then_some(1_000_000), "{}", goal.id);
        }
    }
}
