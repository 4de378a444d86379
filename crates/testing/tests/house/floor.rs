//! No question and no command reads a printed table: what several need is a typed fact of a `Case`.
//!
//! Sources are searched for lookups of Sections, tables and columns by name. Outputs may do so (crates show, columnar, serve), the
//! types themselves (base), and tests, which hold what is printed against something else.

use crate::workspace::{crates_of_ours, root, sources};

/// Crates whose subject is printed answers.
const OUTPUTS: [&str; 4] = ["base", "show", "columnar", "serve"];

/// How a Section, a table or a column is found by its name.
const LOOKUPS: [&str; 10] = [
    ".table(\"",
    ".column(\"",
    ".cell(row, \"",
    "row.cell(\"",
    "row.text(\"",
    "row.number(\"",
    "section.id ==",
    "table.name ==",
    "column.name ==",
    ".columns.iter().position(",
];

/// Places in `text`, before its tests, that look something up by name.
fn lookups(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let own = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    own.lines().enumerate().filter(|(_, line)| LOOKUPS.iter().any(|lookup| line.contains(lookup)))
}

#[test]
fn nothing_below_the_outputs_reads_a_printed_table() {
    let mut files = Vec::new();
    for folder in crates_of_ours().values().map(|folder| root().join(folder)) {
        if !OUTPUTS.iter().any(|output| folder.ends_with(output)) {
            sources(&folder.join("src"), &mut files);
        }
    }
    assert!(files.len() > 300, "{}: where are the sources?", files.len());
    // The database of Open vSwitch and the sections of trace.dat are tables of their own.
    // A data set stores tables of its own, to be read again.
    let others = ["ovsdb.rs", "v7.rs", "tests.rs", "fleet/model.rs"];
    files.retain(|file| {
        others.iter().all(|other| !file.ends_with(other)) && !file.components().any(|part| part.as_os_str() == "tests")
    });
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        found.extend(lookups(&text).map(|(line, text)| format!("{}:{}: {}", file.display(), line + 1, text.trim())));
    }
    assert!(found.is_empty(), "a table is no interface between questions:\n{}", found.join("\n"));
}

#[test]
fn a_lookup_is_found_and_a_test_is_not_meant() {
    let source = "fn f() {\n    section.table(\"exits\")\n}\n\n#[cfg(test)]\nmod tests {\n    x.table(\"y\")\n}\n";
    assert_eq!(lookups(source).map(|(line, _)| line).collect::<Vec<_>>(), [1]);
}
