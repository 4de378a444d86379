//! `kvmscope schema`: what it prints is what `--json` prints, and what is made from it is up to date.

use crate::program::{fixture, kvmscope};
use serde_json::{Value, json};
use std::path::Path;

fn parsed(arguments: &[&str]) -> Value {
    serde_json::from_str(&kvmscope(arguments).1).unwrap()
}

/// What is wrong with `value` by `schema`, of which `root` has the definitions. Knows the words that our schemas use, and panics at
/// others: JSON Schema, draft 2020-12, Core and Validation.
fn wrong(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            found.push(format!("{place}: {what}"));
        }
    };
    let mut deeper: Vec<(&Value, &Value, String)> = Vec::new();
    let items = value.as_array();
    let keys = value.as_object();
    for (word, rule) in schema.as_object().unwrap() {
        match word.as_str() {
            "$schema" | "$defs" | "title" | "description" | "then" | "additionalProperties" => {}
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                deeper.push((&root["$defs"][name], value, place.to_owned()));
            }
            "const" => expect(value == rule, "another value"),
            "enum" => expect(rule.as_array().unwrap().contains(value), "none of the values"),
            "type" => {
                let is = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    other => panic!("type {other}"),
                };
                expect(rule.as_array().map_or_else(|| is(rule), |any| any.iter().any(is)), "another type");
            }
            "minimum" => expect(value.as_f64().is_none_or(|value| value >= rule.as_f64().unwrap()), "too small"),
            "minItems" => expect(items.is_none_or(|all| all.len() as u64 >= rule.as_u64().unwrap()), "too short"),
            "maxItems" => expect(items.is_none_or(|all| all.len() as u64 <= rule.as_u64().unwrap()), "too long"),
            "required" => {
                let has = |key: &Value| keys.is_none_or(|keys| keys.contains_key(key.as_str().unwrap()));
                rule.as_array().unwrap().iter().for_each(|key| expect(has(key), &format!("no {key}")));
            }
            "properties" => {
                for (key, value) in keys.into_iter().flatten() {
                    match rule.get(key) {
                        Some(rule) => deeper.push((rule, value, format!("{place}/{key}"))),
                        None => {
                            expect(schema.get("additionalProperties") != Some(&json!(false)), &format!("has {key}"))
                        }
                    }
                }
            }
            "items" => {
                deeper.extend(
                    items.into_iter().flatten().enumerate().map(|(at, one)| (rule, one, format!("{place}/{at}"))),
                );
            }
            "prefixItems" => {
                let pairs = rule.as_array().unwrap().iter().zip(items.into_iter().flatten()).enumerate();
                deeper.extend(pairs.map(|(at, (rule, one))| (rule, one, format!("{place}/{at}"))));
            }
            "allOf" => deeper.extend(rule.as_array().unwrap().iter().map(|rule| (rule, value, place.to_owned()))),
            "if" => {
                if wrong(root, rule, value, place).is_empty() {
                    deeper.push((&schema["then"], value, place.to_owned()));
                }
            }
            other => panic!("{other} is not known here"),
        }
    }
    found.extend(deeper.into_iter().flat_map(|(schema, value, place)| wrong(root, schema, value, &place)));
    found
}

#[test]
fn what_json_prints_is_valid_by_the_schema() {
    let schema = parsed(&["schema"]);
    let valid = |answer: &Value, what: &str| {
        let found = wrong(&schema, &schema, answer, "");
        assert!(found.is_empty(), "{what}: {found:#?}");
    };
    let path = |name: &str| fixture(name).to_str().unwrap().to_owned();
    for name in ["nested-vmx-shadow-off-hog", "svm-linux", "hosts-intel", "bench-svm", "seed-vhost"] {
        valid(&parsed(&["report", "--no-progress", "--json", &path(name)]), name);
    }
    let (before, after) = (path("nested-vmx-shadow-off-hog"), path("nested-vmx-shadow-on"));
    valid(&parsed(&["report", "--no-progress", "--json", &before, &after]), "two recordings");
    valid(&parsed(&["compare", "--json", &before, &after]), "compare");
    valid(&parsed(&["plan", "nested", "--rate", "CPUID=1", "--json"]), "plan");
}

#[test]
fn the_schema_refuses_other_columns_cells_and_tables() {
    let schema = parsed(&["schema"]);
    let answer = parsed(&["report", "--no-progress", "--json", fixture("nested-svm-toy").to_str().unwrap()]);
    let refuses = |change: &dyn Fn(&mut Value), place: &str| {
        let mut changed = answer.clone();
        change(&mut changed["sections"][0]["tables"]);
        let found = wrong(&schema, &schema, &changed, "");
        assert!(found.iter().any(|one| one.starts_with(place)), "{place}: {found:?}");
    };
    refuses(&|tables| tables["exits"]["rows"][0][5] = json!("many"), "/sections/0/tables/exits/rows/0/5");
    refuses(&|tables| tables["exits"]["rows"][0][5] = json!(-1), "/sections/0/tables/exits/rows/0/5");
    refuses(&|tables| tables["exits"]["columns"][0]["name"] = json!("host"), "/sections/0/tables/exits/columns");
    refuses(&|tables| tables["exits"]["version"] = json!(1), "/sections/0/tables/exits/version");
    refuses(&|tables| _ = tables["exits"]["rows"][0].as_array_mut().unwrap().pop(), "/sections/0/tables/exits/rows/0");
    refuses(&|tables| tables["features"] = tables["exits"].clone(), "/sections/0/tables: has features");
    // Missing is null in any column.
    let mut missing = answer.clone();
    missing["sections"][0]["tables"]["exits"]["rows"][0][5] = Value::Null;
    assert_eq!(wrong(&schema, &schema, &missing, ""), [""; 0]);
}

#[test]
fn one_table_stands_alone() {
    let one = parsed(&["schema", "--table", "flow.exits"]);
    assert_eq!((&one["title"], &one["properties"]["version"]["const"]), (&json!("flow.exits"), &json!(2)));
    let answer = parsed(&["report", "--no-progress", "--json", fixture("nested-svm-toy").to_str().unwrap()]);
    assert_eq!(wrong(&one, &one, &answer["sections"][0]["tables"]["exits"], ""), [""; 0]);
    let (code, _, complaints) = kvmscope(&["schema", "--table", "exits"]);
    assert!(code == 2 && complaints.contains("did you mean flow.exits or nesting.exits?"), "{complaints}");
    let (code, _, complaints) = kvmscope(&["schema", "--table", "flow.exit"]);
    assert!(code == 2 && complaints.contains("did you mean `flow.exits`?"), "{complaints}");
}

#[test]
fn the_pages_and_the_types_of_the_dashboard_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (format, file) in [
        ("markdown", "docs/formats/tables.md"),
        ("typescript", "ui/src/data/tables.ts"),
        ("validation", "docs/formats/validation.md"),
    ] {
        let (_, printed, _) = kvmscope(&["schema", "--format", format]);
        let written = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        assert!(printed == written, "write it anew: kvmscope schema --format {format} > {file}");
    }
}
