//! What programs read: every number exact, every key of the contract there.

use crate::sample;
use base::{Cell, Section, Table, TableSpec, table};
use kvmscope_show::json::{Answered, write};
use serde_json::Value;

fn json(sections: &[Section], times: usize) -> (String, Value) {
    let recording = sample::recording();
    let problems = sample::problems();
    let answers = vec![Answered { recording: &recording, compared: &[], sections, problems: &problems }; times];
    let mut out = Vec::new();
    write(&mut out, "report", &answers).unwrap();
    let text = String::from_utf8(out).unwrap();
    let value = serde_json::from_str(&text).unwrap();
    (text, value)
}

#[test]
fn the_object_is_the_contracts() {
    let (text, value) = json(&[sample::section()], 1);
    assert!(text.ends_with("}\n") && text.lines().count() == 1, "one object, one line");
    insta::assert_snapshot!("object", serde_json::to_string_pretty(&value).unwrap());
}

#[test]
fn every_cell_is_there_exactly() {
    let mut section = sample::section();
    const EXTREMES: TableSpec = table! {
        flow.extremes version 1: "Values at the ends of their types.";
        count u, i64("") i, f64("") f, flag b;
    };
    let mut table = Table::new(&EXTREMES);
    table.push(vec![Cell::U64(u64::MAX), Cell::I64(i64::MIN), Cell::F64(0.1), Cell::Bool(true)]);
    table.push(vec![Cell::Missing, Cell::Missing, Cell::F64(f64::NAN), Cell::Missing]);
    section.tables.push(table);
    let (text, value) = json(&[section.clone()], 1);
    for table in &section.tables {
        let rows = &value["sections"][0]["tables"][table.spec.name]["rows"];
        assert_eq!(rows.as_array().unwrap().len(), table.rows.len());
        for (shown, row) in rows.as_array().unwrap().iter().zip(&table.rows) {
            for (shown, cell) in shown.as_array().unwrap().iter().zip(row) {
                let same = match cell {
                    Cell::Missing => shown.is_null(),
                    Cell::Text(text) => shown == text,
                    Cell::U64(value) => shown.as_u64() == Some(*value),
                    Cell::I64(value) => shown.as_i64() == Some(*value),
                    Cell::F64(value) if value.is_nan() => shown.is_null(),
                    Cell::F64(value) => shown.as_f64() == Some(*value),
                    Cell::Bool(value) => shown.as_bool() == Some(*value),
                    Cell::Bytes(bytes) => shown.as_str() == Some(&base::table::hexadecimal(bytes)),
                };
                assert!(same, "{cell:?} became {shown}");
            }
        }
    }
    assert!(text.contains("18446744073709551615"));
}

#[test]
fn ranks_are_of_the_findings_of_all_sections_as_the_text_has_them() {
    let mut host = sample::section();
    host.findings.truncate(1);
    (host.findings[0].rule, host.findings[0].title) = ("PLC-OVERCOMMIT", "the host has too few CPUs".into());
    host.findings[0].explains = vec!["FLW-SHADOW@nestv-98".into()];
    let sections = [sample::section(), host];
    let text = kvmscope_show::text::render(&sections, &[], &kvmscope_show::text::Page::default());
    let (_, value) = json(&sections, 1);
    let findings =
        value["sections"].as_array().unwrap().iter().flat_map(|section| section["findings"].as_array().unwrap());
    let mut ranked: Vec<_> =
        findings.map(|found| (found["rank"].as_u64().unwrap(), found["title"].as_str().unwrap())).collect();
    ranked.sort_unstable();
    assert_eq!(ranked.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(ranked[0].1, "the host has too few CPUs", "though its section is the second");
    assert!(ranked.is_sorted_by_key(|(_, title)| text.find(title).unwrap()), "{ranked:?} {text}");
}

#[test]
fn several_recordings_are_a_list_and_sections_say_whose_they_are() {
    let (_, value) = json(&[sample::section()], 2);
    assert_eq!(value["recording"].as_array().unwrap().len(), 2);
    assert_eq!(value["sections"][1]["recording"], "vmx.dat");
    assert_eq!(value["problems"].as_array().unwrap().len(), 4);
    assert_eq!(value["problems"][3]["recording"], "vmx.dat");
}
