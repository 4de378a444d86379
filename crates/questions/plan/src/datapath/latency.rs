//! How long packets take in each design, as others published it. Nothing is computed from it.
//!
//! Sources of `latency.tsv`: github.com/snabbco/snabb/issues/1085 (P. Emmerich, 82599); P. Veitch (BT), T. Long (Intel), NFV performance
//! optimization for vCPE, Intel 659921, 2016; the wiki of github.com/harshgondaliya/ovs-dpdk-with-tso;
//! github.com/cloud-bulldozer/k8s-netperf/pull/246, message of 1,024 bytes over an ordinary stack.

use base::{Table, TableSpec, shown, table};

pub(super) const LATENCY: TableSpec = table! {
    datapath.latency version 1:
    "How long packets took in one design, published: between which times, or as which part of another design's time (than).";
    key design, key what, f64("us") least, f64("us") most, text than, text load, text source;
    shown![
        "Latency that others published", 20;
        design, what, least: "from", most: "to", than: "part of it", load, source,
    ]
};

/// The rows of `latency.tsv`.
pub(super) fn table() -> Table {
    let mut table = Table::new(&LATENCY);
    for row in include_str!("latency.tsv").lines().filter(|line| !line.starts_with('#')).skip(1) {
        let cells: Vec<&'static str> = row.split('\t').collect();
        let [design, what, least, most, than, load, source] = cells[..] else { panic!("latency.tsv: {row}") };
        let known = |cell: &'static str| Some(cell).filter(|cell| *cell != "-");
        let us = |cell| known(cell).and_then(|cell| cell.parse::<f64>().ok());
        table.push(vec![
            design.into(),
            what.into(),
            us(least).into(),
            us(most).into(),
            known(than).into(),
            load.into(),
            source.into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_a_time_or_a_part_of_one_and_where_it_is_from() {
        let table = table();
        assert!(table.rows().count() >= 7);
        for row in table.rows() {
            assert!(row.number("least").is_some() != row.text("than").is_some());
            assert!(row.number("least") <= row.number("most") && row.text("source").is_some_and(|text| text.len() > 5));
        }
    }
}
