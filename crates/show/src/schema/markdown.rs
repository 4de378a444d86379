//! A page of all tables: docs/formats/tables.md.

use base::{Column, ColumnType, TableSpec};
use std::fmt::Write;

const HEAD: &str = "# Tables

To look up a column: `kvmscope schema --table flow.exits` prints its table as a JSON schema, `kvmscope report --csv DIR` writes all
tables as files. This page has every table of text, `--json`, `--csv`, Parquet and Arrow; `kvmscope schema --format markdown` prints
it from the specifications in the source.

A table is addressed as `section.table`, which is also the name of its file. Columns never depend on what was recorded, and new ones
are appended; if a column is removed, moved or changes its meaning, the table's version counts up. Any value may be missing: `null` in
JSON, empty in CSV, never 0. Integers have 64 bits. Keys identify a row. `machine` is the id of the machine in the recording; a VM of a
guest's own trace is called `L1/name`. Times are ns since the recording's first event, shares 0 to 1, sizes bytes.
";

/// All `tables` as a page of Markdown, in their order.
pub fn markdown(tables: &[&TableSpec]) -> String {
    let mut page = HEAD.to_owned();
    let mut section = "";
    for spec in tables {
        if spec.section != section {
            section = spec.section;
            let _ = write!(page, "\n## {section}\n");
        }
        let version = if spec.version > 1 { format!(" Version {}.", spec.version) } else { String::new() };
        let _ = write!(page, "\n### {}\n\n{}{version}{}\n\n", spec.address(), spec.row, keys(spec));
        page.push_str("| column | type |\n|---|---|\n");
        spec.columns.iter().for_each(|column| {
            let unit = if column.unit.is_empty() { String::new() } else { format!(", {}", column.unit) };
            let _ = writeln!(page, "| `{}` | {}{unit} |", column.name, kind(column));
        });
    }
    page
}

/// The columns that identify a row, as a sentence; nothing where a table has none.
fn keys(spec: &TableSpec) -> String {
    let keys: Vec<String> =
        spec.columns.iter().filter(|column| column.key).map(|column| format!("`{}`", column.name)).collect();
    if keys.is_empty() { String::new() } else { format!(" Key: {}.", keys.join(", ")) }
}

fn kind(column: &Column) -> &'static str {
    match column.kind {
        ColumnType::Text => "text",
        ColumnType::U64 => "unsigned",
        ColumnType::I64 => "integer",
        ColumnType::F64 => "number",
        ColumnType::Bool => "boolean",
        ColumnType::Bytes => "bytes",
    }
}
