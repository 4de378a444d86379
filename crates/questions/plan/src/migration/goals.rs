//! Does a migration keep to the goals of a budget? One shape for those that were recorded and those that a model speaks of.

use super::history::History;
use super::predict::{Asked, Interval, Prediction};
use base::number::duration;
use base::{Cell, Cost, CostKind, Evidence, Finding, Level, Severity, Table, TableSpec, shown, table};
use facts::Case;
use facts::budget::{Budget, Goal, Judgement, Metric, Predicted, Verdict, Workload, exact, predicted};
use facts::rule::{Hit, Rule};
use std::cmp::{Ordering, Reverse};

/// A goal that a recorded migration broke.
pub(super) const RULE: Rule<fn(&Row<'_>) -> Option<Hit>> = Rule {
    id: "MIG-GOAL",
    per: "goal and run",
    looks_at: "Goals of the budget that a recorded migration broke for certain.",
    why: "The dark time that counts is from the guest's stop on the source until it runs on the target. QEMU's own account ends before \
          the target has loaded its devices, and may say a sixth of it.",
    fix: &["kvmscope plan migration --budget BUDGET ..   # which limit, bandwidth or throttle would keep to it"],
    source: "docs/read/latency.md, \"Verdicts\"",
    ..Rule::checked_by(broken)
};

fn broken(row: &Row<'_>) -> Option<Hit> {
    if row.judgement.verdict != Verdict::Fail {
        return None;
    }
    let bounds = row.judgement.bounds?;
    let run = row.run.map_or(String::new(), |run| format!(" of run {run}"));
    let reported = row.reported_ns.map_or(String::new(), |ns| format!("; reported: {}", exact(ns)));
    let seen =
        format!("{}{reported}; limit {} {}", exact(bounds.value_ns), row.goal.op.name(), exact(row.goal.limit_ns));
    let mut hit =
        Hit::new(format!("{}{run}", row.goal.id), Severity::High, format!("{}{}", row.verdict(), row.value()))
            .with(Evidence::in_table(seen, "migration.goals"));
    let over_ns = bounds.value_ns.saturating_sub(row.goal.limit_ns);
    hit.cost = Cost::of(CostKind::Measured, over_ns as f64, "ns over the limit");
    Some(hit)
}

pub(super) fn findings(rows: &[Row<'_>]) -> Vec<Finding> {
    rows.iter().filter_map(|row| Some(RULE.finding((RULE.check)(row)?, Level::L0))).collect()
}

pub(super) const GOALS: TableSpec = table! {
    migration.goals version 1:
    "One goal of the budget, judged by one migration, measured or modelled. `downtime_vmm` is judged by what was seen of the guest \
          (`vmm_events`); `reported_ns` is what the source believes. Null as a value is never, or not measured.";
    key metric, ns limit_ns, ns value_ns, ns low_ns, ns high_ns, text verdict, key goal, key_u64("") run, text op,
    text workload, ns future_ns, ns reported_ns, text kind, text why;
    shown![
        "The goals of the budget", 40;
        goal, run, verdict, value_ns: "value", high_ns: "at most", reported_ns: "reported", limit_ns: "limit",
        why: "because",
    ]
};

/// One goal, judged by one migration.
pub(super) struct Row<'g> {
    pub goal: &'g Goal,
    pub judgement: Judgement,
    pub run: Option<u64>,
    pub reported_ns: Option<u64>,
}

/// What the budget of a case says of its recorded migrations.
pub(super) fn measured(case: &Case) -> Vec<Row<'_>> {
    let Some(budget) = case.budget() else { return Vec::new() };
    let rows = case.judged().iter().filter_map(|judged| {
        let (goal, run) = (budget.goals.get(judged.goal)?, judged.whose.run?);
        let migration = case.input().migrations.list.get(usize::try_from(run).ok()?)?;
        let reported_ms = match goal.metric {
            Metric::TotalTime => migration.last(|poll| poll.total_ms),
            Metric::DowntimeVmm => migration.last(|poll| poll.downtime_ms),
            _ => None,
        };
        let reported_ns = reported_ms.map(|ms| ms.saturating_mul(1_000_000));
        Some(Row { goal, judgement: judged.judgement.clone(), run: Some(run), reported_ns })
    });
    rows.collect()
}

