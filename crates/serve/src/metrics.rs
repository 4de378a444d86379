//! The numbers of every table as OpenMetrics, for programs that collect such.
//!
//! ```text
//! table `exits` of section `flow`, key columns vm, vcpu, level, reason
//!   -> kvmscope_flow_exits_count{recording="web",vm="web",vcpu="0",level="L1",reason="VMREAD"} 1192
//! ```
//! Names and units come from the columns, so a new question needs nothing here; nanoseconds become seconds, as the
//! format wants it. Source: the OpenMetrics 1.0 text format (RFC-like specification at openmetrics.io, sections 3 to 5).

use base::table::hexadecimal;
use base::{Cell, Column, ColumnType, Section, Table};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

/// The media type of OpenMetrics.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All tables of these recordings.
pub(crate) fn render<'a>(recordings: impl Iterator<Item = (&'a str, &'a [Section])>) -> String {
    // By metric: all samples of one must stand together.
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    for (id, sections) in recordings {
        for section in sections {
            for table in &section.tables {
                add(&mut metrics, id, section, table);
            }
        }
    }
    let mut text = String::new();
    for (name, metric) in metrics.into_iter().filter(|(_, metric)| !metric.samples.is_empty()) {
        let _ = writeln!(text, "# TYPE {name} gauge");
        if name.ends_with("_seconds") {
            let _ = writeln!(text, "# UNIT {name} seconds");
        }
        let _ = writeln!(text, "# HELP {name} {}", metric.help);
        text.push_str(&metric.samples);
    }
    text.push_str("# EOF\n");
    text
}

#[derive(Default)]
struct Metric {
    help: String,
    samples: String,
}

fn add(metrics: &mut BTreeMap<String, Metric>, id: &str, section: &Section, table: &Table) {
    let labels = labels(id, table);
    for (place, column) in table.spec.columns.iter().enumerate() {
        let numeric = matches!(column.kind, ColumnType::U64 | ColumnType::I64 | ColumnType::F64);
        if column.key || !numeric {
            continue;
        }
        let (name, scale) = name(section, table, column);
        let metric = metrics.entry(name.clone()).or_default();
        metric.help = format!("Column {} of table {} of the answer `{}`.", column.name, table.spec.name, section.id);
        for (row, labels) in table.rows.iter().zip(&labels) {
            let value = match &row[place] {
                Cell::U64(value) => *value as f64,
                Cell::I64(value) => *value as f64,
                Cell::F64(value) => *value,
                _ => continue,
            };
            let _ = writeln!(metric.samples, "{name}{{{labels}}} {}", value / scale);
        }
    }
}

/// The metric's name, and what a value is divided by.
fn name(section: &Section, table: &Table, column: &Column) -> (String, f64) {
    let (plain, unit, scale) = match column.name.strip_suffix("_ns") {
        Some(plain) => (plain, "_seconds", 1e9),
        None => (column.name, "", 1.0),
    };
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name = format!("kvmscope_{}_{}_{plain}{unit}", section.id, table.spec.name);
    (name.chars().map(letter).collect(), scale)
}

/// The labels of each row: the recording and the key columns; the row's number too, where those do not tell rows apart.
fn labels(id: &str, table: &Table) -> Vec<String> {
    let of = |row: &Vec<Cell>| {
        let mut labels = format!("recording=\"{}\"", escaped(id));
        for (column, cell) in table.spec.columns.iter().zip(row).filter(|(column, _)| column.key) {
            let value = match cell {
                Cell::Missing => continue,
                Cell::Text(text) => escaped(text),
                Cell::U64(value) => value.to_string(),
                Cell::I64(value) => value.to_string(),
                Cell::F64(value) => value.to_string(),
                Cell::Bool(value) => value.to_string(),
                Cell::Bytes(bytes) => hexadecimal(bytes),
            };
            let _ = write!(labels, ",{}=\"{value}\"", column.name);
        }
        labels
    };
    let labels: Vec<String> = table.rows.iter().map(of).collect();
    if labels.iter().collect::<HashSet<_>>().len() == labels.len() {
        return labels;
    }
    labels.iter().enumerate().map(|(row, labels)| format!("{labels},row=\"{row}\"")).collect()
}

/// A text as the value of a label.
pub fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::table;

    use base::table::TableSpec;

    #[test]
    fn a_table_becomes_metrics_with_its_keys_as_labels() {
        const EXITS: TableSpec = table! {
            flow.exits version 1: "Exits.";
            key vm, count count, ns p50_ns;
        };
        let mut table = Table::new(&EXITS);
        table.push(vec!["a\"b".into(), 7u64.into(), 1_500u64.into()]);
        table.push(vec!["c".into(), 8u64.into(), Cell::Missing]);
        let section = Section { tables: vec![table], ..Section::new("flow", "?") };
        let sections = [section];
        assert_eq!(
            render([("web", &sections[..])].into_iter()),
            "# TYPE kvmscope_flow_exits_count gauge\n\
             # HELP kvmscope_flow_exits_count Column count of table exits of the answer `flow`.\n\
             kvmscope_flow_exits_count{recording=\"web\",vm=\"a\\\"b\"} 7\n\
             kvmscope_flow_exits_count{recording=\"web\",vm=\"c\"} 8\n\
             # TYPE kvmscope_flow_exits_p50_seconds gauge\n\
             # UNIT kvmscope_flow_exits_p50_seconds seconds\n\
             # HELP kvmscope_flow_exits_p50_seconds Column p50_ns of table exits of the answer `flow`.\n\
             kvmscope_flow_exits_p50_seconds{recording=\"web\",vm=\"a\\\"b\"} 0.0000015\n\
             # EOF\n"
        );
    }

    #[test]
    fn rows_that_keys_do_not_tell_apart_get_their_number() {
        const X: TableSpec = table! {
            flow.x version 1: "Anything.";
            key k, u64("") v;
        };
        let mut table = Table::new(&X);
        table.push(vec!["a".into(), 1u64.into()]);
        table.push(vec!["a".into(), 2u64.into()]);
        assert_eq!(labels("r", &table)[1], "recording=\"r\",k=\"a\",row=\"1\"");
    }
}
