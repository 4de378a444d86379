//! Recordings of the repository, and what is read of answers to them.

use base::figure::Figure;
use base::recording::Recording;
use base::table::Row;
use base::{Cell, Section};
use kvmscope_analysis::{Case, Given};
use std::path::{Path, PathBuf};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

pub(crate) fn case(path: &Path, given: Given) -> Case {
    Case::new(kvmscope_analysis::open(Recording::open(path).unwrap()).unwrap(), given)
}

pub(crate) fn figure<'s>(section: &'s Section, id: &str) -> &'s Figure {
    section.figures.iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("no figure {id}"))
}

/// A cell that is a whole number.
pub(crate) fn number(row: &Row<'_>, column: &str) -> u64 {
    match row.cell(column) {
        Some(Cell::U64(value)) => *value,
        other => panic!("{column}: {other:?}"),
    }
}

/// Copies a directory with all that is in it.
pub(crate) fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copied(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
