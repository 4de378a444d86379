//! Tables of guests' own traces on the time line of the machine below.

use base::{Cell, Histogram, Level, Table, TableSpec, shown, table};
use facts::Given;
use facts::align::{Alignment, Cpu, Map};
use facts::ledger::measure::Measures;
use facts::ledger::model::Aligned;
use std::collections::BTreeMap;

/// How the clock of each CPU of a guest is found on the clock of the machine below, and how well.
///
/// An offset is the time below minus the guest's, at the first and last event; what lies between needs the whole map.
pub(super) const ALIGNMENT: TableSpec = table! {
    flow.alignment version 1:
    "How the clock of one CPU of a guest with its own trace is aligned with the clock of its host, and how well.";
    key machine, key_u64("") cpu, key below, text vm, u64("") vcpu, i64("") tid, text paired_by, text method,
    text offset_from, f64("") ratio, text ratio_from, count bounds, count exit_pairs, count interrupt_pairs,
    count msr_pairs, count steps, count breaks, i64("ns") offset_first_ns, i64("ns") offset_last_ns, i64("") drift_ppb,
    f64("ns") error_p50_ns, f64("ns") error_max_ns, count events, count unjudged, count violations, f64("ns") worst_ns,
    text joined_with, f64("ns") joined_error_ns;
    shown![
        "Guests' own traces, aligned to the host's timeline", 20;
        machine, cpu: "CPU", vm: "its VM below", vcpu: "vCPU", method: "by", steps, error_p50_ns: "median error",
        error_max_ns: "largest", events, violations: "outside",
    ]
};

/// Exits that a machine reflected and exits that the guest wrote down, matched one to one, by reason.
///
/// `to_guest` is how long the guest took from its own guest's stop to writing it down, over the matched ones: the
/// median, and the medians of the least and the most it can have been.
pub(super) const MATCHED_EXITS: TableSpec = table! {
    flow.matched_exits version 1:
    "Exits for one reason that the host reflected to one vCPU of a guest, and those in the guest's own trace.";
    key machine, key vm, key_u64("") vcpu, key reason, count handed_up, count seen_by_guest, count matched,
    count order_unknown, ns to_guest_p50_ns, ns to_guest_low_ns, ns to_guest_high_ns;
    shown![
        "Exits that were reflected to a guest and are in its own trace", 12;
        machine, vcpu: "vCPU", reason, handed_up: "reflected", seen_by_guest: "in its trace", matched,
        to_guest_p50_ns: "until recorded", to_guest_low_ns: "at least", to_guest_high_ns: "at most",
    ]
};

/// Functions of a guest at which it was left, where its trace carries its symbols.
pub(super) const EXIT_SITES: TableSpec = table! {
    flow.exit_sites version 2: "The exits for one reason from one function of a guest whose own trace has its symbols.";
    key machine, key vm, key level, key reason, key symbol, count count, ns total_ns;
    shown![
        "Guest code at exits", 12;
        level, reason, symbol: "in function", count: "exits", total_ns: "until resumed",
    ]
};

/// The guest's tasks that ran when it was left, the innermost guest's first: there the work is. Exits that fall together
/// with a switch have no task.
pub(super) const GUEST_TASKS: TableSpec = table! {
    flow.guest_tasks version 2: "The exits of one vCPU while one task of the guest ran, by the guest's own trace.";
    key machine, key vm, key_u64("") vcpu, key level, key task, key_i64("") tid, count exits, ns total_ns;
    shown![
        "Guest tasks at exits", 20;
        vcpu: "vCPU", level, task: "task of the guest", tid, exits, total_ns: "until resumed",
    ]
};

/// Guests whose traces are aligned.
fn each_guest<'m>(measures: &'m [Measures<'m>]) -> impl Iterator<Item = (Level, &'m Aligned)> {
    measures.iter().filter_map(|measure| Some((measure.part.level, measure.part.aligned.as_ref()?)))
}

