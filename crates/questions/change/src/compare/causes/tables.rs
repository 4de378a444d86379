//! The tables: one for what is measured as shares of time, one for what each unit of work took.

use super::{Cause, Causes, Measured};
use crate::compare::ID;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};

const F64: ColumnType = ColumnType::F64;

/// Where the difference of busy time comes from.
pub const CAUSES: TableSpec = TableSpec {
    section: ID,
    name: "causes",
    version: 1,
    row: "One part of the time that vCPUs were busy, as shares of their time before and after, largest difference first; `all` is their sum. Of work on exits, \
          `by_rate` is the difference because they happen more or less often and `by_cost` because each takes longer or shorter; both sum up to it. Low and high \
          are its 95 % interval over recordings; missing for one recording a side. `setting` is what was set up differently and may be the cause.",
    columns: &[
        Column::key("part"),
        Column::share("before"),
        Column::share("after"),
        Column::value("difference", "share", F64),
        Column::value("low", "share", F64),
        Column::value("high", "share", F64),
        Column::value("by_rate", "share", F64),
        Column::value("by_cost", "share", F64),
        Column::value("exits_per_s_before", "exits/s", F64),
        Column::value("exits_per_s_after", "exits/s", F64),
        Column::value("cost_before_ns", "ns", F64),
        Column::value("cost_after_ns", "ns", F64),
        Column::text("setting"),
        Column::text("verdict"),
        Column::text("source"),
    ],
    shown: Some(Shown {
        whole: &["part", "setting"],
        ..Shown::of(
            "Where the CPU time of vCPUs went",
            &[
                ("part", "busy with"),
                ("before", "before"),
                ("after", "after"),
                ("by_rate", "by how often"),
                ("by_cost", "by how long"),
                ("setting", "because of"),
                ("verdict", "verdict"),
            ],
            12,
        )
    }),
};

/// Where the difference of lost time comes from.
pub const LOSSES: TableSpec = TableSpec {
    section: ID,
    name: "losses",
    version: 1,
    row: "One cause of time that the host took from vCPUs without being asked, as shares of their known time before and after, largest difference first; `all` is \
          their sum. `by_rate` is the difference because it happens more or less often and `by_cost` because it takes longer or shorter each time; both sum up to \
          it. Low and high are its 95 % interval over recordings; missing for one recording a side. `setting` is what was set up differently and may be the cause.",
    columns: &[
        Column::key("cause"),
        Column::share("before"),
        Column::share("after"),
        Column::value("difference", "share", F64),
        Column::value("low", "share", F64),
        Column::value("high", "share", F64),
        Column::value("by_rate", "share", F64),
        Column::value("by_cost", "share", F64),
        Column::value("times_per_s_before", "1/s", F64),
        Column::value("times_per_s_after", "1/s", F64),
        Column::value("each_before_ns", "ns", F64),
        Column::value("each_after_ns", "ns", F64),
        Column::text("setting"),
        Column::text("verdict"),
        Column::text("source"),
    ],
    shown: Some(Shown {
        whole: &["cause", "setting"],
        ..Shown::of(
            "What the host took from vCPUs",
            &[
                ("cause", "by"),
                ("before", "before"),
                ("after", "after"),
                ("by_rate", "by how often"),
                ("by_cost", "by how long"),
                ("setting", "because of"),
                ("verdict", "verdict"),
            ],
            8,
        )
    }),
};

/// Where the difference of what each unit of work takes comes from.
pub const PER_WORK: TableSpec = TableSpec {
    section: ID,
    name: "per_work",
    version: 1,
    row: "One part of the time that vCPUs were busy, divided by the units of work that were done meanwhile, largest difference first; `all` is their sum. A unit \
          is an exit of a nested guest, or what marks in the trace count (`kvmscope work: 12000 requests`). Of work on exits, `by_rate` is the difference \
          because a unit has more or fewer of them and `by_cost` because each takes longer or shorter; both sum up to it. Low and high are its 95 % \
          interval over recordings; missing for one recording a side. `setting` is what was set up differently and may be the cause.",
    columns: &[
        Column::key("work"),
        Column::key("part"),
        Column::value("before_ns", "ns", F64),
        Column::value("after_ns", "ns", F64),
        Column::value("difference_ns", "ns", F64),
        Column::value("low_ns", "ns", F64),
        Column::value("high_ns", "ns", F64),
        Column::value("by_rate_ns", "ns", F64),
        Column::value("by_cost_ns", "ns", F64),
        Column::value("exits_before", "exits", F64),
        Column::value("exits_after", "exits", F64),
        Column::value("cost_before_ns", "ns", F64),
        Column::value("cost_after_ns", "ns", F64),
        Column::text("setting"),
        Column::text("verdict"),
        Column::text("source"),
    ],
    shown: Some(Shown {
        whole: &["part", "setting"],
        ..Shown::of(
            "What each unit of work took",
            &[
                ("work", "each"),
                ("part", "busy with"),
                ("before_ns", "before"),
                ("after_ns", "after"),
                ("by_rate_ns", "by how often"),
                ("by_cost_ns", "by how long"),
                ("setting", "because of"),
                ("verdict", "verdict"),
            ],
            10,
        )
    }),
};

/// Where the difference of dark time comes from.
pub const DARK: TableSpec = TableSpec {
    section: ID,
    name: "dark",
    version: 1,
    row: "What one device or step took while a guest stood still to be moved, by QEMU's trace of both sides, largest difference first; `all` is their sum, from \
          src-downtime-start to vm-started. `between both sides` is negative where the target loaded while the source still saved. Samples are the migrations of one \
          recording a side, or recordings, each the mean of its migrations.",
    columns: &[
        Column::key("part"),
        Column::value("before_ns", "ns", F64),
        Column::value("after_ns", "ns", F64),
        Column::value("difference_ns", "ns", F64),
        Column::value("low_ns", "ns", F64),
        Column::value("high_ns", "ns", F64),
        Column::text("verdict"),
    ],
    shown: Some(Shown {
        whole: &["part"],
        ..Shown::of(
            "What the guest was dark for",
            &[
                ("part", "by"),
                ("before_ns", "before"),
                ("after_ns", "after"),
                ("difference_ns", "difference"),
                ("verdict", "verdict"),
            ],
            12,
        )
    }),
};

/// The rows of one of them, all of it first; `causes` have the same [`super::Measured::spec`], and there is one at least.
pub fn table(causes: &[Causes]) -> Option<Table> {
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
