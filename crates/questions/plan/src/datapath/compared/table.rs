//! The table of all designs, in which lengths stand side by side.

use super::{Basis, Compared, Entry};
use crate::datapath::model::hops::Range;
use base::datapath::Traffic;
use base::number::{decimals, many};
use base::table::Across;
use base::{Shown, Table, TableSpec, shown, table};

const MOST_ROWS: usize = 60;

pub(in crate::datapath) const DESIGNS: TableSpec = table! {
    datapath.designs version 1:
    "One design of one length and size, for comparison: gbps and system_pps are what all VNFs send, least, likely and most; bound_pps is what \
          they cannot exceed where no rate is known; kind says what the numbers stand on. length, shown_gbps, shown_mpps, shown_cores, limit, moves, power and cost \
          are texts for people; all but the first two are alike for all lengths, mpps, limit, power and cost those of the longest; watts and price are those of cores.";
    key pattern, key frames, key design, key_u64("count") vnfs, key_u64("") size_bytes, text length, text shown_gbps, text shown_mpps,
    text shown_cores, text limit, text moves, f64("") gbps, f64("") low_gbps, f64("") high_gbps, f64("") system_pps,
    f64("") low_system_pps, f64("") high_system_pps, f64("") bound_pps, text bound_by, count cores, key_u64("count") pmd_cores,
    flag migratable, text kind, text shape, f64("") watts, f64("") price, text power, text cost;
    Shown {
        leads: true,
        grouped_by: Some("pattern"),
        whole: &["frames", "design"],
        across: Some(Across { by: "length", cell: "shown_gbps", after: 3 }),
        ..shown![
            "Gb/s that all VNFs send, by their number", MOST_ROWS;
            pattern: "", frames: "bytes", design, shown_mpps: "Mpps", shown_cores: "cores", limit, moves: "VMs move", power: "W", cost: "price",
        ]
    }
};

/// Three digits.
pub(super) fn three(value: f64) -> String {
    let digits = match value {
        0.0 => 0,
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.995 => 2,
        _ => 3,
    };
    decimals(value, digits)
}

/// `10.1-35.3`, or one number where both are the same.
pub(super) fn span(least: f64, most: f64) -> String {
    let (least, most) = (three(least), three(most));
    if least == most { least } else { format!("{least}-{most}") }
}

/// A rate in a cell: the likely one where a model knows the host, else the range.
fn cell(entry: &Entry, per: f64) -> Option<String> {
    match (&entry.system_pps, entry.bound_pps) {
        (Some(range), _) if entry.basis == Basis::Modelled => Some(three(range.middle * per)),
        (Some(Range { least, most, .. }), _) => Some(span(least * per, most * per)),
        (None, Some(bound)) => Some(format!("< {}", three(bound * per))),
        (None, None) => None,
    }
}

/// The rows: of each pattern, size and design all lengths.
pub(in crate::datapath) fn table(compared: &Compared<'_>) -> Table {
    let mut table = Table::new(&DESIGNS);
    let (watts, price) = (compared.plan.core_watts, compared.plan.core_price);
    let is_alike = |a: &Entry, b: &Entry| a.pattern == b.pattern && a.frames == b.frames && a.family == b.family;
    for lengths in compared.entries.chunk_by(is_alike) {
        let Some(longest) = lengths.last() else { continue };
        let mut cores: Vec<String> = lengths.iter().map(|entry| entry.cores.to_string()).collect();
        cores.dedup();
        let cores = cores.join(",");
        for entry in lengths {
            let bits = entry.frames.bytes() * 8.0 / 1e9;
            let [low, likely, high] = match &entry.system_pps {
                Some(range) => range.each().map(|pps| Some(*pps)),
                None => [None; 3],
            };
            let is_modelled = entry.basis == Basis::Modelled;
            let likely = likely.filter(|_| is_modelled);
            let what = if entry.pattern == Traffic::Chain { "VNF" } else { "VM" };
            table.push(vec![
                entry.pattern.name().into(),
                entry.frames.to_string().into(),
                entry.family.name().into(),
                u64::from(entry.vnfs).into(),
                entry.frames.size_bytes().into(),
                many(u64::from(entry.vnfs), what).into(),
                cell(entry, bits).into(),
                cell(longest, 1e-6).into(),
                cores.as_str().into(),
                longest.bound_by.into(),
                if entry.design.is_migratable() { "yes" } else { "no" }.into(),
                likely.map(|pps| pps * bits).into(),
                low.map(|pps| pps * bits).into(),
                high.map(|pps| pps * bits).into(),
                likely.into(),
                low.into(),
                high.into(),
                entry.bound_pps.into(),
                entry.bound_by.into(),
                u64::from(entry.cores).into(),
                entry.pmd_cores.map(u64::from).into(),
                entry.design.is_migratable().into(),
                entry.basis.name().into(),
                entry.design.shape().into(),
                watts.map(|each| each * f64::from(entry.cores)).into(),
                price.map(|each| each * f64::from(entry.cores)).into(),
                watts.map(|each| three(each * f64::from(longest.cores))).into(),
                price.map(|each| three(each * f64::from(longest.cores))).into(),
            ]);
        }
    }
    table
}