/// Their CPUs, with the names of their VMs.
fn each_cpu<'m>(
    measures: &'m [Measures<'m>],
    given: &'m Given,
) -> impl Iterator<Item = (Level, &'m Aligned, &'m Cpu, &'m str)> {
    let cpus = each_guest(measures).flat_map(|(level, aligned)| {
        let cpus = aligned.alignment.cpus.iter().zip(&aligned.vms);
        cpus.map(move |(cpu, vm)| (level, aligned, cpu, vm.as_str()))
    });
    cpus.filter(|(_, _, cpu, vm)| {
        given.narrow.wants_vm(vm) && given.narrow.vcpu.is_none_or(|wanted| cpu.vcpu.vcpu == Some(wanted))
    })
}

pub(super) fn alignment(measures: &[Measures<'_>], given: &Given) -> Table {
    let mut table = Table::new(&ALIGNMENT);
    for (_, aligned, cpu, vm) in each_cpu(measures, given) {
        let alignment = &aligned.alignment;
        let outside = &cpu.outside;
        let number: Cell = cpu.vcpu.vcpu.map(u64::from).into();
        let mut row: Vec<Cell> = vec![alignment.machine.as_str().into(), u64::from(cpu.cpu).into()];
        row.extend([alignment.below.as_str().into(), vm.into(), number, Cell::I64(cpu.vcpu.tid.into())]);
        row.push(cpu.paired_by.name().into());
        row.push(cpu.map.as_ref().map_or("none", Map::method).into());
        row.extend(counter(cpu));
        row.push(cpu.bounds.into());
        row.extend(cpu.pairs().map_or([const { Cell::Missing }; 3], |pairs| pairs.map(Cell::from)));
        row.extend([cpu.vcpu.steps.changes().into(), cpu.vcpu.steps.breaks.into()]);
        row.extend(offsets(alignment, cpu));
        let errors = alignment.errors_ns(cpu);
        row.extend([errors.map(|errors| errors.0).into(), errors.map(|errors| errors.1).into()]);
        row.extend([outside.events.into(), outside.unjudged.into(), outside.violations.into()]);
        row.push(alignment.axis.length_ns(outside.worst as f64).into());
        let joined = aligned.joined.as_ref();
        row.extend([joined.map(|joined| joined.0.as_str()).into(), joined.map(|joined| joined.1).into()]);
        table.push(row);
    }
    table
}

/// Where the offset comes from; the guest's ticks for each tick below, and where that comes from.
fn counter(cpu: &Cpu) -> [Cell; 3] {
    let told = cpu.told_ratio();
    let (offset, ratio) = match &cpu.map {
        Some(Map::Offsets(offsets, _)) => {
            let from = match (offsets.is_measured, offsets.is_held) {
                (true, _) => "measured",
                (false, true) => "debugfs",
                (false, false) => "kvm_write_tsc_offset",
            };
            (Some(from), told.or(Some((1.0, "assumed"))))
        }
        Some(Map::Lines(lines)) => {
            let (flat, steep) = lines.slopes();
            (None, Some((2.0 / (flat + steep), "causes")).filter(|_| cpu.one_counter))
        }
        Some(Map::Shift(..)) => (Some("time_shift"), told.filter(|_| cpu.one_counter)),
        Some(Map::DriftBand(_) | Map::OrderOnly(_)) | None => (None, told.filter(|_| cpu.one_counter)),
    };
    [offset.into(), ratio.map(|ratio| ratio.0).into(), ratio.map(|ratio| ratio.1).into()]
}

/// First and last offset in ns, and the drift between them.
fn offsets(alignment: &Alignment, cpu: &Cpu) -> [Cell; 3] {
    let Some([first, last]) = cpu.outside.ends else { return [const { Cell::Missing }; 3] };
    let below = |units: f64| alignment.axis.length_ns(units);
    let own = |units: f64| alignment.own_axis.length_ns(units);
    let offset = |(at, placed): (u64, u64)| Cell::I64((below(placed as f64) - own(at as f64)) as i64);
    let (below_ns, own_ns) = (below(last.1 as f64 - first.1 as f64), own(last.0 as f64 - first.0 as f64));
    let known = alignment.own_axis.has_scale() && own_ns > 0.0;
    let drift = known.then(|| Cell::I64(((below_ns / own_ns - 1.0) * 1e9) as i64));
    [offset(first), offset(last), drift.unwrap_or(Cell::Missing)]
}

pub(super) fn matched_exits(measures: &[Measures<'_>], given: &Given) -> Table {
    let mut table = Table::new(&MATCHED_EXITS);
    for (_, aligned, cpu, vm) in each_cpu(measures, given) {
        for (reason, sums) in by_reason(&aligned.alignment, cpu) {
            let mut row: Vec<Cell> = vec![aligned.alignment.machine.as_str().into(), vm.into()];
            row.extend([cpu.vcpu.vcpu.map(u64::from).into(), reason.into()]);
            row.extend(sums.counts.map(Cell::from));
            row.extend(sums.to_guest_ns.iter().map(|histogram| histogram.quantile(0.5).into()));
            table.push(row);
        }
    }
    table
}

pub(super) fn exit_sites(measures: &[Measures<'_>], given: &Given) -> Table {
    let mut table = Table::new(&EXIT_SITES);
    let wanted = |level: Level| given.narrow.wants_level(level);
    for (level, aligned) in each_guest(measures).filter(|(level, _)| wanted(*level)) {
        for site in aligned.sites.iter().filter(|site| given.narrow.wants_vm(&site.vm)) {
            let machine = aligned.alignment.machine.as_str();
            let mut row: Vec<Cell> = vec![machine.into(), site.vm.as_str().into(), level.to_string().into()];
            row.extend([
                site.reason.name().into(),
                site.symbol.as_deref().into(),
                site.count.into(),
                (site.total_ns as u64).into(),
            ]);
            table.push(row);
        }
    }
    table
}

pub(super) fn guest_tasks(measures: &[Measures<'_>], given: &Given) -> Table {
    let mut table = Table::new(&GUEST_TASKS);
    let wanted = |level: Level| given.narrow.wants_level(level);
    let mut cpus: Vec<_> = each_cpu(measures, given).filter(|(level, ..)| wanted(*level)).collect();
    cpus.sort_by_key(|(level, ..)| std::cmp::Reverse(*level));
    for (level, aligned, cpu, vm) in cpus {
        let own = aligned.alignment.tasks.range((cpu.cpu, None)..=(cpu.cpu, Some(i32::MAX)));
        let mut own: Vec<_> = own.map(|((_, tid), sums)| (*tid, sums)).collect();
        own.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.exits));
        for (tid, sums) in own {
            let machine = aligned.alignment.machine.as_str();
            let mut row: Vec<Cell> = vec![machine.into(), vm.into(), cpu.vcpu.vcpu.map(u64::from).into()];
            row.push(level.to_string().into());
            row.push(tid.map(|_| sums.comm.as_str()).into());
            row.push(tid.map_or(Cell::Missing, |tid| Cell::I64(tid.into())));
            row.extend([sums.exits.into(), (aligned.alignment.axis.length_ns(sums.cost as f64) as u64).into()]);
            table.push(row);
        }
    }
    table
}

#[derive(Default)]
struct Matched {
    /// Handed up, in the guest's trace, matched, of unknown order.
    counts: [u64; 4],
    /// Value, least, most.
    to_guest_ns: [Histogram; 3],
}

fn by_reason(alignment: &Alignment, cpu: &Cpu) -> BTreeMap<String, Matched> {
    let mut rows: BTreeMap<String, Matched> = BTreeMap::new();
    for reflected in &cpu.vcpu.reflected {
        rows.entry(reflected.reason.name()).or_default().counts[0] += 1;
    }
    for own in &cpu.own.exits {
        rows.entry(own.reason.name()).or_default().counts[1] += 1;
    }
    for (low, high) in &cpu.common {
        let (reflected, own) = (cpu.vcpu.reflected[*low], cpu.own.exits[*high]);
        let row = rows.entry(own.reason.name()).or_default();
        row.counts[2] += 1;
        let Some(placed) = cpu.map.as_ref().and_then(|map| map.place(own.at)) else { continue };
        row.counts[3] += u64::from(placed.low < reflected.at);
        for (histogram, at) in row.to_guest_ns.iter_mut().zip([placed.value, placed.low, placed.high]) {
            histogram.record(alignment.axis.length_ns(at.saturating_sub(reflected.at) as f64) as u64);
        }
    }
    rows
}
