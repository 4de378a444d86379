//! The tables of a survey.

use super::super::tables::{MEMORY, WORKING_SET};
use super::share::Share;
use super::survey::Survey;
use base::{Cell, Table, TableSpec, shown, table};

/// What compressing makes of a guest's memory.
pub const COMPRESSION: TableSpec = table! {
    migration.compression version 1:
    "What compressing makes of memory that is not zeros: bytes given for one that comes out, and what one core takes in a second.";
    key method, count groups, f64("") ratio, f64("") ratio_low, f64("") ratio_high, f64("bytes/s") rate;
    shown![
        "What compressing makes of memory that is not zeros", 10;
        method: "by", groups, ratio, ratio_low: "from", ratio_high: "to", rate: "one core takes",
    ]
};

/// What XBZRLE makes of pages that changed.
pub const XBZRLE: TableSpec = table! {
    migration.xbzrle version 1:
    "What XBZRLE makes of the pages of a sample that changed in a window: which share comes out shorter than a page, and how long these are.";
    key_u64("ns") window_ns, count changed, share shorter, share shorter_low, share shorter_high,
    f64("bytes") mean_bytes;
    shown![
        "What XBZRLE makes of pages that changed", 20;
        window_ns: "in", changed, shorter, shorter_low: "from", shorter_high: "to", mean_bytes: "a page becomes",
    ]
};

/// What looking did to the guest's process.
pub(crate) const LOOKED: TableSpec = table! {
    migration.looked version 1:
    "What the guest's process (resident) and the files behind its memory (allocated) took before the survey, and after.";
    key what, f64("bytes") before, f64("bytes") after;
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
