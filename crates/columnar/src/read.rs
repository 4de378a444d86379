//! A Parquet file of ours becomes a table again.

use crate::{Error, pages};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType};
use base::{Cell, ColumnType, Table, TableSpec};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

/// Rows of a table of one recording: thousands, where a host has hundreds of vCPUs.
const MOST_ROWS: usize = 200_000;

/// What such a table unpacks to: texts of findings and distributions, some megabytes. Rows that repeat one text of a dictionary count each.
const MOST_BYTES: u64 = 32 << 20;

/// Rows that are unpacked at once.
const ROWS_AT_ONCE: u64 = 1_024;

/// The rows of a Parquet file, by the names of the columns of `spec`: one that an older version had not yet is missing in all rows, one that a
/// newer version has is left out.
///
/// # Errors
/// If the bytes are no Parquet, a column is of another type, or there is more in it than in any table of a recording.
pub fn read(bytes: Vec<u8>, spec: &'static TableSpec) -> Result<Table, Error> {
    let unread = |reason: String| Error::Unread { table: spec.address(), reason };
    let parquet = |source: parquet::errors::ParquetError| unread(source.to_string());
    let bytes = bytes::Bytes::from(bytes);
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).map_err(parquet)?;
    // Where no column has a name of ours, all rows would be missing, and nothing would look like no findings.
    let about = reader.schema().metadata();
    let names = (about.get("kvmscope.section"), about.get("kvmscope.table"));
    if let (Some(section), Some(name)) = names
        && (section != spec.section || name != spec.name)
    {
        return Err(unread(format!("it has rows of table {section}.{name}")));
    }
    let largest = bounded(reader.metadata(), &bytes).map_err(unread)?;
    let at_once = (MOST_BYTES / largest.max(1)).clamp(1, ROWS_AT_ONCE);
    let mut table = Table::new(spec);
    let mut unpacked = 0;
    for batch in reader.with_batch_size(at_once as usize).build().map_err(parquet)? {
        let batch = batch.map_err(|source| unread(source.to_string()))?;
        unpacked += batch.get_array_memory_size() as u64;
        if unpacked > MOST_BYTES + largest {
            return Err(unread(format!("its rows unpack to more than {MOST_BYTES} bytes")));
        }
        let mut columns: Vec<Vec<Cell>> = Vec::with_capacity(spec.columns.len());
        for column in spec.columns {
            columns.push(match batch.column_by_name(column.name) {
                Some(array) => cells(array, column.kind, column.name).map_err(|source| unread(source.to_string()))?,
                None => vec![Cell::Missing; batch.num_rows()],
            });
        }
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        for _ in 0..batch.num_rows() {
            table.push(columns.iter_mut().map(|column| column.next().unwrap_or(Cell::Missing)).collect());
        }
    }
    Ok(table)
}

/// Refuses what no table of a recording has; returns to how many bytes the largest page unpacks.
fn bounded(about: &ParquetMetaData, bytes: &[u8]) -> Result<u64, String> {
    let rows: i64 = about.row_groups().iter().map(RowGroupMetaData::num_rows).sum();
    if usize::try_from(rows).map_or(true, |rows| rows > MOST_ROWS) {
        return Err(format!("it has {rows} rows, and {MOST_ROWS} at most are read"));
    }
    let (mut all, mut largest) = (0_u64, 0_u64);
    for column in about.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let (from, length) = column.byte_range();
        let end = from.checked_add(length).ok_or("a column lies behind its end")?;
        let chunk = bytes.get(from as usize..end as usize).ok_or("a column lies behind its end")?;
        let (of_chunk, of_page) = pages::unpacked_bytes(chunk).ok_or("the header of a page is damaged")?;
        (all, largest) = (all.saturating_add(of_chunk), largest.max(of_page));
    }
    if all > MOST_BYTES {
        return Err(format!("it unpacks to {all} bytes, and {MOST_BYTES} at most are read"));
    }
    Ok(largest)
}

