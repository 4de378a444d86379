//! A file for each table of all answers, and one of all findings.

use crate::{Error, SCHEMA, batch, findings};
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use base::section::named_tables;
use base::{Section, Table};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Parquet, compressed by zstd.
    Parquet,
    /// Arrow's IPC file format, as it lies in memory.
    Arrow,
}

/// Writes every table of `sections` into `directory`, which is there; `emulated` names who emulated the hardware.
///
/// # Errors
/// If the operating system refuses; files written before then stay.
pub fn write(sections: &[Section], emulated: Option<&str>, directory: &Path, format: Format) -> Result<(), Error> {
    let findings = findings(sections);
    let tables = named_tables(sections);
    let all = tables.iter().map(|(name, section, table)| (name.as_str(), section.id, *table));
    for (name, section, table) in all.chain([("findings", "", &findings)]) {
        file(&directory.join(name), &bytes(section, table, emulated, format)?, format)?;
    }
    Ok(())
}

/// The content of the file of one table; `section` is the id of the answer it belongs to.
///
/// # Errors
/// If the table cannot be written in that format.
pub fn bytes(section: &str, table: &Table, emulated: Option<&str>, format: Format) -> Result<Vec<u8>, Error> {
    let mut about = vec![("schema", SCHEMA), ("section", section), ("table", table.name)];
    about.extend(emulated.map(|by| ("emulated", by)));
    let about = about.into_iter().map(|(key, value)| (format!("kvmscope.{key}"), value.to_owned()));
    let about: HashMap<String, String> = about.collect();
    let arrow = |source| Error::Arrow { table: table.name.to_owned(), source };
    let parquet = |source| Error::Parquet { table: table.name.to_owned(), source };
    let rows = batch(table, about).map_err(arrow)?;
    let mut bytes = Vec::new();
    match format {
        Format::Parquet => fill_parquet(&mut bytes, &rows).map_err(parquet)?,
        Format::Arrow => fill_arrow(&mut bytes, &rows).map_err(arrow)?,
    }
    Ok(bytes)
}

fn file(path: &Path, bytes: &[u8], format: Format) -> Result<(), Error> {
    let extension = if format == Format::Parquet { "parquet" } else { "arrow" };
    // A name may hold a point: `latency.exits`.
    let path = path.with_file_name(format!("{}.{extension}", path.file_name().unwrap_or_default().display()));
    let written = File::create(&path).map(BufWriter::new).and_then(|mut out| {
        out.write_all(bytes)?;
        out.flush()
    });
    written.map_err(|source| Error::Io { path, source })
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
