//! Tables that give the overview of a host: by VM, by exit reason over all vCPUs, and the vCPUs that lose most.

use super::{by_machine, by_name, each_vcpu, keys, merged, quantiles};
use crate::flow::rates::per_second;
use base::{Cell, Histogram, Level, Table, TableSpec, shown, table};
use facts::ledger::levels::title;
use facts::ledger::measure::{Measures, worst_state};
use facts::ledger::model::{ExitSums, Vcpu};
use std::collections::BTreeMap;
use walk::state::State;

/// What each VM's vCPUs did together.
pub(super) const VMS: TableSpec = table! {
    flow.vms version 1: "What the vCPUs of one VM did together; shares are of the time of all of them.";
    key machine, key vm, count vcpus, ns wall_ns, ns guest_ns, ns handling_ns, ns userspace_ns, ns waiting_ns,
    ns overhead_ns, share guest_share, share waiting_share, share overhead_share, count exits,
    f64("count") exits_per_second, ns p99_ns;
    shown![
        "VMs: shares of vCPU time, and exits", 12;
        machine, vm, vcpus: "vCPUs", overhead_share: "overhead", guest_share: "guest", waiting_share: "waiting",
        overhead_ns: "overhead time", exits, exits_per_second: "exits/s", p99_ns: "p99",
    ]
};

/// Exits by level and reason over all vCPUs, as `perf kvm stat` shows them.
pub(super) const REASONS: TableSpec = table! {
    flow.reasons version 1: "The exits of all vCPUs of one machine's trace from one level for one reason.";
    key machine, key level, key reason, count vcpus, count count, share count_share, ns total_ns, share time_share,
    ns p50_ns, ns p90_ns, ns p99_ns, ns max_ns, f64("exits per second") per_second;
    by_machine(shown![
        "Exit reasons over all vCPUs", 16;
        machine, level, reason, count: "exits", count_share: "of count", total_ns: "total", p50_ns: "p50",
        p99_ns: "p99", max_ns: "max",
    ])
};

/// vCPUs with the time in which they wanted to run and ran no guest code, and the state that most of it was.
pub(super) const WORST_VCPUS: TableSpec = table! {
    flow.worst_vcpus version 1:
    "The time in which one vCPU was runnable or exited, and the state that most of it was spent in.";
    key machine, key vm, key_u64("") vcpu, key_i64("") tid, ns overhead_ns, share overhead_share, text state,
    ns state_ns, share state_share, count exits, ns p99_ns;
    shown![
        "Worst vCPUs: most time outside the guest while runnable or exited", 8;
        machine, vm, vcpu, tid, overhead_share: "overhead", state: "mostly", state_share: "share",
        overhead_ns: "overhead time", exits, p99_ns: "p99",
    ]
};

fn part_of(part: u64, whole: u64) -> Cell {
    if whole == 0 { Cell::Missing } else { Cell::F64(part as f64 / whole as f64) }
}

/// Wanted exits of all kinds of some vCPUs, as one distribution of costs.
fn all_costs<'h>(measure: &Measures<'_>, vcpus: impl Iterator<Item = &'h Vcpu>) -> Histogram {
    let mut costs = Histogram::new();
    vcpus.flat_map(|vcpu| measure.exits_of(vcpu)).for_each(|(.., sums)| costs.merge(&sums.cost_ns));
    costs
}

fn p99(costs: &Histogram) -> Cell {
    costs.quantile(0.99).into()
}

pub(super) fn vms(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&VMS);
    for measure in measures {
        for (vm, vcpus) in measure.by_vm() {
            let sum = |wanted: fn(State) -> bool| vcpus.iter().map(|vcpu| vcpu.sums.ns_where(wanted)).sum::<u64>();
            let wall_ns: u64 = vcpus.iter().map(|vcpu| vcpu.sums.wall_ns()).sum();
            let exits: u64 = vcpus.iter().map(|vcpu| measure.exit_count_of(vcpu)).sum();
            let guest_ns = sum(|state| matches!(state, State::Guest(_)));
            let waiting_ns = sum(State::is_waiting);
            let overhead_ns = sum(State::is_overhead);
            let mut row: Vec<Cell> = vec![measure.part.machine.as_str().into(), vm.into(), (vcpus.len() as u64).into()];
            row.extend([wall_ns, guest_ns, sum(|state| matches!(state, State::Handling(_)))].map(Cell::U64));
            row.extend([sum(|state| state == State::Userspace), waiting_ns, overhead_ns].map(Cell::U64));
            row.extend([guest_ns, waiting_ns, overhead_ns].map(|part_ns| part_of(part_ns, wall_ns)));
            row.push(exits.into());
            row.push(per_second(measure, exits).into());
            row.push(p99(&all_costs(measure, vcpus.iter().copied())));
            table.push(row);
        }
    }
    table
}

/// What one exit reason cost over all vCPUs of a machine.
struct ReasonSums<'m> {
    vcpus: u64,
    sums: Vec<&'m ExitSums>,
}

pub(super) fn reasons(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&REASONS);
    for measure in measures {
        let mut rows: BTreeMap<(Level, String), ReasonSums<'_>> = BTreeMap::new();
        for vcpu in &measure.vcpus {
            for (key, sums) in by_name(measure, vcpu) {
                let row = rows.entry(key).or_insert_with(|| ReasonSums { vcpus: 0, sums: Vec::new() });
                row.vcpus += 1;
                row.sums.extend(sums);
            }
        }
        let whole = totals(rows.values().flat_map(|row| &row.sums).copied());
        let seconds = measure.part.window.length_ns() as f64 / 1e9;
        for ((level, reason), row) in rows {
            let (count, total_ns) = totals(row.sums.iter().copied());
            let costs = merged(row.sums.iter().map(|sums| &sums.cost_ns));
            let mut cells: Vec<Cell> = vec![measure.part.machine.as_str().into()];
            cells.extend([level.to_string().into(), reason.into(), row.vcpus.into(), count.into()]);
            cells.extend([part_of(count, whole.0), total_ns.into(), part_of(total_ns, whole.1)]);
            cells.extend(quantiles(&costs));
            cells.push((costs.count() > 0).then(|| costs.max()).into());
            cells.push((seconds > 0.0).then(|| count as f64 / seconds).into());
            table.push(cells);
        }
    }
    table
}

/// Count and time of some exits.
pub(super) fn totals<'m>(sums: impl Iterator<Item = &'m ExitSums>) -> (u64, u64) {
    sums.fold((0, 0), |(count, ns), sums| (count + sums.count, ns + sums.cost_ns.sum()))
}

pub(super) fn worst_vcpus(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&WORST_VCPUS);
    for (measure, vcpu) in each_vcpu(measures) {
        let wall_ns = vcpu.sums.wall_ns();
        let overhead_ns = vcpu.sums.ns_where(State::is_overhead);
        let worst = worst_state(&vcpu.sums);
        let mut row = keys(measure, vcpu);
        row.extend([Cell::I64(vcpu.tid.into()), overhead_ns.into()]);
        row.push(part_of(overhead_ns, wall_ns));
        row.push(worst.map(|(state, _)| title(measure.part.level, state)).into());
        row.push(worst.map(|(_, state_ns)| state_ns).into());
        row.push(worst.map_or(Cell::Missing, |(_, state_ns)| part_of(state_ns, wall_ns)));
        row.push(measure.exit_count_of(vcpu).into());
        row.push(p99(&all_costs(measure, std::iter::once(vcpu))));
        table.push(row);
    }
    table
}
