//! How long the stages of interrupts and timers took.

use super::super::measure::Measured;
use super::keys;
use base::{Cell, Histogram, Shown, Table, TableSpec, headings, table};
use std::cmp::Reverse;
use walk::stages::sums::{InterruptSums, Vector};
use walk::stages::{IrqStage, TimerStage};

const SHOWN: &[(&str, &str)] = headings![
    vm, vcpu, vector, stage, count: "times", merged, p50_ns: "p50", p99_ns: "p99", max_ns: "max",
];

/// From a device's interrupt to its end in the guest; the figure shows the same numbers better.
pub(super) const IRQ_STAGES: TableSpec = table! {
    latency.irq_stages version 1:
    "One stage of the interrupts of one vector on one vCPU, see docs/read/latency.md; accepts that were merged into a pending one are at stage pending.";
    key machine, key vm, key_u64("") vcpu, key_u64("") vector, key stage, count count, count merged, ns p50_ns, ns p99_ns,
    ns max_ns;
};

/// From a guest's setting its timer to the task that it wakes.
pub(super) const TIMER_STAGES: TableSpec = table! {
    latency.timer_stages version 1:
    "One stage of the timer interrupts of one vCPU, see docs/read/latency.md; merged ones are at stage deliver.";
    key machine, key vm, key_u64("") vcpu, key_u64("") vector, key stage, count count, count merged, ns p50_ns, ns p99_ns,
    ns max_ns;
    Shown::of("Timer interrupts by stage", SHOWN, 4)
};

pub(super) fn irq_stages(measured: &[Measured<'_>]) -> Table {
    let mut table = Table::new(&IRQ_STAGES);
    for (one, vector, sums) in by_count(measured) {
        for stage in IrqStage::ALL {
            let merged = (stage == IrqStage::Pending).then_some(sums.merged);
            row(&mut table, (one, vector), stage.name(), merged, sums.irq(stage));
        }
    }
    table
}

pub(super) fn timer_stages(measured: &[Measured<'_>]) -> Table {
    let mut table = Table::new(&TIMER_STAGES);
    for (one, vector, sums) in by_count(measured) {
        let is_timer = sums.timer(TimerStage::Deliver).count() > 0;
        for stage in TimerStage::ALL {
            let merged = (is_timer && stage == TimerStage::Deliver).then_some(sums.merged);
            row(&mut table, (one, vector), stage.name(), merged, sums.timer(stage));
        }
    }
    table
}

/// All vectors of each vCPU, the most frequent first.
fn by_count<'m>(measured: &'m [Measured<'m>]) -> impl Iterator<Item = (&'m Measured<'m>, Vector, &'m InterruptSums)> {
    measured.iter().flat_map(|one| {
        let mut vectors: Vec<_> = one.vcpu.sums.interrupts.iter().collect();
        vectors.sort_by_key(|(vector, sums)| (Reverse(sums.irq(IrqStage::Pending).count()), **vector));
        vectors.into_iter().map(move |(vector, sums)| (one, *vector, sums))
    })
}

fn row(
    table: &mut Table,
    (one, vector): (&Measured<'_>, Vector),
    stage: &str,
    merged: Option<u64>,
    lengths: &Histogram,
) {
    if lengths.count() == 0 && merged.unwrap_or(0) == 0 {
        return;
    }
    let mut row = keys(one);
    row.extend([u64::from(vector.0).into(), stage.into(), lengths.count().into(), merged.into()]);
    row.extend([0.5, 0.99, 1.0].map(|share| lengths.quantile(share).map_or(Cell::Missing, Cell::from)));
    table.push(row);
}
