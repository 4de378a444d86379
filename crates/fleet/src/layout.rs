//! Where the files of a data set lie, whatever stores them.

use analysis::fleet::{FAILURES, Id, RECORDINGS, STORED};

/// The version of the layout.
pub const SCHEMA: &str = "kvmscope-dataset/1";
/// The file that says so, at the root; its name begins so that readers of Parquet leave it alone.
pub const MANIFEST: &str = "_kvmscope.json";
/// The file in each folder.
pub(crate) const FILE: &str = "part.parquet";
/// Longest name of a folder: file systems take 255 bytes.
const MOST_BYTES: usize = 180;

/// The content of the file at the root.
pub fn manifest() -> String {
    let about = serde_json::json!({
        "schema": SCHEMA,
        "tables": columnar::SCHEMA,
        "tool": concat!("kvmscope ", env!("CARGO_PKG_VERSION")),
        "layout": "<section>.<table>/host=<HOST>/recording=<ID>/part.parquet",
        "complete_if_in": RECORDINGS.address(),
    });
    format!("{about:#}\n")
}

/// `<table>/host=<HOST>/recording=<ID>/part.parquet`.
pub fn path(table: &str, id: &Id) -> String {
    format!("{table}/host={}/recording={}/{FILE}", encoded(&id.host), encoded(&id.recording))
}

/// The file that is there once all others of a recording are.
pub fn recordings_path(id: &Id) -> String {
    path(&RECORDINGS.address(), id)
}

/// The files that an answer over all recordings needs of one, the row in `fleet.recordings` last.
pub fn stored_paths(id: &Id) -> Vec<(String, &'static base::table::TableSpec)> {
    STORED.iter().map(|spec| (path(&spec.address(), id), *spec)).collect()
}

/// The file that says why the recording at `source` was not added.
pub fn failure_path(source: &str) -> String {
    let id = Id { host: "unknown".to_owned(), recording: crate::digest::short(source.as_bytes()) };
    path(&FAILURES.address(), &id)
}

/// Whether people named a place that is no path of this machine.
pub fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    })
}

/// A value as the name of a folder: `%` and two digits for every byte that a file system, a URL or a reader of partitions could take otherwise.
/// Readers of Hive's partitions turn it back.
pub fn encoded(value: &str) -> String {
    let mut name = String::new();
    for (at, byte) in value.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || byte == b'-' || (at > 0 && (byte == b'.' || byte == b'_'));
        if is_plain { name.push(char::from(byte)) } else { name.push_str(&format!("%{byte:02X}")) }
    }
    if name.len() > MOST_BYTES {
        // Cut, and still another one for each value.
        let cut = (0..MOST_BYTES - 17).rev().find(|at| !name[at.saturating_sub(2)..*at].contains('%')).unwrap_or(0);
        name.truncate(cut);
        name.push('-');
        name.push_str(&crate::digest::short(value.as_bytes()));
    }
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// The value that a folder is named after.
pub fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = (*first == b'%').then(|| after.get(..2)).flatten().and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders_are_safe_and_turn_back() {
        for name in ["web-1.example.org", "../../etc", "a=b/c", ".hidden", "_spark", "ä ö", "50%", "host=x", "a\nb"] {
            let folder = encoded(name);
            assert!(folder.chars().all(|one| one.is_ascii_alphanumeric() || "-._%".contains(one)), "{folder}");
            assert!(!folder.starts_with(['.', '_']), "{folder}");
            assert_eq!(decoded(&folder), name);
        }
        assert_eq!(encoded(""), "unknown");
        let long = "ä".repeat(200);
        assert_eq!(encoded(&decoded(&encoded(&long))), encoded(&long));
        assert!(encoded(&long).len() <= MOST_BYTES && encoded(&long) != encoded(&"ä".repeat(201)));
    }

    #[test]
    fn urls_are_told_from_paths() {
        assert!(is_url("s3://bucket/fleet") && is_url("file:///tmp") && is_url("gs://x"));
        assert!(!is_url("fleet") && !is_url("/tmp/a://b") && !is_url("://x"));
    }
}
