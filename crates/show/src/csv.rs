//! Tables for spreadsheets: a file per table, its header the column names, and one file of all findings.
//!
//! A missing value is an empty field. Each file is written under another name and renamed, so that a reader sees it
//! whole or not at all.
//!
//! Names of threads and VMs are chosen by whoever runs on the traced machines, and a spreadsheet calculates what begins like
//! a formula: such text gets an apostrophe in front, as OWASP advises ("CSV Injection"). What misleads a reader or commands
//! a terminal is replaced as in every output ([`base::plain`]), but for tabs and line ends. Numbers stay as they are.

use base::plain::misleads;
use base::table::hexadecimal;
use base::table_file::TableFile;
use base::{Cell, Section};
use csv::Writer;
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct Error {
    pub path: PathBuf,
    pub source: std::io::Error,
}

/// Writes `<section>.<table>.csv` for every table, and `findings.csv`, into `directory`, which is made if need be. With the
/// name of a `recording`, each row has it, so that files of several can be read together.
///
/// # Errors
/// If the operating system refuses; files written before then stay.
pub fn write_csv(sections: &[Section], recording: Option<&str>, directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory).map_err(|source| Error { path: directory.to_owned(), source })?;
    for file in TableFile::all(sections, recording) {
        let path = directory.join(format!("{}.csv", file.spec().address()));
        whole_file(&path, |out| write_table(&file, out))?;
    }
    Ok(())
}

type Out = Writer<BufWriter<File>>;

/// Fills a file beside its place, then renames it.
fn whole_file(path: &Path, fill: impl FnOnce(&mut Out) -> csv::Result<()>) -> Result<(), Error> {
    let refused = |source| Error { path: path.to_owned(), source };
    let beside = path.with_extension("csv.new");
    let file = File::create(&beside).map_err(refused)?;
    let mut out = Writer::from_writer(BufWriter::new(file));
    fill(&mut out).map_err(|error| refused(error.into()))?;
    out.into_inner().map_err(|error| refused(error.into_error())).and_then(|mut file| file.flush().map_err(refused))?;
    std::fs::rename(&beside, path).map_err(refused)
}

fn write_table(file: &TableFile<'_>, out: &mut Out) -> csv::Result<()> {
    out.write_record(file.columns().map(|column| column.name))?;
    for row in file.rows() {
        for cell in row {
            match cell {
                Cell::Missing => out.write_field("")?,
                Cell::Text(text) => out.write_field(&*harmless(text))?,
                Cell::U64(value) => out.write_field(value.to_string())?,
                Cell::I64(value) => out.write_field(value.to_string())?,
                // The shortest text that reads back as the same double.
                Cell::F64(value) => out.write_field(value.to_string())?,
                Cell::Bool(value) => out.write_field(value.to_string())?,
                Cell::Bytes(bytes) => out.write_field(hexadecimal(bytes))?,
            }
        }
        out.write_record(None::<&[u8]>)?;
    }
    Ok(())
}

/// `text`, which neither commands a terminal nor is taken for a formula by a spreadsheet.
fn harmless(text: &str) -> Cow<'_, str> {
    let harms = |character| misleads(character) && !matches!(character, '\t' | '\n' | '\r');
    let text = if text.contains(harms) { Cow::Owned(text.replace(harms, "\u{fffd}")) } else { Cow::Borrowed(text) };
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { Cow::Owned(format!("'{text}")) } else { text }
}
