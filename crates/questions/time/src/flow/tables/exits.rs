//! Tables of exits: what each reason cost a vCPU, how often, about what, and who handled it.

use super::{by_machine, by_name, each_vcpu, keys, merged, overview, quantiles};
use base::{Cell, Shown, Table, TableSpec, headings, shown, table};
use facts::ledger::measure::Measures;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Costs of exits, with the columns of CONTRACTS section 3 first.
pub(in crate::flow) const EXITS: TableSpec = table! {
    flow.exits version 2:
    "The exits of one vCPU from one level for one reason; cost is from the exit to the next entry, waiting left out.";
    key machine, key vm, key_u64("") vcpu, key level, key reason, count count, ns total_ns, ns p50_ns, ns p90_ns,
    ns p99_ns, ns max_ns, share count_share, share time_share;
    by_machine(Shown::of("Exits", OF_ONE_MACHINE, MOST_ROWS))
};

const OF_SEVERAL_MACHINES: &[(&str, &str)] = headings![
    machine, vm, vcpu, level, reason, count: "exits", total_ns: "total", p50_ns: "p50", p99_ns: "p99", max_ns: "max",
];

/// Of one machine its name is no news.
const OF_ONE_MACHINE: &[(&str, &str)] = OF_SEVERAL_MACHINES.split_at(1).1;

/// A ledger of few vCPUs has all its reasons; beside an overview the worst are enough.
const MOST_ROWS: usize = 40;
const MOST_ROWS_BESIDE_OVERVIEW: usize = 16;

/// What `exits` tells in relation to the time that was looked at.
pub(super) const EXIT_RATES: TableSpec = table! {
    flow.exit_rates version 2:
    "How often one vCPU exited from one level for one reason, and what share of its time that took.";
    key machine, key vm, key_u64("") vcpu, key level, key reason, f64("exits per second") per_second, share cpu_share;
};

pub(super) const EXIT_DETAILS: TableSpec = table! {
    flow.exit_details version 2:
    "The exits of one vCPU from one level for one reason about one thing: an MSR, a port, an address, a register.";
    key machine, key vm, key_u64("") vcpu, key level, key reason, key detail, count count, ns total_ns;
    by_machine(shown![
        "Exit details", 12;
        vm, vcpu, level, reason, detail: "about", count: "exits", total_ns: "total",
    ])
};

pub(super) const HANDLED_BY: TableSpec = table! {
    flow.handled_by version 2:
    "How many exits of one vCPU from one level for one reason KVM handled itself, passed to the VMM, or reflected to L1.";
    key machine, key vm, key_u64("") vcpu, key level, key reason, count kernel, count userspace, count reflected;
};

pub(super) fn exits(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&EXITS);
    // Shares are of all exits of one machine's trace: a guest's own trace holds exits that the host's has as well.
    let whole = |measure: &Measures<'_>| {
        let exits = measure.vcpus.iter().flat_map(|vcpu| by_name(measure, vcpu).into_values().flatten());
        overview::totals(exits)
    };
    let wholes = measures.iter().flat_map(|measure| std::iter::repeat_n(whole(measure), measure.vcpus.len()));
    for ((measure, vcpu), (all_exits, all_ns)) in each_vcpu(measures).zip(wholes) {
        let mut rows: Vec<_> = by_name(measure, vcpu).into_iter().collect();
        rows.sort_by_key(|((level, _), sums)| (*level, Reverse(sums.iter().map(|sums| sums.count).sum::<u64>())));
        for ((level, reason), sums) in rows {
            let costs = merged(sums.iter().map(|sums| &sums.cost_ns));
            let count: u64 = sums.iter().map(|sums| sums.count).sum();
            let mut row = keys(measure, vcpu);
            // Of exits without an entry behind them nobody knows what they took.
            let known = costs.count() > 0;
            row.extend([level.to_string().into(), reason.into(), count.into(), known.then(|| costs.sum()).into()]);
            row.extend(quantiles(&costs));
            row.push(known.then(|| costs.max()).into());
            row.push((all_exits > 0).then(|| count as f64 / all_exits as f64).into());
            row.push((all_ns > 0 && known).then(|| costs.sum() as f64 / all_ns as f64).into());
            table.push(row);
        }
    }
    let columns = if of_several_machines(measures) { OF_SEVERAL_MACHINES } else { OF_ONE_MACHINE };
    let most_rows = if measures.iter().any(Measures::is_of_many) { MOST_ROWS_BESIDE_OVERVIEW } else { MOST_ROWS };
    table.shown = table.shown.map(|shown| Shown { columns, most_rows, ..shown });
    table
}

/// True if vCPUs of more than one machine are answered for.
fn of_several_machines(measures: &[Measures<'_>]) -> bool {
    let mut machines = measures.iter().filter(|measure| !measure.vcpus.is_empty()).map(|measure| &measure.part.machine);
    let first = machines.next();
    machines.any(|machine| Some(machine) != first)
}

pub(super) fn exit_rates(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&EXIT_RATES);
    for (measure, vcpu) in each_vcpu(measures) {
        let wall_ns = vcpu.sums.wall_ns().max(1) as f64;
        for ((level, reason), sums) in by_name(measure, vcpu) {
            let count: u64 = sums.iter().map(|sums| sums.count).sum();
            let total_ns: u64 = sums.iter().map(|sums| sums.cost_ns.sum()).sum();
            let known = sums.iter().any(|sums| sums.cost_ns.count() > 0);
            let mut row = keys(measure, vcpu);
            row.extend([level.to_string().into(), reason.into()]);
            row.push((count as f64 * 1e9 / wall_ns).into());
            row.push(known.then(|| total_ns as f64 / wall_ns).into());
            table.push(row);
        }
    }
    table
}

pub(super) fn exit_details(measures: &[Measures<'_>]) -> Table {
    let mut rows = Vec::new();
    for (measure, vcpu) in each_vcpu(measures) {
        for ((level, reason), sums) in by_name(measure, vcpu) {
            let is_timed = sums.iter().any(|sums| sums.cost_ns.count() > 0);
            let mut details: BTreeMap<String, (u64, u64)> = BTreeMap::new();
            for (detail, (count, total_ns)) in sums.iter().flat_map(|sums| sums.details.iter()) {
                let row = details.entry(detail.text()).or_default();
                *row = (row.0 + count, row.1 + total_ns);
            }
            let known = |(detail, (count, total_ns)): (String, (u64, u64))| {
                (measure, vcpu, level, reason.clone(), detail, (count, is_timed.then_some(total_ns)))
            };
            rows.extend(details.into_iter().map(known));
        }
    }
    rows.sort_by_key(|(measure, vcpu, .., (count, _))| {
        (measure.part.level, vcpu.vm.as_str(), vcpu.vcpu, Reverse(*count))
    });
    let mut table = Table::new(&EXIT_DETAILS);
    for (measure, vcpu, level, reason, detail, (count, total_ns)) in rows {
        let mut row = keys(measure, vcpu);
        row.extend([level.to_string().into(), reason.into(), detail.into(), count.into(), total_ns.into()]);
        table.push(row);
    }
    table
}

pub(super) fn handled_by(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&HANDLED_BY);
    for (measure, vcpu) in each_vcpu(measures) {
        for ((level, reason), sums) in by_name(measure, vcpu) {
            let by = |who: usize| Cell::U64(sums.iter().map(|sums| sums.handled[who]).sum());
            let mut row = keys(measure, vcpu);
            row.extend([level.to_string().into(), reason.into(), by(0), by(1), by(2)]);
            table.push(row);
        }
    }
    table
}