fn cells(array: &ArrayRef, kind: ColumnType, name: &str) -> Result<Vec<Cell>, ArrowError> {
    let other = || ArrowError::SchemaError(format!("column {name} is {}, not {}", array.data_type(), kind.name()));
    let each = |cell: &dyn Fn(usize) -> Cell| {
        (0..array.len()).map(|row| if array.is_null(row) { Cell::Missing } else { cell(row) }).collect()
    };
    Ok(match (kind, array.data_type()) {
        (ColumnType::Text, DataType::Utf8) => {
            let array = array.as_string::<i32>();
            each(&|row| Cell::from(array.value(row)))
        }
        (ColumnType::U64, DataType::UInt64) => {
            let array = array.as_primitive::<UInt64Type>();
            each(&|row| Cell::U64(array.value(row)))
        }
        (ColumnType::I64, DataType::Int64) => {
            let array = array.as_primitive::<Int64Type>();
            each(&|row| Cell::I64(array.value(row)))
        }
        (ColumnType::F64, DataType::Float64) => {
            let array = array.as_primitive::<Float64Type>();
            each(&|row| Cell::F64(array.value(row)))
        }
        (ColumnType::Bool, DataType::Boolean) => {
            let array = array.as_boolean();
            each(&|row| Cell::Bool(array.value(row)))
        }
        (ColumnType::Bytes, DataType::Binary) => {
            let array = array.as_binary::<i32>();
            each(&|row| Cell::Bytes(array.value(row).to_owned()))
        }
        _ => return Err(other()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, bytes};
    use base::{columns, table};

    const OLD: TableSpec = table! {
        fleet.t version 1: "Anything.";
        key host, distribution cost, f64("") x;
    };
    const NEW: TableSpec = TableSpec { columns: columns![key host, count more, distribution cost], ..OLD };
    const ELSEWHERE: TableSpec = TableSpec { name: "u", ..OLD };
    const OTHER: TableSpec = TableSpec { columns: columns![count host], ..OLD };

    #[test]
    fn what_was_written_is_read_and_columns_are_found_by_name() {
        let mut table = Table::new(&OLD);
        table.push(vec!["a".into(), Cell::Bytes(vec![0, 255]), 0.1.into()]);
        table.push(vec![Cell::Missing, Cell::Missing, Cell::Missing]);
        let written = bytes(&table, None, Format::Parquet).unwrap();
        assert_eq!(read(written.clone(), &OLD).unwrap().rows, table.rows);
        let newer = read(written.clone(), &NEW).unwrap();
        assert_eq!(newer.rows[0], ["a".into(), Cell::Missing, Cell::Bytes(vec![0, 255])]);
        assert!(read(written.clone(), &OTHER).unwrap_err().to_string().contains("column host"));
        assert!(read(written[..written.len() / 2].to_vec(), &OLD).is_err());
        // Another table's file has rows, but none of this one.
        let elsewhere = read(written, &ELSEWHERE).unwrap_err().to_string();
        assert!(elsewhere.contains("it has rows of table fleet.t"), "{elsewhere}");
    }

    #[test]
    fn what_is_more_than_any_table_of_a_recording_is_refused_before_it_is_unpacked() {
        let of = |rows: usize, text: &str| {
            let mut table = Table::new(&OLD);
            (0..rows).for_each(|_| table.push(vec![text.into(), Cell::Missing, Cell::Missing]));
            read(bytes(&table, None, Format::Parquet).unwrap(), &OLD).map(|table| table.rows.len())
        };
        assert_eq!(of(2_000, "a finding's text").unwrap(), 2_000);
        let error = |rows, text: &str| of(rows, text).unwrap_err().to_string();
        assert!(error(MOST_ROWS + 1, "x").contains("rows, and 200000 at most"));
        assert!(error(1, &"x".repeat(40 << 20)).contains("it unpacks to"), "one page");
        assert!(error(5_000, &"x".repeat(100_000)).contains("its rows unpack to more"), "one text of a dictionary");
    }
}
