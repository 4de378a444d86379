//! The files of one recording, in memory; and the recording that such files are.

use crate::{Error, digest, layout};
use analysis::fleet::{FAILURES, Fleet, Id, STORED, host, stored};
use analysis::{Answers, Case, Given};
use base::recording::{Emulator, Recording};
use base::table_file::FINDINGS;
use base::{Problem, Table, TableSpec};
use columnar::Format;

/// What a data set gets of one recording.
pub struct Added {
    pub id: Id,
    /// Paths in the data set with their content, in the order in which they are to be written.
    pub files: Vec<(String, Vec<u8>)>,
    pub problems: Vec<Problem>,
    /// Questions that have no answer, in words.
    pub failed: Vec<String>,
}

/// Which folders `recording` has in a data set, and its digest: nothing is analysed for that.
///
/// # Errors
/// If it cannot be read.
pub fn identity(recording: &Recording, given: &Given) -> Result<(Id, String), Error> {
    let digest = digest::digest(recording)?;
    let case = Case::new(analysis::open(recording.clone())?, given.clone());
    Ok((Id { host: host(&case), recording: digest::id(&digest) }, digest))
}

/// Analyses a case whose recording has this digest: the answers to all questions, and what fleets are compared by.
///
/// # Errors
/// If it has no answer, or a table cannot be written.
pub fn added(case: &Case, digest: &str) -> Result<Added, Error> {
    let recording = &case.input().recording;
    let Answers { sections, problems, failed } = Answers::of(case);
    if sections.is_empty() {
        let mut failed = failed.into_iter();
        return Err(failed.next().map_or_else(|| Error::Nothing(recording.title()), Error::from));
    }
    let stored = stored(case, digest, layout::SCHEMA);
    let id = Id { host: stored.host, recording: digest::id(digest) };
    let emulated = recording.emulated.map(Emulator::name);
    let tables = columnar::contents(&sections, None, emulated, Format::Parquet)?;
    let mut files: Vec<(String, Vec<u8>)> =
        tables.into_iter().map(|(address, bytes)| (layout::path(&address, &id), bytes)).collect();
    for table in stored.tables.iter().chain([&stored.recording]) {
        let bytes = columnar::bytes(table, emulated, Format::Parquet)?;
        files.push((layout::path(&table.spec.address(), &id), bytes));
    }
    Ok(Added { id, files, problems, failed: failed.iter().map(ToString::to_string).collect() })
}

/// The file that says why the recording at `source` was not added: its path and its content.
///
/// # Errors
/// If it cannot be written as Parquet.
pub fn failure(source: &str, error: &str) -> Result<(String, Vec<u8>), Error> {
    let mut table = Table::new(&FAILURES);
    table.push(vec![source.into(), error.into()]);
    Ok((layout::failure_path(source), columnar::bytes(&table, None, Format::Parquet)?))
}

/// Adds the recording with these files to a fleet: those of the tables that answers need; others are ignored.
///
/// # Errors
/// If one of them is damaged.
pub fn read(fleet: &mut Fleet, id: &Id, files: Vec<(String, Vec<u8>)>) -> Result<(), Error> {
    let mut tables = Vec::new();
    for (path, bytes) in files {
        let address = path.split('/').next().unwrap_or_default();
        let known: Option<&'static TableSpec> =
            STORED.iter().chain(&[&FAILURES, &FINDINGS]).find(|spec| spec.address() == address).copied();
        if let Some(spec) = known {
            tables.push(columnar::read(bytes, spec).map_err(|source| Error::Part { path: path.clone(), source })?);
        }
    }
    Ok(fleet.add(id, &tables)?)
}
