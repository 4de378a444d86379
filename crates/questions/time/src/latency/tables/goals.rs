//! The goals of the budget, and whether they are met.

use base::{Cell, Table, TableSpec, shown, table};
use facts::Case;
use facts::budget::Judged;

pub(super) const GOALS: TableSpec = table! {
    latency.goals version 1:
    "One goal of the budget, judged for one vCPU, or for one thread of a program that measured; without any, once: NOT MEASURED. Goals of \
     migrations are in `migration.goals`.";
    key machine, key goal, text metric, key vm, key_u64("") vcpu, text stat, ns window_ns, ns limit_ns, ns value_ns,
    ns low_ns, ns high_ns, text verdict, ns at_ns, count samples, count over, share bound_p95, text op, ns future_ns,
    text definition, text environment, key file, key thread, count over_high, count episodes, count blocks,
    share block_bound_p95, text why, ns clock_error_low_ns, ns clock_error_high_ns;
    shown![
        "The goals of the budget", 16;
        goal, vm, vcpu, thread, verdict, value_ns: "value", high_ns: "at most", limit_ns: "limit", at_ns: "at",
    ]
};

/// How sure the bounds of the table are.
const SURE: f64 = 0.95;

pub(super) fn goals(case: &Case) -> Table {
    let mut table = Table::new(&GOALS);
    let Some(budget) = case.budget() else { return table };
    for Judged { goal, whose, judgement, at_ns } in case.judged().iter().filter(|judged| judged.whose.run.is_none()) {
        let goal = &budget.goals[*goal];
        let (bounds, counts, episodes) = (judgement.bounds, judgement.counts, judgement.episodes);
        let text = |text: &Option<String>| text.as_deref().into();
        table.push(vec![
            text(&whose.machine),
            goal.id.as_str().into(),
            goal.metric.name().into(),
            text(&whose.vm),
            whose.vcpu.map(u64::from).into(),
            goal.stat.name().into(),
            goal.window_ns.into(),
            goal.limit_ns.into(),
            bounds.map(|bounds| bounds.value_ns).into(),
            bounds.map(|bounds| bounds.low_ns).into(),
            bounds.and_then(|bounds| bounds.high_ns).into(),
            judgement.verdict.name().into(),
            (*at_ns).into(),
            counts.and_then(|counts| counts.samples).into(),
            counts.map(|counts| counts.over_low).into(),
            counts.and_then(|counts| counts.bound(SURE)).into(),
            goal.op.name().into(),
            goal.future_ns.into(),
            if goal.metric.is_of_losses() { goal.definition.name().into() } else { Cell::Missing },
            text(&goal.environment),
            text(&whose.file),
            text(&whose.thread),
            counts.and_then(|counts| counts.over_high).into(),
            episodes.map(|episodes| episodes.low).into(),
            episodes.map(|episodes| episodes.blocks).into(),
            episodes.and_then(|episodes| episodes.bound(SURE)).into(),
            judgement.why().into(),
            judgement.clock_error.map(|error| error.low_ns).into(),
            judgement.clock_error.map(|error| error.high_ns).into(),
        ]);
    }
    table
}
