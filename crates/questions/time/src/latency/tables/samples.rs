//! What programs measured.

use base::{Cell, Table, TableSpec, shown, table};
use facts::Case;
use facts::samples::{SampleFile, Samples};
use facts::statistics::proportion::upper_bound;

/// Samples of programs that measure latencies.
pub(super) const SAMPLES: TableSpec = table! {
    latency.samples version 1:
    "The samples of one thread or CPU of one result, and how many exceed one limit of the budget: at least and at most, because programs round.";
    key machine, key source, key thread, key_u64("") cpu, key_u64("ns") limit_ns, count count, ns min_ns,
    f64("ns") mean_ns, ns p99_ns, ns p999_ns, ns max_ns, count overflow, count over_low, count over_high,
    share bound_p95, key file;
    shown![
        "What programs measured; over: samples over the limit, at least and at most", 16;
        machine, source: "program", thread, cpu: "CPU", count: "samples", min_ns: "min", mean_ns: "mean",
        p99_ns: "p99", p999_ns: "p99.9", max_ns: "max", overflow, limit_ns: "limit", over_low: "over",
        over_high: "at most",
    ]
};

pub(super) fn samples(case: &Case) -> Table {
    let mut table = Table::new(&SAMPLES);
    let mut all: Vec<_> = case.results().each().collect();
    // Who sees no more than the first rows sees the worst.
    if all.len() > MOST_IN_ORDER {
        all.sort_by_key(|(_, samples)| std::cmp::Reverse(samples.extremes_ns().1));
    }
    for (file, samples) in all {
        let limits = case.budget().map(|budget| budget.limits_ns(samples.measures())).unwrap_or_default();
        if limits.is_empty() {
            table.push(row(file, samples, None));
        }
        limits.iter().for_each(|limit_ns| table.push(row(file, samples, Some(*limit_ns))));
    }
    table
}

/// As many rows as terminals and pages show stand in the order of their files.
const MOST_IN_ORDER: usize = 16;

/// How sure the bound of the table is.
const SURE: f64 = 0.95;

fn row(file: &SampleFile, samples: &Samples, limit_ns: Option<u64>) -> Vec<Cell> {
    let over = limit_ns.map(|limit_ns| samples.over(limit_ns));
    let (min_ns, max_ns) = samples.extremes_ns();
    // Of n samples no quantile above 1 - 1/n is told: it would be the longest one again.
    let quantile = |one_of: u64, at: f64| {
        if samples.count >= one_of { Cell::from(samples.quantile_ns(at)) } else { Cell::Missing }
    };
    vec![
        file.machine.as_str().into(),
        samples.source.name().into(),
        samples.thread.as_str().into(),
        Cell::from(samples.cpu.map(u64::from)),
        limit_ns.into(),
        samples.count.into(),
        Cell::from(min_ns),
        samples.mean_ns.map_or(Cell::Missing, Cell::F64),
        quantile(100, 0.99),
        quantile(1_000, 0.999),
        Cell::from(max_ns),
        samples.overflow.into(),
        over.map(|(low, _)| low).into(),
        over.map(|(_, high)| high).into(),
        over.and_then(|(_, high)| upper_bound(high, samples.count, SURE)).into(),
        file.path.as_str().into(),
    ]
}
