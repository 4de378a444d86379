//! Tables of answers become Arrow and Parquet, for pandas, Polars, DuckDB and everything else that reads them.
//!
//! ```text
//! [Section] --batch--> RecordBatch per table --write--> DIR/<section>.<table>.parquet or .arrow (IPC file)
//! Parquet --read--> Table, for data sets of many recordings
//! ```
//! A schema is that of the table's specification, whatever a recording holds: types are those of the columns, missing is
//! null. A field's metadata has its `unit` and whether it is a `key`; a schema's has `kvmscope.schema` (`kvmscope/1`, that
//! of the JSON whose tables these are), `kvmscope.section`, `kvmscope.table`, `kvmscope.version`, and `kvmscope.emulated`
//! where the hardware was emulated, so that times are not real.

mod batch;
mod pages;
mod read;
mod write;

pub use read::read;
pub use write::{Format, bytes, contents, record_batch, write};

use std::path::PathBuf;

/// Version of the tables: that of `--json`.
pub const SCHEMA: &str = "kvmscope/1";

/// Why a file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refuses.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("table {table} cannot be written as Arrow: {source}")]
    Arrow { table: String, source: arrow_schema::ArrowError },
    #[error("table {table} cannot be written as Parquet: {source}")]
    Parquet { table: String, source: parquet::errors::ParquetError },
    #[error("table {table} cannot be read: {reason}")]
    Unread { table: String, reason: String },
}
