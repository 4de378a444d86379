//! What a snapshot says of itself: times, links, and what was not readable.
//!
//! A snapshot that lacks these files (a report of another tool, `/` itself) knows no times and takes links as they are.

use crate::budget::JSON_BYTES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Name of the file with the times.
pub const TIMES_FILE: &str = "times.json";

/// Name of the file with the links' targets.
pub const LINKS_FILE: &str = "links.json";

/// Name of the file that lists what was not readable.
pub const UNREADABLE_FILE: &str = "unreadable.txt";

/// When files were read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The clock, as `clock_gettime` calls it: `monotonic`.
    pub clock: String,
    /// Nanoseconds of that clock right before a file was read, by its path.
    pub files: BTreeMap<String, u64>,
}

pub(super) fn times(root: &Path) -> Times {
    text(root, TIMES_FILE).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

pub(super) fn links(root: &Path) -> BTreeMap<String, String> {
    text(root, LINKS_FILE).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

pub(super) fn unreadable(root: &Path) -> BTreeMap<String, String> {
    let text = text(root, UNREADABLE_FILE).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(path, reason)| (path.to_owned(), reason.to_owned())).collect()
}

fn text(root: &Path, name: &str) -> Option<String> {
    let mut text = String::new();
    base::files::open(&root.join(name)).ok()?.take(JSON_BYTES as u64).read_to_string(&mut text).ok()?;
    Some(text)
}
