//! What tables are, for programs and people who have none yet: out of the specifications alone.
//!
//! ```text
//! [TableSpec] --document-->   a JSON schema of what `--json` prints      --markdown-->   docs/formats/tables.md
//!             --table-->      a JSON schema of one table                 --typescript--> ui/src/data/tables.ts
//! ```

mod markdown;
mod typescript;

pub use markdown::markdown;
pub use typescript::typescript;

use crate::json::SCHEMA;
use base::{Column, ColumnType, TableSpec};
use serde_json::{Map, Value, json};

/// The dialect of the schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A JSON schema of the object that `--json` prints, with a definition for each table: `#/$defs/flow.exits`; `sections` are the ids of all, also
/// of those without a table.
pub fn document(tables: &[&TableSpec], sections: &[&str]) -> Value {
    let mut definitions: Map<String, Value> = tables.iter().map(|spec| (spec.address(), described(spec))).collect();
    definitions.insert("section".to_owned(), section(tables, sections));
    json!({
        "$schema": DIALECT,
        "title": "What kvmscope prints with --json",
        "type": "object",
        "required": ["schema", "command", "recording", "sections", "problems"],
        "properties": {
            "schema": { "const": SCHEMA },
            "command": { "type": "string" },
            "recording": { "type": ["object", "array"] },
            "sections": { "type": "array", "items": { "$ref": "#/$defs/section" } },
            "problems": {
                "type": "array",
                "items": { "type": "object", "required": ["file", "offset", "expected", "found", "bytes_skipped", "count", "text"] },
            },
        },
        "$defs": definitions,
    })
}

/// A JSON schema of one table, as it stands in `--json`.
pub fn table(spec: &TableSpec) -> Value {
    let mut schema = described(spec);
    schema["$schema"] = DIALECT.into();
    schema
}

/// A section may have the tables of its id and no others.
fn section(tables: &[&TableSpec], sections: &[&str]) -> Value {
    let mut ids: Vec<&str> = tables.iter().map(|spec| spec.section).collect();
    ids.dedup();
    ids.extend(sections.iter().filter(|id| tables.iter().all(|spec| spec.section != **id)));
    let tables_of = |id: &&str| {
        let own = tables.iter().filter(|spec| spec.section == *id);
        let own = own.map(|spec| (spec.name.to_owned(), json!({ "$ref": format!("#/$defs/{}", spec.address()) })));
        json!({
            "if": { "properties": { "id": { "const": id } } },
            "then": {
                "properties": {
                    "tables": { "properties": own.collect::<Map<_, _>>(), "additionalProperties": false },
                },
            },
        })
    };
    let keys = [
        "id", "rank", "rule", "subject", "severity", "level", "title", "evidence", "cost", "explains", "changes",
        "fix", "undo", "needs",
    ];
    json!({
        "type": "object",
        "required": ["id", "question", "summary", "findings", "tables", "figures", "unknown"],
        "properties": {
            "id": { "enum": ids },
            "question": { "type": "string" },
            "summary": { "type": "string" },
            "findings": { "type": "array", "items": { "type": "object", "required": keys } },
            "tables": { "type": "object" },
            "figures": { "type": "array", "items": { "type": "object" } },
            "unknown": { "type": "array", "items": { "type": "object", "required": ["what", "amount", "unit", "text"] } },
        },
        "allOf": ids.iter().map(tables_of).collect::<Vec<_>>(),
    })
}

fn described(spec: &TableSpec) -> Value {
    let cells: Vec<Value> = spec.columns.iter().map(cell).collect();
    json!({
        "title": spec.address(),
        "description": spec.row,
        "type": "object",
        "required": ["version", "columns", "rows"],
        "properties": {
            "version": { "const": spec.version },
            "columns": { "const": spec.columns },
            "rows": {
                "type": "array",
                "items": { "type": "array", "prefixItems": cells, "minItems": cells.len(), "maxItems": cells.len() },
            },
        },
    })
}

fn cell(column: &Column) -> Value {
    let kind = match column.kind {
        ColumnType::Text | ColumnType::Bytes => "string",
        ColumnType::U64 | ColumnType::I64 => "integer",
        ColumnType::F64 => "number",
        ColumnType::Bool => "boolean",
    };
    let mut cell = json!({ "title": column.name, "type": [kind, "null"] });
    if column.kind == ColumnType::U64 {
        cell["minimum"] = 0.into();
    }
    cell
}
