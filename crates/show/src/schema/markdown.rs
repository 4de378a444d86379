//! A page of all tables: docs/formats/tables.md.

use base::{Column, ColumnType, TableSpec};
use std::fmt::Write;

const HEAD: &str = "# Tables

Every table that kvmscope answers with, in text, `--json`, `--csv`, Parquet and Arrow. This page is printed by
`kvmscope schema --format markdown`, out of the specifications in the source; `kvmscope schema` prints them as a JSON schema.

A table is addressed as `section.table`, and its file is called so. Columns never depend on what was recorded, and new ones are
appended; where a column goes, moves or means another thing, the table's version counts up. Any value may be missing: `null` in JSON,
empty in CSV, never 0. Key columns identify a row. `machine` is the id of the machine in the recording; a VM of a guest's own trace is
called `L1/name`. Times are ns since the recording's first event, shares 0 to 1, sizes bytes.
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
        let _ = write!(page, "\n### {}\n\n{}{version}\n\n", spec.address(), spec.row);
        page.push_str("| column | type | unit | |\n|---|---|---|---|\n");
        spec.columns.iter().for_each(|column| {
            let key = if column.key { "key" } else { "" };
            let _ = writeln!(page, "| `{}` | {} | {} | {key} |", column.name, kind(column), column.unit);
        });
    }
    page
}

fn kind(column: &Column) -> &'static str {
    match column.kind {
        ColumnType::Text => "text",
        ColumnType::U64 => "unsigned integer",
        ColumnType::I64 => "integer",
        ColumnType::F64 => "number",
        ColumnType::Bool => "true or false",
        ColumnType::Bytes => "bytes",
    }
}
