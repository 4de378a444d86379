//! Tables of waiting: pre-emption, interrupts of the host, wake-ups, virtual interrupts.

use super::{each_vcpu, keys};
use base::{Cell, Shown, Table, TableSpec, shown, table};
use facts::ledger::measure::Measures;
use facts::ledger::model::StretchSums;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use walk::Waker;
use walk::stages::IrqStage;

/// Who ran while a vCPU was runnable.
pub(in crate::flow) const PREEMPTORS: TableSpec = table! {
    flow.preemptors version 2: "How long one task ran while one vCPU was runnable.";
    key machine, key vm, key_u64("") vcpu, key by, key_i64("") by_tid, count count, ns total_ns, ns max_ns;
    Shown {
        largest_first: Some("total_ns"),
        grouped_by: Some("machine"),
        ..shown![
            "What ran while a vCPU was runnable", 8;
            vm, vcpu, by, by_tid: "tid", count: "waits begun", total_ns: "total", max_ns: "longest",
        ]
    }
};

/// What interrupted a vCPU that had its CPU.
pub(super) const HOST_INTERRUPTS: TableSpec = table! {
    flow.host_interrupts version 1:
    "How long one interrupt or softirq of the host ran on the CPU of one vCPU: the ledger's irq, softirq and nmi, by cause.";
    key machine, key vm, key_u64("") vcpu, key kind, key_u64("") number, key by, count count, ns total_ns, ns max_ns;
    Shown {
        largest_first: Some("total_ns"),
        grouped_by: Some("machine"),
        ..shown![
            "Host interrupts that took time from a vCPU", 8;
            vm, vcpu, kind, number, by, count: "times", total_ns: "total", max_ns: "longest",
        ]
    }
};

/// Who woke a vCPU.
pub(super) const WAKERS: TableSpec = table! {
    flow.wakers version 1: "The wake-ups of one vCPU by one task or interrupt: how long from runnable to running.";
    key machine, key vm, key_u64("") vcpu, key kind, key_i64("") number, key by, count count, ns total_ns, ns max_ns;
    Shown {
        largest_first: Some("count"),
        ..shown![
            "What woke a vCPU, and how long it then waited for a CPU", 8;
            vm, vcpu, kind, number, by, count: "wake-ups", total_ns: "waited", max_ns: "longest",
        ]
    }
};

/// From made ready to running, and to the guest.
pub(super) const WAKEUPS: TableSpec = table! {
    flow.wakeups version 2:
    "The wake-ups of one vCPU: how long from runnable to running, and to the entry of the guest.";
    key machine, key vm, key_u64("") vcpu, count count, ns to_run_p50_ns, ns to_run_p99_ns, ns to_run_max_ns,
    ns to_entry_p50_ns, ns to_entry_p99_ns, ns to_entry_max_ns;
    shown![
        "Wake-ups: time from runnable to running, and to the guest", 16;
        vm, vcpu, count: "wake-ups", to_run_p50_ns: "to run p50", to_run_p99_ns: "p99",
        to_entry_p50_ns: "to guest p50", to_entry_p99_ns: "p99", to_entry_max_ns: "max",
    ]
};

/// Virtual interrupts by vector.
pub(super) const INTERRUPTS: TableSpec = table! {
    flow.interrupts version 2:
    "The virtual interrupts of one vector on one vCPU: how long from accepted by its APIC to injected, and to the guest.";
    key machine, key vm, key_u64("") vcpu, key_u64("") vector, count count, ns to_inject_p50_ns, ns to_inject_p99_ns,
    ns to_inject_max_ns, ns to_entry_p50_ns, ns to_entry_p99_ns, ns to_entry_max_ns;
    shown![
        "Virtual interrupts: time from accepted by the APIC to the guest", 8;
        vm, vcpu, vector, count: "interrupts", to_inject_p50_ns: "injected p50", to_entry_p50_ns: "in guest p50",
        to_entry_p99_ns: "p99", to_entry_max_ns: "max",
    ]
};

