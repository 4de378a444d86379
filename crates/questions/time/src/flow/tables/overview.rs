//! Tables that give the overview of a host: by VM, by exit reason over all vCPUs, and the vCPUs that lose most.

use super::{F64, I64, U64, by_machine, by_name, each_vcpu, keys, merged, quantiles};
use base::table::{Shown, TableSpec};
use base::{Cell, Column, Histogram, Level, Table};
use facts::ledger::levels::title;
use facts::ledger::measure::{Measures, worst_state};
use facts::ledger::model::{ExitSums, Vcpu};
use std::collections::BTreeMap;
use walk::state::State;

/// What each VM's vCPUs did together.
pub const VMS: TableSpec = TableSpec {
    section: "flow",
    name: "vms",
    version: 1,
    row: "What the vCPUs of one VM did together; shares are of the time of all of them.",
    columns: &[
        Column::key("machine"),
        Column::key("vm"),
        Column::count("vcpus"),
        Column::ns("wall_ns"),
        Column::ns("guest_ns"),
        Column::ns("handling_ns"),
        Column::ns("userspace_ns"),
        Column::ns("waiting_ns"),
        Column::ns("overhead_ns"),
        Column::share("guest_share"),
        Column::share("waiting_share"),
        Column::share("overhead_share"),
        Column::count("exits"),
        Column::value("exits_per_second", "count", F64),
        Column::ns("p99_ns"),
    ],
    shown: Some(Shown::of(
        "VMs: shares of vCPU time, and exits",
        &[
            ("machine", "machine"),
            ("vm", "vm"),
            ("vcpus", "vCPUs"),
            ("overhead_share", "overhead"),
            ("guest_share", "guest"),
            ("waiting_share", "waiting"),
            ("overhead_ns", "overhead time"),
            ("exits", "exits"),
            ("exits_per_second", "exits/s"),
            ("p99_ns", "p99"),
        ],
        12,
    )),
};

/// Exits by level and reason over all vCPUs, as `perf kvm stat` shows them.
pub const REASONS: TableSpec = TableSpec {
    section: "flow",
    name: "reasons",
    version: 1,
    row: "The exits of all vCPUs of one machine's trace from one level for one reason.",
    columns: &[
        Column::key("machine"),
        Column::key("level"),
        Column::key("reason"),
        Column::count("vcpus"),
        Column::count("count"),
        Column::share("count_share"),
        Column::ns("total_ns"),
        Column::share("time_share"),
        Column::ns("p50_ns"),
        Column::ns("p90_ns"),
        Column::ns("p99_ns"),
        Column::ns("max_ns"),
        Column::value("per_second", "exits per second", F64),
    ],
    shown: Some(by_machine(Shown::of(
        "Exit reasons over all vCPUs",
        &[
            ("machine", "machine"),
            ("level", "level"),
            ("reason", "reason"),
            ("count", "exits"),
            ("count_share", "of count"),
            ("total_ns", "total"),
            ("p50_ns", "p50"),
            ("p99_ns", "p99"),
            ("max_ns", "max"),
        ],
        16,
    ))),
};

/// vCPUs with the time in which they wanted to run and ran no guest code, and the state that most of it was.
pub const WORST_VCPUS: TableSpec = TableSpec {
    section: "flow",
    name: "worst_vcpus",
    version: 1,
    row: "The time in which one vCPU was runnable or exited, and the state that most of it was spent in.",
    columns: &[
        Column::key("machine"),
        Column::key("vm"),
        Column::key_of("vcpu", U64),
        Column::key_of("tid", I64),
        Column::ns("overhead_ns"),
        Column::share("overhead_share"),
        Column::text("state"),
        Column::ns("state_ns"),
        Column::share("state_share"),
        Column::count("exits"),
        Column::ns("p99_ns"),
    ],
    shown: Some(Shown::of(
        "Worst vCPUs: most time outside the guest while runnable or exited",
        &[
            ("machine", "machine"),
            ("vm", "vm"),
            ("vcpu", "vcpu"),
            ("tid", "tid"),
            ("overhead_share", "overhead"),
            ("state", "mostly"),
            ("state_share", "share"),
            ("overhead_ns", "overhead time"),
            ("exits", "exits"),
            ("p99_ns", "p99"),
        ],
        8,
    )),
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

pub fn vms(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&VMS);
    for measure in measures {
        for (vm, vcpus) in measure.by_vm() {
            let sum = |wanted: fn(State) -> bool| vcpus.iter().map(|vcpu| vcpu.sums.ns_where(wanted)).sum::<u64>();
            let wall_ns: u64 = vcpus.iter().map(|vcpu| vcpu.sums.wall_ns()).sum();
            let exits: u64 = vcpus.iter().map(|vcpu| measure.exit_count_of(vcpu)).sum();
            let guest_ns = sum(|state| matches!(state, State::Guest(_)));
            let waiting_ns = sum(State::is_waiting);
            let overhead_ns = sum(State::is_overhead);
            let seconds = measure.part.window.length_ns() as f64 / 1e9;
            let mut row: Vec<Cell> = vec![measure.part.machine.as_str().into(), vm.into(), (vcpus.len() as u64).into()];
            row.extend([wall_ns, guest_ns, sum(|state| matches!(state, State::Handling(_)))].map(Cell::U64));
            row.extend([sum(|state| state == State::Userspace), waiting_ns, overhead_ns].map(Cell::U64));
            row.extend([guest_ns, waiting_ns, overhead_ns].map(|part_ns| part_of(part_ns, wall_ns)));
            row.push(exits.into());
            row.push((seconds > 0.0).then(|| exits as f64 / seconds).into());
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

pub fn reasons(measures: &[Measures<'_>]) -> Table {
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

pub fn worst_vcpus(measures: &[Measures<'_>]) -> Table {
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
