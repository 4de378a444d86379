//! Table and figure `ladder`: what an operation costs from level to level, ours beside what others have published.
//!
//! ```text
//! cpuid   L0  published   180        L1  measured 2,400       L2  published 20,700 ; 8,900 with eVMCS
//! ```
//! Measured, emulated and published numbers stand in rows of their own and are never computed with each other: processors,
//! kernels and years differ. Only operations that were measured here are told.

use super::{clocks, exits};
use base::figure::{Drawing, Figure, Mark, Point, PointGroup};
use base::{Cell, Level, Table, TableSpec, table};
use facts::benches::{BenchRun, Benches};
use facts::published::{ExitCost, exit_costs};
use facts::statistics::spread;

/// Tests of L2, and the operation that they carry out there.
const NESTED: &[(&str, &str)] = &[("l2_cpuid", "cpuid"), ("l2_vmcall", "vmcall")];
/// Our names of operations that a publication calls otherwise, with its name.
const ALIASES: &[(&str, &str)] = &[("pci-mem-datamatch-eventfd", "pci-mem")];

#[derive(Debug, Clone)]
struct Rung {
    /// None of a published one.
    machine: Option<String>,
    op: String,
    /// Depth of the level, and how it is written.
    level: (u8, String),
    mark: Mark,
    cycles: Option<f64>,
    ns: Option<f64>,
    /// Cycles between which the median lies.
    interval: Option<(f64, f64)>,
    ns_per_tick: Option<f64>,
    statistic: String,
    source: String,
}

/// The ladder of what was measured; `None` if nobody has published anything to hold it against.
pub(crate) fn ladder(benches: &Benches) -> Option<(Table, Figure)> {
    let mark = if benches.emulated.is_some() { Mark::Emulated } else { Mark::Measured };
    let mut rungs = Vec::new();
    for row in exits::rows(benches).iter().filter(|row| row.launches > 0) {
        let Some(run) = benches.runs.iter().find(|run| run.machine == row.machine) else { continue };
        let nested = NESTED.iter().find(|(name, _)| *name == row.name).map(|(_, op)| *op);
        let deeper = if row.place == "here" { 0 } else { 1 + u8::from(nested.is_some()) };
        rungs.push(Rung {
            machine: Some(row.machine.clone()),
            op: nested.unwrap_or_else(|| published_name(&row.name)).to_owned(),
            level: level(run, deeper),
            mark,
            cycles: row.p50(),
            ns: row.p50().zip(super::ns_per_tick(&run.bench)).map(|(cycles, ns)| cycles * ns),
            interval: row.interval(),
            ns_per_tick: super::ns_per_tick(&run.bench),
            statistic: "median".to_owned(),
            source: format!("{}, {}", row.machine, row.place),
        });
    }
    for row in clocks::rows(benches).iter().filter(|row| row.clock == "REALTIME") {
        let Some(run) = benches.runs.iter().find(|run| run.machine == row.machine) else { continue };
        rungs.push(Rung {
            machine: Some(row.machine.clone()),
            op: "clock_gettime".to_owned(),
            level: level(run, 0),
            mark,
            cycles: row.p50(),
            ns: row.p50_ns(),
            interval: spread::interval(&row.library),
            ns_per_tick: row.ns_per_tick,
            statistic: "median".to_owned(),
            source: format!("{}, here, {}", row.machine, row.source.as_deref().unwrap_or("unknown clocksource")),
        });
    }
    let mut ops: Vec<String> = Vec::new();
    for rung in &rungs {
        if !ops.contains(&rung.op) && exit_costs().iter().any(|record| record.op == rung.op) {
            ops.push(rung.op.clone());
        }
    }
    rungs.retain(|rung| ops.contains(&rung.op));
    rungs.extend(exit_costs().iter().filter(|record| ops.contains(&record.op)).filter_map(published));
    let place = |rung: &Rung| ops.iter().position(|op| *op == rung.op);
    rungs.sort_by_key(|rung| (place(rung), rung.level.0, rung.mark == Mark::Published));
    (!rungs.is_empty()).then(|| (filled(&rungs), drawn(&ops, &rungs)))
}

fn published_name(name: &str) -> &str {
    ALIASES.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, theirs)| *theirs)
}