pub(super) fn preemptors(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&PREEMPTORS);
    for (measure, vcpu) in each_vcpu(measures) {
        let mut rows: Vec<_> = vcpu.sums.preemptors.iter().collect();
        rows.sort_by_key(|(_, sums)| Reverse(sums.total_ns));
        for (tid, sums) in rows {
            let mut row = keys(measure, vcpu);
            row.push(tid.map_or_else(|| "unknown".to_owned(), |tid| measure.task_name(tid)).into());
            row.push(tid.map_or(Cell::Missing, |tid| Cell::I64(tid.into())));
            row.extend([sums.count, sums.total_ns, sums.max_ns].map(Cell::from));
            table.push(row);
        }
    }
    table
}

pub(super) fn host_interrupts(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&HOST_INTERRUPTS);
    for (measure, vcpu) in each_vcpu(measures) {
        let handlers = &measure.part.handlers;
        for (by, sums) in longest_first(&vcpu.sums.host_interrupts) {
            let mut row = keys(measure, vcpu);
            row.extend([by.kind().into(), handlers.number(by).map(u64::from).into()]);
            row.push(handlers.name(by).unwrap_or("unknown").into());
            row.extend([sums.count, sums.total_ns, sums.max_ns].map(Cell::from));
            table.push(row);
        }
    }
    table
}

pub(super) fn wakers(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&WAKERS);
    for (measure, vcpu) in each_vcpu(measures) {
        let handlers = &measure.part.handlers;
        for (by, sums) in longest_first(&vcpu.sums.wakers) {
            let (kind, number, name) = match by {
                Waker::Task(tid) => ("task", Some(i64::from(tid)), measure.task_name(tid)),
                Waker::Interrupt(by) => {
                    let name = handlers.name(by).unwrap_or("unknown").to_owned();
                    (by.kind(), handlers.number(by).map(i64::from), name)
                }
                Waker::Unknown => ("unknown", None, "unknown".to_owned()),
            };
            let mut row = keys(measure, vcpu);
            row.extend([kind.into(), number.map_or(Cell::Missing, Cell::I64), name.into()]);
            row.extend([sums.count, sums.total_ns, sums.max_ns].map(Cell::from));
            table.push(row);
        }
    }
    table
}

fn longest_first<K: Copy>(sums: &BTreeMap<K, StretchSums>) -> Vec<(K, StretchSums)> {
    let mut rows: Vec<(K, StretchSums)> = sums.iter().map(|(by, sums)| (*by, *sums)).collect();
    rows.sort_by_key(|(_, sums)| Reverse(sums.total_ns));
    rows
}

pub(super) fn wakeups(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&WAKEUPS);
    for (measure, vcpu) in each_vcpu(measures) {
        let (run, entry) = (&vcpu.sums.wake_to_run, &vcpu.sums.wake_to_entry);
        if run.count() == 0 {
            continue;
        }
        let mut row = keys(measure, vcpu);
        row.push(run.count().into());
        for histogram in [run, entry] {
            let max = (histogram.count() > 0).then(|| histogram.max());
            row.extend([histogram.quantile(0.5).into(), histogram.quantile(0.99).into(), max.into()]);
        }
        table.push(row);
    }
    table
}

pub(super) fn interrupts(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&INTERRUPTS);
    for (measure, vcpu) in each_vcpu(measures) {
        let delivered = vcpu.sums.interrupts.iter().filter(|(_, sums)| sums.to_entry_ns.count() > 0);
        let mut rows: Vec<_> = delivered.collect();
        rows.sort_by_key(|(vector, sums)| (Reverse(sums.to_entry_ns.count()), **vector));
        for (vector, sums) in rows {
            let mut row = keys(measure, vcpu);
            row.extend([u64::from(vector.0).into(), sums.to_entry_ns.count().into()]);
            for histogram in [sums.irq(IrqStage::Pending), &sums.to_entry_ns] {
                row.extend([histogram.quantile(0.5).into(), histogram.quantile(0.99).into(), histogram.max().into()]);
            }
            table.push(row);
        }
    }
    table
}
