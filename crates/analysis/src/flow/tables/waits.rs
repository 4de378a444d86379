//! Tables of waiting: pre-emption, wake-ups, virtual interrupts.

use super::{U64, each_vcpu, keys, shown};
use crate::facts::ledger::measure::Measures;
use base::table::Shown;
use base::{Cell, Column, ColumnType, Table};

/// Who ran while a vCPU was runnable.
pub fn preemptors(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.extend([Column::key("by"), Column::key_of("by_tid", ColumnType::I64)]);
    columns.extend([Column::value("count", "count", U64)]);
    columns.extend(["total_ns", "max_ns"].map(|name| Column::value(name, "ns", U64)));
    let mut table = Table::new("preemptors", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        let mut rows: Vec<_> = vcpu.sums.preemptors.iter().collect();
        rows.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.total_ns));
        for (tid, sums) in rows {
            table.push(vec![
                vcpu.vm.as_str().into(),
                u64::from(vcpu.vcpu).into(),
                tid.map_or_else(|| "unknown".to_owned(), |tid| measure.task_name(tid)).into(),
                tid.map_or(Cell::Missing, |tid| Cell::I64(tid.into())),
                sums.count.into(),
                sums.total_ns.into(),
                sums.max_ns.into(),
            ]);
        }
    }
    let columns = [
        ("vm", "vm"),
        ("vcpu", "vcpu"),
        ("by", "by"),
        ("by_tid", "tid"),
        ("count", "times"),
        ("total_ns", "total"),
        ("max_ns", "longest"),
    ];
    let worst_first = |shown| Shown { largest_first: Some("total_ns".into()), ..shown };
    table.shown = shown("What ran while a vCPU was runnable", &columns, 8).map(worst_first);
    table
}

/// From made ready to running, and to the guest.
pub fn wakeups(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.push(Column::value("count", "count", U64));
    for what in ["run", "entry"] {
        columns.extend(["p50", "p99", "max"].map(|q| Column::value(&format!("to_{what}_{q}_ns"), "ns", U64)));
    }
    let mut table = Table::new("wakeups", columns);
    for (_, vcpu) in each_vcpu(measures) {
        let (run, entry) = (&vcpu.sums.wake_to_run, &vcpu.sums.wake_to_entry);
        if run.count() == 0 {
            continue;
        }
        let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into(), run.count().into()];
        for histogram in [run, entry] {
            let max = (histogram.count() > 0).then(|| histogram.max());
            row.extend([histogram.quantile(0.5).into(), histogram.quantile(0.99).into(), max.into()]);
        }
        table.push(row);
    }
    let columns = [
        ("vm", "vm"),
        ("vcpu", "vcpu"),
        ("count", "wake-ups"),
        ("to_run_p50_ns", "to run p50"),
        ("to_run_p99_ns", "p99"),
        ("to_entry_p50_ns", "to guest p50"),
        ("to_entry_p99_ns", "p99"),
        ("to_entry_max_ns", "max"),
    ];
    table.shown = shown("Wake-ups: time from runnable to running, and to the guest", &columns, 16);
    table
}

/// Virtual interrupts by vector.
pub fn interrupts(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.extend([Column::key_of("vector", U64), Column::value("count", "count", U64)]);
    for what in ["inject", "entry"] {
        columns.extend(["p50", "p99", "max"].map(|q| Column::value(&format!("to_{what}_{q}_ns"), "ns", U64)));
    }
    let mut table = Table::new("interrupts", columns);
    for (_, vcpu) in each_vcpu(measures) {
        let mut rows: Vec<_> = vcpu.sums.interrupts.iter().collect();
        rows.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.to_entry_ns.count()));
        for (vector, sums) in rows {
            let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()];
            row.extend([u64::from(*vector).into(), sums.to_entry_ns.count().into()]);
            for histogram in [&sums.to_inject_ns, &sums.to_entry_ns] {
                row.extend([histogram.quantile(0.5).into(), histogram.quantile(0.99).into(), histogram.max().into()]);
            }
            table.push(row);
        }
    }
    let columns = [
        ("vm", "vm"),
        ("vcpu", "vcpu"),
        ("vector", "vector"),
        ("count", "interrupts"),
        ("to_inject_p50_ns", "injected p50"),
        ("to_entry_p50_ns", "in guest p50"),
        ("to_entry_p99_ns", "p99"),
        ("to_entry_max_ns", "max"),
    ];
    table.shown = shown("Virtual interrupts: time from accepted by the APIC to the guest", &columns, 8);
    table
}
