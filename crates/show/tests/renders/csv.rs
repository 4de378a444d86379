//! What spreadsheets read: a file per table, exact, whole.

use crate::sample;
use base::{Section, Table, TableSpec, table};
use std::fs;

#[test]
fn a_file_per_table_and_one_of_findings() {
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().join("new/csv");
    kvmscope_show::csv::write_csv(&[sample::section()], None, &into).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(&into).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["findings.csv", "flow.chains.csv", "flow.exits.csv", "flow.losses.csv"]);
    insta::assert_snapshot!("exits", fs::read_to_string(into.join("flow.exits.csv")).unwrap());
    insta::assert_snapshot!("findings", fs::read_to_string(into.join("findings.csv")).unwrap());
    assert_eq!(
        fs::read_to_string(into.join("flow.losses.csv")).unwrap(),
        "part,count\n",
        "an empty table keeps its header"
    );
}

#[test]
fn files_of_several_recordings_tell_their_rows_apart() {
    let directory = tempfile::tempdir().unwrap();
    kvmscope_show::csv::write_csv(&[sample::section()], Some("before"), directory.path()).unwrap();
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read("flow.losses.csv"), "part,count,recording\n");
    let chains = read("flow.chains.csv");
    assert!(chains.lines().skip(1).all(|row| row.ends_with(",before")) && chains.lines().count() > 1, "{chains}");
    assert!(read("findings.csv").lines().next().unwrap().ends_with(",recording"));
}

#[test]
fn every_cell_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let section = sample::section();
    kvmscope_show::csv::write_csv(std::slice::from_ref(&section), None, directory.path()).unwrap();
    for table in &section.tables {
        let mut file =
            ::csv::Reader::from_path(directory.path().join(format!("{}.csv", table.spec.address()))).unwrap();
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
                    base::Cell::Bytes(bytes) => read == base::table::hexadecimal(bytes),
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
    const THREADS: TableSpec = table! {
        flow.threads version 1: "A thread.";
        key comm, f64("") change;
    };
    let mut table = Table::new(&THREADS);
    let names =
        ["=HYPERLINK(1)", "+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "qemu-kvm", "a=b", "\u{1b}[2J", "\u{9b}1\u{202e}m"];
    names.iter().for_each(|name| table.push(vec![(*name).into(), (-1.5).into()]));
    section.tables.push(table);
    kvmscope_show::csv::write_csv(&[section], None, directory.path()).unwrap();
    let mut file = ::csv::Reader::from_path(directory.path().join("flow.threads.csv")).unwrap();
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
    let error = kvmscope_show::csv::write_csv(&[], None, &file).unwrap_err().to_string();
    assert!(error.contains("taken"), "{error}");
}
