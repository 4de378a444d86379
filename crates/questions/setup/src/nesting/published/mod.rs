//! What others have measured: reference numbers with their source.
//!
//! They are drawn beside measured series and never mixed into them, and the cost model is held against them. Facts only: a
//! number, what it is of, and where it was read. A record that was only remembered does not stand here.

mod records;

pub use records::PUBLISHED;

use base::table::TableSpec;
use base::{Cell, Column, ColumnType, Table};

/// One published number.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// Unique: `pvm23.cpuid.l2`.
    pub id: &'static str,
    /// Who published it, and where in it.
    pub source: &'static str,
    /// Where it can be read: an address, or a commit.
    pub url_or_commit: &'static str,
    /// When.
    pub year: u16,
    /// Processor.
    pub machine: &'static str,
    /// Kernel or hypervisor of the levels that run it.
    pub kernel: &'static str,
    /// Level at which the operation ran: 0 is bare metal.
    pub level: u8,
    /// The operation, by the name that `bench exits` gives it where it has one.
    pub op: &'static str,
    /// What ran it, where that is not plain KVM: `evmcs`, `pvm`.
    pub variant: &'static str,
    /// `cycles`, `us`, `ns`, `s`, `percent`, `exits`.
    pub unit: &'static str,
    /// `mean`, `median`, or what its source calls it.
    pub statistic: &'static str,
    /// The number.
    pub value: f64,
    /// Whether its source was read, or another text that quotes it.
    pub status: Status,
}

/// How a number came here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Its source was read.
    Read,
    /// A text that quotes it was read.
    Quoted,
}

impl Status {
    /// As it is written in every output.
    pub fn name(self) -> &'static str {
        match self {
            Status::Read => "read",
            Status::Quoted => "quoted",
        }
    }
}

/// The record called `id`.
///
/// # Panics
/// If there is none: ids are written in this program.
pub fn record(id: &str) -> &'static Published {
    PUBLISHED.iter().find(|record| record.id == id).unwrap_or_else(|| panic!("no published record {id}"))
}

/// The number of the record called `id`, in cycles where its clock is known.
///
/// # Panics
/// As [`record`].
pub fn value(id: &str) -> f64 {
    record(id).value
}

/// All records.
pub const TABLE: TableSpec = TableSpec {
    section: "plan",
    name: "published",
    version: 2,
    row: "One published number: what it is of, on which processor and kernel, and where it was read.",
    columns: &[
        Column::key("id"),
        Column::text("source"),
        Column::text("url_or_commit"),
        Column::value("year", "", ColumnType::U64),
        Column::text("processor"),
        Column::text("kernel"),
        Column::text("level"),
        Column::text("op"),
        Column::text("variant"),
        Column::text("unit"),
        Column::text("statistic"),
        Column::value("value", "", ColumnType::F64),
        Column::text("status"),
    ],
    shown: None,
};

/// Table [`TABLE`].
pub fn table() -> Table {
    let mut table = Table::new(&TABLE);
    for record in PUBLISHED {
        table.push(vec![
            record.id.into(),
            record.source.into(),
            record.url_or_commit.into(),
            Cell::U64(record.year.into()),
            record.machine.into(),
            record.kernel.into(),
            format!("L{}", record.level).into(),
            record.op.into(),
            record.variant.into(),
            record.unit.into(),
            record.statistic.into(),
            record.value.into(),
            record.status.name().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_record_has_an_id_of_its_own_and_says_where_it_comes_from() {
        let ids: BTreeSet<&str> = PUBLISHED.iter().map(|record| record.id).collect();
        assert_eq!(ids.len(), PUBLISHED.len());
        for record in PUBLISHED {
            assert!(!record.source.is_empty() && !record.url_or_commit.is_empty(), "{}", record.id);
            assert!(record.value > 0.0 && record.year >= 2010 && record.level <= 3, "{}", record.id);
        }
    }

    #[test]
    fn the_seeds_numbers_are_there_as_they_were_published() {
        assert_eq!(value("fosdem18.cpuid.l2"), 20_700.0);
        assert_eq!(value("fosdem18.cpuid.l2.evmcs"), 8_900.0);
        let forks = ["fork.l1", "fork32.l1", "fork32.l2"].map(|op| value(&format!("pvm23.{op}")));
        assert_eq!(forks, [82.13, 513.5, 812.5]);
        let bitmap = record("bitmap18.rdmsr.l2");
        assert_eq!((bitmap.year, bitmap.kernel), (2018, "L0 Hyper-V; L1 Linux 4.18, under development"));
        let haxm = PUBLISHED.iter().filter(|record| record.id.starts_with("haxm18"));
        assert!(haxm.into_iter().all(|record| record.statistic.ends_with("mean")), "its counts are averages");
        assert_eq!(value("fosdem18.build.l1"), 26.0 * 60.0 + 42.187);
        let levels: Vec<u8> = PUBLISHED
            .iter()
            .filter(|record| record.op == "vmcall" && record.id.starts_with("dvh20"))
            .map(|record| record.level)
            .collect();
        assert_eq!(levels, [1, 2, 3]);
    }
}
