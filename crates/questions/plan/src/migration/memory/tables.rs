//! The tables of a survey.

use super::super::tables::{MEMORY, WORKING_SET};
use super::share::Share;
use super::survey::Survey;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};

const F64: ColumnType = ColumnType::F64;

/// What compressing makes of a guest's memory.
pub const COMPRESSION: TableSpec = TableSpec {
    section: "migration",
    name: "compression",
    version: 1,
    row: "What compressing makes of memory that is not zeros: bytes given for one that comes out, and what one core takes in a second.",
    columns: &[
        Column::key("method"),
        Column::count("groups"),
        Column::value("ratio", "", F64),
        Column::value("ratio_low", "", F64),
        Column::value("ratio_high", "", F64),
        Column::value("rate", "bytes/s", F64),
    ],
    shown: Some(Shown::of(
        "What compressing makes of memory that is not zeros",
        &[
            ("method", "by"),
            ("groups", "groups"),
            ("ratio", "ratio"),
            ("ratio_low", "from"),
            ("ratio_high", "to"),
            ("rate", "one core takes"),
        ],
        10,
    )),
};

/// What XBZRLE makes of pages that changed.
pub const XBZRLE: TableSpec = TableSpec {
    section: "migration",
    name: "xbzrle",
    version: 1,
    row: "What XBZRLE makes of the pages of a sample that changed in a window: which share comes out shorter than a page, and how long these are.",
    columns: &[
        Column { key: true, ..Column::ns("window_ns") },
        Column::count("changed"),
        Column::share("shorter"),
        Column::share("shorter_low"),
        Column::share("shorter_high"),
        Column::value("mean_bytes", "bytes", F64),
    ],
    shown: Some(Shown::of(
        "What XBZRLE makes of pages that changed",
        &[
            ("window_ns", "in"),
            ("changed", "changed"),
            ("shorter", "shorter"),
            ("shorter_low", "from"),
            ("shorter_high", "to"),
            ("mean_bytes", "a page becomes"),
        ],
        20,
    )),
};

/// What looking did to the guest's process.
pub const LOOKED: TableSpec = TableSpec {
    section: "migration",
    name: "looked",
    version: 1,
    row: "What the guest's process (resident) and the files behind its memory (allocated) took before it was looked at, and after.",
    columns: &[Column::key("what"), Column::value("before", "bytes", F64), Column::value("after", "bytes", F64)],
    shown: None,
};

/// Shares of memory, as a table that plans have as well.
pub(in super::super) fn memory(survey: &Survey) -> Table {
    let mut table = Table::new(&MEMORY);
    let exactly = |count: f64| Some(Share::exactly(count / survey.pages));
    let kinds = [
        ("zero", survey.zero()),
        ("one value", survey.one_value()),
        ("compressible", survey.compressible()),
        ("hole", exactly(survey.holes)),
        ("swapped", exactly(survey.swapped)),
    ];
    for (kind, Share { share, low, high }) in kinds.into_iter().filter_map(|(kind, share)| Some((kind, share?))) {
        table.push(vec![share.into(), low.into(), high.into(), kind.into()]);
    }
    table
}

/// What was dirtied in each window that was watched.
pub(in super::super) fn working_set(survey: &Survey) -> Table {
    let mut table = Table::new(&WORKING_SET);
    for one in &survey.dirtied {
        let (low, high) = one.interval.unzip();
        let pages = |pages: f64| Cell::U64(pages.round() as u64);
        let [low, high] = [low, high].map(|bound| bound.map_or(Cell::Missing, pages));
        table.push(vec![one.window_ns.into(), pages(one.pages), one.by.as_str().into(), low, high]);
    }
    table
}

pub(in super::super) fn compression(survey: &Survey) -> Table {
    let mut table = Table::new(&COMPRESSION);
    if let Some(one) = &survey.compressed {
        let rounded = |value: f64| Cell::F64((value * 1e4).round() / 1e4);
        let (low, high) = one.interval.unzip();
        let [low, high] = [low, high].map(|bound| bound.map_or(Cell::Missing, rounded));
        let rate = Cell::F64(one.bytes_per_s.round());
        table.push(vec![one.method.as_str().into(), (one.groups as u64).into(), rounded(one.ratio), low, high, rate]);
    }
    table
}

pub(super) fn xbzrle(survey: &Survey) -> Table {
    let mut table = Table::new(&XBZRLE);
    for (window_ns, one) in survey.dirtied.iter().filter_map(|one| Some((one.window_ns, one.xbzrle?))) {
        let Share { share, low, high } = one.shorter;
        let mean = one.mean_bytes.map_or(Cell::Missing, Cell::F64);
        table.push(vec![window_ns.into(), one.changed.into(), share.into(), low.into(), high.into(), mean]);
    }
    table
}

pub(super) fn looked(survey: &Survey) -> Table {
    let mut table = Table::new(&LOOKED);
    for (what, before, after) in &survey.taken {
        table.push(vec![(*what).into(), (*before).into(), (*after).into()]);
    }
    table
}
