//! The tables of section `migration`.

use super::goals::GOALS;
use super::history::{CORRECTED, HISTORY};
use super::methods::METHODS;
use super::model::memory::Memory;
use super::model::working_set::WorkingSet;
use super::predict::Prediction;
use base::prediction::Said;
use base::{Cell, Table, TableSpec, shown, table};

/// All tables, in reading order.
pub const TABLES: &[&TableSpec] =
    &[&PREDICTION, &CORRECTED, &HISTORY, &METHODS, &WAYS_OUT, &WORKING_SET, &MEMORY, &GOALS];

const MOST_ROWS: usize = 20;

const PREDICTION: TableSpec = table! {
    migration.prediction version 1:
    "The prediction of one quantity: `low` and `likely` with dirty bits cleared as pages are sent, `high` as passes begin, \
          `naive` without a working set; null is never. `passes` counts those before the final one; `scan` is looking for zeros, \
          which `total` has where it takes longer than the first pass sends.";
    key what, f64("") low, f64("") likely, f64("") high, text unit, f64("") naive;
};

const WAYS_OUT: TableSpec = table! {
    migration.ways_out version 1:
    "The least change of one thing alone that ends a migration whose passes never get short enough.";
    key change, f64("") value, text unit;
};

pub(super) const WORKING_SET: TableSpec = table! {
    migration.working_set version 1:
    "Pages that the guest dirties in a window of time, and where that is known from; with a 95 % interval where it was sampled.";
    key_u64("ns") window_ns, count pages, text by, count pages_low, count pages_high;
    shown!["Pages that the guest dirties", MOST_ROWS; window_ns: "in", pages, by: "from"]
};

pub(super) const MEMORY: TableSpec = table! {
    migration.memory version 1:
    "How much of the guest's memory is of one kind: `zero` with its holes, `one value` other than that, `compressible` by a tenth or more, \
          `hole` to which nothing was ever written, `swapped` out and not read; what was sampled has a 95 % interval.";
    share share, share low, share high, key kind;
};

/// Windows of the working set that are listed.
pub(super) const WINDOWS_NS: [u64; 9] = [
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
];

pub(super) fn prediction(said: &[Said]) -> Table {
    let mut table = Table::new(&PREDICTION);
    for said in said {
        let cell = |value: Option<f64>| value.map_or(Cell::Missing, Cell::F64);
        let [low, likely, high, naive] = [said.low, said.likely, said.high, said.naive].map(cell);
        table.push(vec![said.what.as_str().into(), low, likely, high, said.unit.as_str().into(), naive]);
    }
    table
}

pub(super) fn ways_out(said: &Prediction) -> Table {
    let mut table = Table::new(&WAYS_OUT);
    let Some(ways) = &said.ways_out else { return table };
    let rows = [
        ("downtime_limit", Some(ways.limit_s * 1e9), "ns"),
        ("bandwidth", Some(ways.bytes_per_s), "bytes/s"),
        ("throttle", ways.throttle, "share"),
    ];
    for (change, value, unit) in rows {
        table.push(vec![change.into(), value.map_or(Cell::Missing, Cell::F64), unit.into()]);
    }
    table
}

pub(super) fn working_set(working_set: &WorkingSet) -> Table {
    let mut table = Table::new(&WORKING_SET);
    let by = match working_set {
        WorkingSet::Cyclic(_) => "model: written in order",
        WorkingSet::Uniform(_) => "model: written anywhere",
        WorkingSet::Measured(_) => "points, straight between them",
    };
    for window_ns in WINDOWS_NS {
        let pages = working_set.pages(window_ns as f64 / 1e9).round() as u64;
        table.push(vec![window_ns.into(), pages.into(), by.into(), Cell::Missing, Cell::Missing]);
    }
    table
}

pub(super) fn memory(memory: &Memory) -> Table {
    let mut table = Table::new(&MEMORY);
    let share = Cell::F64(memory.zero_share);
    table.push(vec![share.clone(), share.clone(), share, "zero".into()]);
    table
}
