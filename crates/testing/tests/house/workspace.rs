//! Where the sources of this repository are: for tests that hold rules over all of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of each crate of ours, by the name under which others use it.
pub(crate) fn crates_of_ours() -> BTreeMap<String, String> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let of_line = |line: &str| {
        let (name, rest) = line.split_once(" = { path = \"")?;
        Some((name.to_owned(), rest.split('"').next()?.to_owned()))
    };
    manifest.lines().filter_map(of_line).collect()
}

/// Adds all files of Rust below `directory`.
pub(crate) fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
