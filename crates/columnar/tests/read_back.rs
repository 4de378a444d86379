//! Every table of real answers reads back cell by cell: by pyarrow, and by the crates that wrote it.

use analysis::{Answers, Case, Given};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::FileReader;
use base::recording::Recording;
use base::table_file::TableFile;
use base::{Cell, ColumnType, Section};
use kvmscope_columnar::{Format, write};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

const FIXTURES: [&str; 2] = ["nested-vmx-shadow-off-hog", "svm-linux"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn answers(name: &str) -> Vec<Section> {
    let input = analysis::open(Recording::open(&root().join("fixtures").join(name)).unwrap()).unwrap();
    Answers::of(&Case::new(input, Given::default())).sections
}

/// The name of the recording in each row.
const NAME: Option<&str> = Some("before");

fn extension(format: Format) -> &'static str {
    if format == Format::Parquet { "parquet" } else { "arrow" }
}

fn cell(batch: &RecordBatch, column: usize, row: usize, kind: ColumnType) -> Cell {
    let array = batch.column(column);
    if array.is_null(row) {
        return Cell::Missing;
    }
    match kind {
        ColumnType::Text => array.as_string::<i32>().value(row).into(),
        ColumnType::U64 => array.as_primitive::<UInt64Type>().value(row).into(),
        ColumnType::I64 => Cell::I64(array.as_primitive::<Int64Type>().value(row)),
        ColumnType::F64 => array.as_primitive::<Float64Type>().value(row).into(),
        ColumnType::Bool => array.as_boolean().value(row).into(),
        ColumnType::Bytes => Cell::Bytes(array.as_binary::<i32>().value(row).to_owned()),
    }
}

fn rows(batches: &[RecordBatch], table: &TableFile<'_>) -> Vec<Vec<Cell>> {
    let of = |batch: &RecordBatch, row| {
        table.columns().enumerate().map(|(place, column)| cell(batch, place, row, column.kind)).collect()
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| of(batch, row))).collect()
}

#[test]
fn the_crates_read_every_cell() {
    for name in FIXTURES {
        let sections = answers(name);
        for format in [Format::Parquet, Format::Arrow] {
            let place = tempfile::tempdir().unwrap();
            write(&sections, NAME, None, place.path(), format).unwrap();
            let tables = TableFile::all(&sections, NAME);
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), tables.len());
            for table in tables {
                let address = table.spec().address();
                let file = File::open(place.path().join(format!("{address}.{}", extension(format)))).unwrap();
                let batches: Vec<RecordBatch> = match format {
                    Format::Parquet => {
                        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
                        reader.map(Result::unwrap).collect()
                    }
                    Format::Arrow => FileReader::try_new(file, None).unwrap().map(Result::unwrap).collect(),
                };
                let written: Vec<Vec<Cell>> = table.rows().map(|row| row.cloned().collect()).collect();
                assert_eq!(rows(&batches, &table), written, "{name}: {address}");
            }
        }
    }
}

/// What pyarrow reads; `None` where it is missing, which is said. `tools/oracles.sh` installs it.
fn pyarrow(paths: &[PathBuf]) -> Option<Vec<Value>> {
    let installed = root().join("target/oracles/bin/python3");
    let python = std::env::var_os("KVMSCOPE_PYTHON").map_or(installed, PathBuf::from);
    let python = if python.exists() { python } else { "python3".into() };
    let found = Command::new(&python).args(["-c", "import pyarrow.parquet"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("skipped: python: package pyarrow is missing; tools/oracles.sh installs it");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_columns.py");
    let output = Command::new(&python).arg(script).args(paths).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn expected(table: &TableFile<'_>) -> Value {
    let kind = |kind: ColumnType| match kind {
        ColumnType::Text => "string",
        ColumnType::U64 => "uint64",
        ColumnType::I64 => "int64",
        ColumnType::F64 => "double",
        ColumnType::Bool => "bool",
        ColumnType::Bytes => "binary",
    };
    let cell = |cell: &Cell| match cell {
        Cell::Missing => Value::Null,
        Cell::Text(text) => json!(text),
        Cell::U64(value) => json!(value),
        Cell::I64(value) => json!(value),
        Cell::F64(value) => json!(value.to_bits()),
        Cell::Bool(value) => json!(value),
        Cell::Bytes(bytes) => json!(base::table::hexadecimal(bytes)),
    };
    let columns: Vec<Value> = table
        .columns()
        .map(|column| json!([column.name, kind(column.kind), column.unit, column.key.to_string()]))
        .collect();
    let rows: Vec<Vec<Value>> = table.rows().map(|row| row.map(cell).collect()).collect();
    json!({ "columns": columns, "rows": rows })
}

#[test]
fn pyarrow_reads_every_cell_type_unit_and_key() {
    let sections = answers("nested-vmx-shadow-off-hog");
    for format in [Format::Parquet, Format::Arrow] {
        let place = tempfile::tempdir().unwrap();
        write(&sections, NAME, Some("Bochs"), place.path(), format).unwrap();
        let tables = TableFile::all(&sections, NAME);
        let path =
            |table: &TableFile<'_>| place.path().join(format!("{}.{}", table.spec().address(), extension(format)));
        let Some(read) = pyarrow(&tables.iter().map(path).collect::<Vec<_>>()) else { return };
        assert_eq!(read.len(), tables.len());
        for (table, read) in tables.iter().zip(read) {
            let spec = table.spec();
            let about = &read["metadata"];
            assert_eq!(
                json!({ "columns": read["columns"], "rows": read["rows"] }),
                expected(table),
                "{}",
                spec.address()
            );
            assert_eq!(about["kvmscope.schema"], "kvmscope/1");
            assert_eq!((&about["kvmscope.table"], &about["kvmscope.emulated"]), (&json!(spec.name), &json!("Bochs")));
        }
    }
}
