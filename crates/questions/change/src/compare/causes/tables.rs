//! The tables: one for what is measured as shares of time, one for what each unit of work took.

use super::{Cause, Causes, Measured};
use base::{Cell, Shown, Table, TableSpec, shown, table};

/// Where the difference of busy time comes from.
pub(crate) const CAUSES: TableSpec = table! {
    compare.causes version 1:
    "One part of the time that vCPUs were busy, as shares of their time before and after, largest difference first; `all` is their sum. Of work on exits, \
          `by_rate` is the difference because they happen more or less often and `by_cost` because each takes longer or shorter; both sum up to it. Low and high \
          are its 95 % interval over recordings; missing for one recording a side. `setting` is what was set up differently and may be the cause.";
    key part, share before, share after, share difference, share low, share high, share by_rate, share by_cost,
    f64("exits/s") exits_per_s_before, f64("exits/s") exits_per_s_after, f64("ns") cost_before_ns,
    f64("ns") cost_after_ns, text setting, text verdict, text source;
    Shown {
        whole: &["part", "setting"],
        ..shown![
            "Where the CPU time of vCPUs went", 12;
            part: "busy with", before, after, by_rate: "by how often", by_cost: "by how long", setting: "because of",
            verdict,
        ]
    }
};

/// Where the difference of lost time comes from.
pub(crate) const LOSSES: TableSpec = table! {
    compare.losses version 1:
    "One cause of time that the host took from vCPUs without being asked, as shares of their known time before and after, largest difference first; `all` is \
          their sum. `by_rate` is the difference because it happens more or less often and `by_cost` because it takes longer or shorter each time; both sum up to \
          it. Low and high are its 95 % interval over recordings; missing for one recording a side. `setting` is what was set up differently and may be the cause.";
    key cause, share before, share after, share difference, share low, share high, share by_rate, share by_cost,
    f64("1/s") times_per_s_before, f64("1/s") times_per_s_after, f64("ns") each_before_ns, f64("ns") each_after_ns,
    text setting, text verdict, text source;
    Shown {
        whole: &["cause", "setting"],
        ..shown![
            "What the host took from vCPUs", 8;
            cause: "by", before, after, by_rate: "by how often", by_cost: "by how long", setting: "because of",
            verdict,
        ]
    }
};

/// Where the difference of what each unit of work takes comes from.
pub(crate) const PER_WORK: TableSpec = table! {
    compare.per_work version 1:
    "One part of the time that vCPUs were busy, divided by the units of work done in that time, largest difference first; `all` is their sum. A unit \
          is an exit of a nested guest, or what marks in the trace count (`kvmscope work: 12000 requests`). Of work on exits, `by_rate` is the difference \
          because a unit has more or fewer of them and `by_cost` because each takes longer or shorter; both sum up to it. Low and high are its 95 % \
          interval over recordings; missing for one recording a side. `setting` is what was set up differently and may be the cause.";
    key work, key part, f64("ns") before_ns, f64("ns") after_ns, f64("ns") difference_ns, f64("ns") low_ns,
    f64("ns") high_ns, f64("ns") by_rate_ns, f64("ns") by_cost_ns, f64("exits") exits_before, f64("exits") exits_after,
    f64("ns") cost_before_ns, f64("ns") cost_after_ns, text setting, text verdict, text source;
    Shown {
        whole: &["part", "setting"],
        ..shown![
            "What each unit of work took", 10;
            work: "each", part: "busy with", before_ns: "before", after_ns: "after", by_rate_ns: "by how often",
            by_cost_ns: "by how long", setting: "because of", verdict,
        ]
    }
};

/// Where the difference of dark time comes from.
pub(crate) const DARK: TableSpec = table! {
    compare.dark version 1:
    "What one device or step took while a guest was stopped to be moved, by QEMU's trace of both sides, largest difference first; `all` is their sum, from \
          src-downtime-start to vm-started. `between both sides` is negative where the target loaded while the source still saved. Samples are the migrations of one \
          recording a side, or recordings, each the mean of its migrations.";
    key part, f64("ns") before_ns, f64("ns") after_ns, f64("ns") difference_ns, f64("ns") low_ns, f64("ns") high_ns,
    text verdict;
    Shown {
        whole: &["part"],
        ..shown![
            "What the guest was dark for", 12;
            part: "by", before_ns: "before", after_ns: "after", difference_ns: "difference", verdict,
        ]
    }
};

/// The rows of one of them, all of it first; `causes` have the same [`super::Measured::spec`], and there is one at least.
pub(crate) fn table(causes: &[Causes]) -> Option<Table> {
    let mut table = Table::new(causes.first()?.measured.spec());
    for causes in causes {
        std::iter::once(&causes.all).chain(&causes.list).for_each(|cause| table.push(row(causes, cause)));
    }
    Some(table)
}

fn row(causes: &Causes, cause: &Cause) -> Vec<Cell> {
    let real = |value: Option<f64>| value.map_or(Cell::Missing, Cell::F64);
    let ((by_rate, by_cost), (low, high)) = (cause.parted().unzip(), cause.interval.unzip());
    let each = |spent: super::Spent| {
        let often = spent.often.filter(|often| *often > 0.0)?;
        Some(causes.measured.each_ns(spent.amount, often))
    };
    let verdict = match (cause.holds, cause.difference() > 0.0) {
        (None, _) => crate::compare::SINGLE,
        (Some(false), _) => "noise could explain it",
        (Some(true), true) => "higher",
        (Some(true), false) => "lower",
    };
    let difference = [
        cause.part.as_str().into(),
        cause.before.amount.into(),
        cause.after.amount.into(),
        cause.difference().into(),
        real(low),
        real(high),
    ];
    if causes.measured == Measured::Dark {
        return difference.into_iter().chain([verdict.into()]).collect();
    }
    let parted = [
        real(by_rate),
        real(by_cost),
        real(cause.before.often),
        real(cause.after.often),
        real(each(cause.before)),
        real(each(cause.after)),
        cause.named().map_or(Cell::Missing, Cell::from),
        verdict.into(),
        cause.setting.as_ref().map_or(Cell::Missing, |(_, source)| (*source).into()),
    ];
    causes.measured.work().map(Cell::from).into_iter().chain(difference).chain(parted).collect()
}
