//! One table as one record batch.

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use base::table_file::TableFile;
use base::{Cell, Column, ColumnType};
use std::collections::HashMap;
use std::sync::Arc;

/// The rows of `file`, with `about` as the schema's metadata.
///
/// # Errors
/// If a cell is not of its column's type, which is a mistake in the program and not in its input.
pub(crate) fn batch(file: &TableFile<'_>, about: HashMap<String, String>) -> Result<RecordBatch, ArrowError> {
    let fields: Vec<Field> = file.columns().map(field).collect();
    let arrays: Result<Vec<ArrayRef>, ArrowError> =
        file.columns().enumerate().map(|(index, column)| array(column, file.cells(index))).collect();
    RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, about)), arrays?)
}

fn field(column: Column) -> Field {
    let kind = match column.kind {
        ColumnType::Text => DataType::Utf8,
        ColumnType::U64 => DataType::UInt64,
        ColumnType::I64 => DataType::Int64,
        ColumnType::F64 => DataType::Float64,
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Bytes => DataType::Binary,
    };
    let about = [("unit", column.unit.to_owned()), ("key", column.key.to_string())];
    let about = about.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    // Any value may be unknown, a key's too.
    Field::new(column.name, kind, true).with_metadata(about)
}

fn array<'a>(column: Column, cells: impl Iterator<Item = &'a Cell>) -> Result<ArrayRef, ArrowError> {
    let other = |cell: &Cell| ArrowError::SchemaError(format!("column {} holds {cell:?}", column.name));
    /// Values of one type, `None` where missing.
    macro_rules! collect {
        ($array:ty, $($cell:pat => $value:expr),+) => {
            Arc::new(cells.map(|cell| match cell {
                Cell::Missing => Ok(None),
                $($cell => Ok(Some($value)),)+
                wrong => Err(other(wrong)),
            }).collect::<Result<$array, _>>()?)
        };
    }
    Ok(match column.kind {
        ColumnType::Text => collect!(StringArray, Cell::Text(text) => text.as_str()),
        ColumnType::U64 => collect!(UInt64Array, Cell::U64(value) => *value),
        ColumnType::I64 => collect!(Int64Array, Cell::I64(value) => *value),
        ColumnType::F64 => collect!(Float64Array, Cell::F64(value) => *value),
        ColumnType::Bool => collect!(BooleanArray, Cell::Bool(value) => *value),
        ColumnType::Bytes => {
            let bytes = cells.map(|cell| match cell {
                Cell::Missing => Ok(None),
                Cell::Bytes(bytes) => Ok(Some(bytes.as_slice())),
                wrong => Err(other(wrong)),
            });
            Arc::new(BinaryArray::from(bytes.collect::<Result<Vec<Option<&[u8]>>, _>>()?))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use base::Table;
    use base::table;
    use base::table::TableSpec;

    const T: TableSpec = table! {
        flow.t version 3: "Anything.";
        key vm, ns x;
    };

    #[test]
    fn missing_is_null_and_a_wrong_cell_is_refused() {
        let mut table = Table::new(&T);
        table.push(vec!["a".into(), 7_u64.into()]);
        table.push(vec!["b".into(), Cell::Missing]);
        let whole = batch(&TableFile::of(&table), HashMap::new()).unwrap();
        assert_eq!((whole.num_rows(), whole.column(1).null_count()), (2, 1));
        assert_eq!(whole.schema().field(1).metadata()["unit"], "ns");
        assert_eq!(whole.schema().field(0).metadata()["key"], "true");
        table.rows.push(vec!["c".into(), 1.5.into()]);
        assert!(batch(&TableFile::of(&table), HashMap::new()).unwrap_err().to_string().contains("column x"));
    }

    #[test]
    fn a_table_without_rows_has_the_same_schema() {
        let mut table = Table::new(&T);
        let empty = batch(&TableFile::of(&table), HashMap::new()).unwrap();
        table.push(vec![Cell::Missing, Cell::Missing]);
        let missing = batch(&TableFile::of(&table), HashMap::new()).unwrap();
        assert_eq!((empty.num_rows(), missing.num_rows()), (0, 1));
        assert_eq!(empty.schema(), missing.schema());
    }
}
