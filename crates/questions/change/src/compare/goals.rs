//! The goals of a budget, before and after: what was broken, and what is.

use base::{Table, TableSpec, shown, table};
use facts::Case;
use facts::budget::{Judged, Verdict, Verdicts, by_goal, exact};

/// Both sides of each goal.
pub(super) const GOALS: TableSpec = table! {
    compare.goals version 1:
    "One goal of the budget on both sides: the worst verdict over all recordings of a side, and its number.";
    key goal, text metric, text stat, ns window_ns, text op, ns limit_ns, text before_verdict, ns before_ns,
    text after_verdict, ns after_ns, text before_vm, u64("") before_vcpu, text after_vm, u64("") after_vcpu,
    count before_failed, count before_recordings, count after_failed, count after_recordings;
    shown![
        "The goals of the budget, before and after", 16;
        goal, limit_ns: "limit", before_verdict: "before", before_ns: "value before", after_verdict: "after",
        after_ns: "value after",
    ]
};

struct Side<'c> {
    worst: &'c Judged,
    /// Recordings in which it is broken.
    failed: u64,
    recordings: u64,
}

impl<'c> Side<'c> {
    /// Of the goal `id` in the verdicts of each recording.
    fn of(recordings: &[Vec<Verdicts<'c>>], id: &str) -> Option<Self> {
        let goals = || recordings.iter().flatten().filter(|verdicts| verdicts.goal.id == id);
        let value = |judged: &Judged| judged.judgement.bounds.map(|bounds| bounds.value_ns);
        let worst = goals().map(Verdicts::worst);
        let worst = worst.min_by_key(|judged| (judged.judgement.verdict, std::cmp::Reverse(value(judged))))?;
        let failed = goals().filter(|verdicts| verdicts.worst().judgement.verdict == Verdict::Fail).count() as u64;
        Some(Self { worst, failed, recordings: goals().count() as u64 })
    }

    fn value_ns(&self) -> Option<u64> {
        self.worst.judgement.bounds.map(|bounds| bounds.value_ns)
    }

    /// `FAIL, 37 us`.
    fn words(&self) -> String {
        let value = self.value_ns().map(|ns| format!(" ({})", exact(ns))).unwrap_or_default();
        let name = self.worst.judgement.verdict.name();
        let count = match (self.recordings, self.failed) {
            (1, _) | (_, 0) => String::new(),
            (recordings, failed) => format!(" in {failed} of {recordings}"),
        };
        format!("{name}{count}{value}")
    }
}

/// The table, and what it says in sentences; nothing without a budget.
pub(super) fn goals(before: &[&Case], after: &[&Case]) -> Option<(Table, String)> {
    let budget = after.first()?.budget()?;
    let sides = [before, after].map(|cases| cases.iter().map(|case| by_goal(case)).collect::<Vec<_>>());
    let (mut table, mut sentences) = (Table::new(&GOALS), Vec::new());
    for goal in &budget.goals {
        let [Some(one), Some(two)] = [&sides[0], &sides[1]].map(|side| Side::of(side, &goal.id)) else { continue };
        let name = |side: &Side<'_>| side.worst.judgement.verdict.name();
        let vm = |side: &Side<'_>| side.worst.whose.vm.as_deref().into();
        let vcpu = |side: &Side<'_>| side.worst.whose.vcpu.map(u64::from).into();
        table.push(vec![
            goal.id.as_str().into(),
            goal.metric.name().into(),
            goal.stat.name().into(),
            goal.window_ns.into(),
            goal.op.name().into(),
            goal.limit_ns.into(),
            name(&one).into(),
            one.value_ns().into(),
            name(&two).into(),
            two.value_ns().into(),
            vm(&one),
            vcpu(&one),
            vm(&two),
            vcpu(&two),
            one.failed.into(),
            one.recordings.into(),
            two.failed.into(),
            two.recordings.into(),
        ]);
        let limit = format!("limit {} {}", goal.op.name(), exact(goal.limit_ns));
        sentences.push(format!("{}: {} before, {} after, {limit}", goal.id, one.words(), two.words()));
    }
    let said = format!("Budget {}: {}.", budget.name, sentences.join("; "));
    (!sentences.is_empty()).then_some((table, said))
}
