//! The tables of a recording as parts of a data set.

use super::Seed;
use analysis::{Answers, Case, Given};
use base::recording::Recording;
use columnar::Format;
use std::io;
use std::path::Path;

pub(super) fn seeds(root: &Path) -> io::Result<Vec<Seed>> {
    let recording = Recording::open(&root.join("fixtures/nested-svm-toy")).map_err(io::Error::other)?;
    let case = Case::new(analysis::open(recording).map_err(io::Error::other)?, Given::default());
    let sections = Answers::of(&case).sections;
    let mut seeds = Vec::new();
    let tables = sections.iter().flat_map(|section| &section.tables).filter(|table| !table.rows.is_empty());
    for table in tables.take(SEEDS) {
        let bytes = columnar::bytes(table, None, Format::Parquet).map_err(io::Error::other)?;
        seeds.push(Seed::new("parquet", table.spec.address(), bytes));
    }
    Ok(seeds)
}

/// Tables of different columns are enough to meet every kind of page.
const SEEDS: usize = 6;