/// What `budget` says of a migration that a model speaks of.
pub(super) fn modelled<'b>(said: &Prediction, budget: &'b Budget, workload: Option<Workload>) -> Vec<Row<'b>> {
    let goals = budget.goals.iter().filter(|goal| goal.metric.is_of_migrations());
    let rows = goals.filter_map(|goal| {
        let interval = match goal.metric {
            Metric::TotalTime => Some(said.total_s),
            Metric::DowntimeVmm => Some(said.downtime_s),
            _ => None,
        };
        let judgement = predicted(goal, interval.map(in_ns), workload)?;
        Some(Row { goal, judgement, run: None, reported_ns: None })
    });
    rows.collect()
}

fn in_ns(Interval { low, likely, high, .. }: Interval) -> Predicted {
    let [low_ns, likely_ns, high_ns] = [low, likely, high].map(|seconds| seconds.map(|seconds| seconds * 1e9));
    Predicted { low_ns, likely_ns, high_ns }
}

/// Whether what the model says of a migration breaks a goal of `budget` for certain.
pub fn breaks(asked: &Asked, history: &History, budget: &Budget, workload: Option<Workload>) -> bool {
    let said = history.corrected(Prediction::of(asked));
    modelled(&said, budget, workload).iter().any(|row| row.judgement.verdict == Verdict::Fail)
}

/// `Budget kvm4nfv-2015: downtime-vmm-io FAIL in 2 of 3 runs (12.7 ms, limit <= 10 ms), downtime-net NOT MEASURED.` The broken ones first,
/// each goal by its worst run.
pub(super) fn sentence(budget: &str, rows: &[Row<'_>]) -> Option<String> {
    let mut goals: Vec<(&Row<'_>, u64, u64)> = Vec::new();
    for row in rows {
        match goals.iter_mut().find(|(worst, ..)| worst.goal.id == row.goal.id) {
            None => goals.push((row, 1, 1)),
            Some((worst, having, all)) => {
                *all += 1;
                match row.badness().cmp(&worst.badness()) {
                    Ordering::Greater if row.judgement.verdict != worst.judgement.verdict => {
                        (*worst, *having) = (row, 1);
                    }
                    Ordering::Greater => (*worst, *having) = (row, *having + 1),
                    _ if row.judgement.verdict == worst.judgement.verdict => *having += 1,
                    _ => {}
                }
            }
        }
    }
    goals.sort_by_key(|(worst, ..)| worst.judgement.verdict);
    let told = goals.iter().map(|(worst, having, all)| {
        let runs = if *all > 1 { format!(" in {having} of {all} runs") } else { String::new() };
        format!("{}{runs}{}", worst.verdict(), worst.value())
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("Budget {budget}: {}.", told.join(", ")))
}

impl Row<'_> {
    /// By verdict, then by the number.
    fn badness(&self) -> (Reverse<Verdict>, Option<u64>) {
        (Reverse(self.judgement.verdict), self.judgement.bounds.map(|bounds| bounds.value_ns))
    }

    fn verdict(&self) -> String {
        format!("{} {}", self.goal.id, self.judgement.verdict.name())
    }

    /// ` (12.7 ms, limit <= 10 ms)`; nothing where there is no number.
    fn value(&self) -> String {
        let limit = format!("limit {} {}", self.goal.op.name(), exact(self.goal.limit_ns));
        match (self.judgement.bounds, self.judgement.verdict) {
            (Some(bounds), _) => format!(" ({}, {limit})", duration(bounds.value_ns as f64)),
            (None, Verdict::Fail) => format!(" (never, {limit})"),
            (None, _) => String::new(),
        }
    }
}

pub(super) fn table(rows: &[Row<'_>], kind: &str) -> Table {
    let mut table = Table::new(&GOALS);
    for Row { goal, judgement, run, reported_ns } in rows {
        let bounds = judgement.bounds;
        table.push(vec![
            goal.metric.name().into(),
            goal.limit_ns.into(),
            bounds.map(|bounds| bounds.value_ns).into(),
            bounds.map(|bounds| bounds.low_ns).into(),
            bounds.and_then(|bounds| bounds.high_ns).into(),
            judgement.verdict.name().into(),
            goal.id.as_str().into(),
            (*run).into(),
            goal.op.name().into(),
            goal.workload.map_or(Cell::Missing, |workload| workload.name().into()),
            goal.future_ns.into(),
            (*reported_ns).into(),
            kind.into(),
            judgement.why().into(),
        ]);
    }
    table
}
