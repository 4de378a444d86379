//! What spreadsheets read: a file per table, exact, whole.

use crate::sample;
use base::{Column, ColumnType, Section, Table};
use std::fs;

#[test]
fn a_file_per_table_and_one_of_findings() {
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().join("new/csv");
    kvmscope_show::csv::write_csv(&[sample::section()], &into).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(&into).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["chains.csv", "exits.csv", "findings.csv", "losses.csv"]);
    insta::assert_snapshot!("exits", fs::read_to_string(into.join("exits.csv")).unwrap());
    insta::assert_snapshot!("findings", fs::read_to_string(into.join("findings.csv")).unwrap());
    assert_eq!(fs::read_to_string(into.join("losses.csv")).unwrap(), "part,count\n", "an empty table keeps its header");
}

#[test]
fn every_cell_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let section = sample::section();
    kvmscope_show::csv::write_csv(std::slice::from_ref(&section), directory.path()).unwrap();
    for table in &section.tables {
        let mut file = ::csv::Reader::from_path(directory.path().join(format!("{}.csv", table.name))).unwrap();
        let rows: Vec<::csv::StringRecord> = file.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), table.rows.len());
        for (read, row) in rows.iter().zip(&table.rows) {
            for (read, cell) in read.iter().zip(row) {
                let same = match cell {
                    base::Cell::Missing => read.is_empty(),
                    base::Cell::Text(text) => read == text,
                    base::Cell::U64(value) => read.parse() == Ok(*value),
                    base::Cell::I64(value) => read.parse() == Ok(*value),
                    base::Cell::F64(value) => read.parse() == Ok(*value),
                    base::Cell::Bool(value) => read.parse() == Ok(*value),
                };
                assert!(same, "{cell:?} became {read}");
            }
        }
    }
}

#[test]
fn no_name_of_a_thread_is_a_formula_or_commands_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let mut section = Section::new("flow", "?");
    let mut table = Table::new("threads", vec![Column::key("comm"), Column::value("change", "", ColumnType::F64)]);
    let names =
        ["=HYPERLINK(1)", "+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "qemu-kvm", "a=b", "\u{1b}[2J", "\u{9b}1\u{202e}m"];
    names.iter().for_each(|name| table.push(vec![(*name).into(), (-1.5).into()]));
    section.tables.push(table);
    kvmscope_show::csv::write_csv(&[section], directory.path()).unwrap();
    let mut file = ::csv::Reader::from_path(directory.path().join("threads.csv")).unwrap();
    let rows: Vec<::csv::StringRecord> = file.records().map(Result::unwrap).collect();
    let written: Vec<&str> = rows.iter().map(|row| &row[0]).collect();
    let expected = ["'=HYPERLINK(1)", "'+1", "'-2", "'@SUM(A1)", "'\t=1", "'\r=1", "qemu-kvm", "a=b"];
    assert_eq!(written, [&expected[..], &["\u{fffd}[2J", "\u{fffd}1\u{fffd}m"]].concat());
    assert!(rows.iter().all(|row| &row[1] == "-1.5"), "numbers are untouched");
}

#[test]
fn a_file_in_the_way_is_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("taken");
    fs::write(&file, b"").unwrap();
    let error = kvmscope_show::csv::write_csv(&[], &file).unwrap_err().to_string();
    assert!(error.contains("taken"), "{error}");
}
