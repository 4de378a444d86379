//! A Parquet file of ours becomes a table again.

use crate::Error;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType};
use base::{Cell, ColumnType, Table, TableSpec};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The rows of a Parquet file, by the names of the columns of `spec`: one that an older version had not yet is missing in all rows, one that a
/// newer version has is left out.
///
/// # Errors
/// If the bytes are no Parquet, or a column is of another type.
pub fn read(bytes: Vec<u8>, spec: &'static TableSpec) -> Result<Table, Error> {
    let parquet = |source| Error::Parquet { table: spec.address(), source };
    let arrow = |source| Error::Arrow { table: spec.address(), source };
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).map_err(parquet)?;
    let mut table = Table::new(spec);
    for batch in reader.build().map_err(parquet)? {
        let batch = batch.map_err(arrow)?;
        let mut columns: Vec<Vec<Cell>> = Vec::with_capacity(spec.columns.len());
        for column in spec.columns {
            columns.push(match batch.column_by_name(column.name) {
                Some(array) => cells(array, column.kind, column.name).map_err(arrow)?,
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
    }
}
