//! A file for each table of all answers, and one of all findings.

use crate::batch::batch;
use crate::{Error, SCHEMA};
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use base::table_file::TableFile;
use base::{Section, Table};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Parquet, compressed by zstd.
    Parquet,
    /// Arrow's IPC file format, as it lies in memory.
    Arrow,
}

/// Writes every table of `sections`, and all findings, into `directory`, which is there. Each row has the name of its
/// `recording`, if there is one; `emulated` names who emulated the hardware.
///
/// # Errors
/// If the operating system refuses; files written before then stay.
pub fn write(
    sections: &[Section],
    recording: Option<&str>,
    emulated: Option<&str>,
    directory: &Path,
    format: Format,
) -> Result<(), Error> {
    let extension = if format == Format::Parquet { "parquet" } else { "arrow" };
    for (address, bytes) in contents(sections, recording, emulated, format)? {
        put(&directory.join(format!("{address}.{extension}")), &bytes)?;
    }
    Ok(())
}

/// The same files in memory, by the addresses of their tables.
///
/// # Errors
/// If a table cannot be written in that format.
pub fn contents(
    sections: &[Section],
    recording: Option<&str>,
    emulated: Option<&str>,
    format: Format,
) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let files = TableFile::all(sections, recording);
    files.iter().map(|file| Ok((file.spec().address(), content(file, emulated, format)?))).collect()
}

/// The content of the file of one table.
///
/// # Errors
/// If the table cannot be written in that format.
pub fn bytes(table: &Table, emulated: Option<&str>, format: Format) -> Result<Vec<u8>, Error> {
    content(&TableFile::of(table), emulated, format)
}

/// The rows of one table, with the schema that its files have.
///
/// # Errors
/// If a cell is not of its column's type, which is a mistake in the program and not in its input.
pub fn record_batch(table: &Table, emulated: Option<&str>) -> Result<RecordBatch, Error> {
    rows(&TableFile::of(table), emulated)
}

fn rows(file: &TableFile<'_>, emulated: Option<&str>) -> Result<RecordBatch, Error> {
    let spec = file.spec();
    let version = spec.version.to_string();
    let mut about = vec![("schema", SCHEMA), ("section", spec.section), ("table", spec.name), ("version", &version)];
    about.extend(emulated.map(|by| ("emulated", by)));
    let about = about.into_iter().map(|(key, value)| (format!("kvmscope.{key}"), value.to_owned()));
    batch(file, about.collect()).map_err(|source| Error::Arrow { table: spec.address(), source })
}

fn content(file: &TableFile<'_>, emulated: Option<&str>, format: Format) -> Result<Vec<u8>, Error> {
    let rows = rows(file, emulated)?;
    let arrow = |source| Error::Arrow { table: file.spec().address(), source };
    let parquet = |source| Error::Parquet { table: file.spec().address(), source };
    let mut bytes = Vec::new();
    match format {
        Format::Parquet => fill_parquet(&mut bytes, &rows).map_err(parquet)?,
        Format::Arrow => fill_arrow(&mut bytes, &rows).map_err(arrow)?,
    }
    Ok(bytes)
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let written = File::create(path).map(BufWriter::new).and_then(|mut out| {
        out.write_all(bytes)?;
        out.flush()
    });
    written.map_err(|source| Error::Io { path: path.to_owned(), source })
}

fn fill_parquet(out: &mut Vec<u8>, rows: &RecordBatch) -> parquet::errors::Result<()> {
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(out, rows.schema(), Some(properties))?;
    writer.write(rows)?;
    writer.close().map(drop)
}

fn fill_arrow(out: &mut Vec<u8>, rows: &RecordBatch) -> Result<(), arrow_schema::ArrowError> {
    let mut writer = FileWriter::try_new(out, &rows.schema())?;
    writer.write(rows)?;
    writer.finish()
}
