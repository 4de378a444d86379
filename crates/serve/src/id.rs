//! By what name does a URL call what lies in the folder?
//!
//! ```text
//! folder/web/recording.json    id `web`         an id is the path below the folder in letters that a URL takes as
//! folder/a/b/trace.dat         id `a~2Fb~2Ftrace.dat`     they are: all else is `~` and two hex digits a byte
//! folder/paste.txt             id `paste.txt`, or `paste.txt~~2` for the second of its runs
//! folder itself                id `~`
//! ```

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// What stands in an id between a file and which of its runs is meant.
const RUN: &str = "~~";

/// The id of the folder, where it is a recording itself.
const ITSELF: &str = "~";

/// The id of the recording at `below`.
pub(crate) fn id_of(below: &Path) -> String {
    if below.as_os_str().is_empty() {
        return ITSELF.to_owned();
    }
    let mut id = String::new();
    for byte in below.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"._-".contains(byte) {
            id.push(char::from(*byte));
        } else {
            let _ = write!(id, "~{byte:02X}");
        }
    }
    id
}

/// The id of a run, counted from 1, of the text at `below`.
pub(crate) fn id_of_run(below: &Path, run: usize) -> String {
    format!("{}{RUN}{run}", id_of(below))
}

/// The path below the folder that `id` stands for, and which of its runs; `None` for what is no id, or would leave the folder.
pub(crate) fn path_of(id: &str) -> Option<(PathBuf, Option<usize>)> {
    match id.split_once(RUN) {
        Some((file, run)) => Some((path_of_file(file)?, Some(run.parse().ok()?))),
        None => Some((path_of_file(id)?, None)),
    }
}

fn path_of_file(id: &str) -> Option<PathBuf> {
    if id == ITSELF {
        return Some(PathBuf::new());
    }
    let mut bytes = Vec::with_capacity(id.len());
    let mut rest = id.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'~' {
            let hex = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    let plain = |component: Component| match component {
        Component::Normal(name) => !name.as_bytes().starts_with(b".") && !name.as_bytes().contains(&0),
        _ => false,
    };
    (path.components().count() > 0 && path.components().all(plain)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_in_a_url_and_lead_back() {
        for path in ["web", "a/b/trace.dat", "with space/ümläut~", "100%", "~"] {
            let id = id_of(Path::new(path));
            assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte)), "{id}");
            assert_eq!(path_of(&id), Some((PathBuf::from(path), None)), "{id}");
        }
        assert_eq!(path_of(ITSELF), Some((PathBuf::new(), None)));
        assert_eq!(path_of("a.txt~~2"), Some((PathBuf::from("a.txt"), Some(2))));
    }

    #[test]
    fn no_id_leads_out() {
        for id in [
            "",
            "..",
            ".",
            "~2F",
            "~2Fetc~2Fpasswd",
            "a~2F..~2F..~2Fb",
            "/etc",
            "../x",
            ".hidden",
            "~2",
            "~zz",
            "a~00",
            "a~~",
            "a~~b",
            "..~~1",
        ] {
            assert_eq!(path_of(id), None, "{id}");
        }
    }
}
