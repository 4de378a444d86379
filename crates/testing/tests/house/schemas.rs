//! Every schema that the sources name stands in the page about schemas.

use super::patience::{files, tests_in};
use std::collections::BTreeSet;
use std::path::Path;

/// `kvmscope-live/1` of a line, where it names one.
fn schemas(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !(letter.is_ascii_alphanumeric() || "-./".contains(letter)))
        .filter(|part| part.starts_with("kvmscope"))
        .filter(|part| part.rsplit_once('/').is_some_and(|(_, version)| version.parse::<u32>().is_ok()))
}

#[test]
fn every_schema_is_told_of() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/formats/schemas.md")).unwrap();
    let mut sources = Vec::new();
    ["crates", "channel", "python/src"].iter().for_each(|folder| files(&root.join(folder), ".rs", &mut sources));
    let mut missing = BTreeSet::new();
    for path in sources {
        let text = std::fs::read_to_string(&path).unwrap();
        let tests = tests_in(path.strip_prefix(&root).unwrap(), &text).1;
        let code = &text[..text.len() - tests.len()];
        missing.extend(code.lines().flat_map(schemas).filter(|name| !page.contains(name)).map(str::to_owned));
    }
    assert!(missing.is_empty(), "docs/formats/schemas.md says nothing of {missing:?}");
    assert_eq!(schemas(r#"("schema", "kvmscope-live/1")"#).collect::<Vec<_>>(), ["kvmscope-live/1"]);
}