/// The level of a machine, so many guests deeper. A machine that was called L0 and has a hypervisor below is L1 at least.
fn level(run: &BenchRun, deeper: u8) -> (u8, String) {
    let below = run.bench.environment.get("hypervisor below").is_some_and(|said| said == "yes");
    match run.level {
        Level::At(0) if below => (1 + deeper, format!("L{}?", 1 + deeper)),
        Level::At(level) => (level + deeper, format!("L{}", level + deeper)),
        unnumbered => (u8::MAX, unnumbered.to_string()),
    }
}

/// A rung of somebody else; none if its unit is of another kind.
fn published(record: &ExitCost) -> Option<Rung> {
    let (cycles, ns) = match record.amount() {
        ("cycles", cycles) => (Some(cycles), None),
        ("us", us) => (None, Some(us * 1e3)),
        ("ns", ns) => (None, Some(ns)),
        _ => return None,
    };
    let variant = if record.variant.is_empty() { String::new() } else { format!(", {}", record.variant) };
    Some(Rung {
        machine: None,
        op: record.op.clone(),
        level: (record.level, format!("L{}{variant}", record.level)),
        mark: Mark::Published,
        cycles,
        ns,
        interval: None,
        ns_per_tick: None,
        statistic: record.statistic.clone(),
        source: record.id.clone(),
    })
}

pub(crate) const LADDER: TableSpec = table! {
    nesting.ladder version 2:
    "What one operation costs at one level: measured here, emulated, or published by others (then without a machine).";
    key machine, key op, key level, key mark, f64("cycles") cycles, f64("ns") ns, text statistic, key source;
};

fn filled(rungs: &[Rung]) -> Table {
    let mut table = Table::new(&LADDER);
    let rounded = |value: Option<f64>| Cell::from(value.map(|value| (value * 100.0).round() / 100.0));
    for rung in rungs {
        table.push(vec![
            rung.machine.clone().into(),
            rung.op.as_str().into(),
            rung.level.1.as_str().into(),
            rung.mark.name().into(),
            rounded(rung.cycles),
            rounded(rung.ns),
            rung.statistic.as_str().into(),
            rung.source.as_str().into(),
        ]);
    }
    table
}

/// The same as a drawing: a scale for each operation and unit, ours on both.
fn drawn(ops: &[String], rungs: &[Rung]) -> Figure {
    let mut groups = Vec::new();
    for op in ops {
        for unit in ["cycles", "ns"] {
            let points: Vec<Point> =
                rungs.iter().filter(|rung| rung.op == *op).filter_map(|rung| point(rung, unit)).collect();
            // Ours alone are in table `exits`.
            if points.iter().any(|point| point.mark == Mark::Published) {
                groups.push(PointGroup { title: op.clone(), unit, points });
            }
        }
    }
    let ours = if rungs.iter().any(|rung| rung.mark == Mark::Emulated) {
        "emulated: the emulator's cost"
    } else {
        "measured here"
    };
    Figure {
        id: "ladder".to_owned(),
        title: "Cost by level, with published values".to_owned(),
        caption: format!(
            "Dots are {ours}, with the interval of the median; diamonds were published, by the source named, on other \
             machines. Scales are logarithmic."
        ),
        in_terminals: true,
        drawing: Drawing::Points(groups),
    }
}

fn point(rung: &Rung, unit: &str) -> Option<Point> {
    let (value, times) = match unit {
        "cycles" => (rung.cycles?, 1.0),
        _ => (rung.ns?, rung.ns_per_tick.unwrap_or(1.0)),
    };
    Some(Point {
        label: rung.level.1.clone(),
        value,
        interval: rung.interval.map(|(low, high)| (low * times, high * times)),
        mark: rung.mark,
        source: whose(&rung.source),
    })
}

/// Who published the cost with that id, and on which processor where they had several; what was measured here says where.
fn whose(source: &str) -> String {
    let record = exit_costs().iter().find(|record| record.id == source);
    record.map_or(source.to_owned(), |record| {
        let on = if record.processor.is_empty() { String::new() } else { format!(", {}", record.processor) };
        format!("{}{on}", facts::published::source(&record.source).short)
    })
}
