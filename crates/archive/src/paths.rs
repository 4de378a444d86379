//! Paths of entries and links: which of them stay below the directory.

use crate::bounds::{DEPTH, PATH_BYTES};
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

/// A path of plain names below the directory.
pub(crate) fn plain(path: &Path) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() as u64 > PATH_BYTES || bytes.contains(&0) {
        return None;
    }
    let mut kept = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => kept.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (1..=DEPTH).contains(&kept.components().count()).then_some(kept)
}

/// Whether a link at `path` to `target` leads to a place inside: up no further than to the top, then down by names. A way up
/// behind a name could begin at another link.
pub(crate) fn inside(path: &Path, target: &Path) -> bool {
    let up = target.components().take_while(|component| *component == Component::ParentDir).count();
    let mut down = target.components().skip(up);
    up < path.components().count() && down.all(|component| matches!(component, Component::Normal(_)))
}

/// Makes a directory and those above it, for its owner alone.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// `path` and `linkpath` of a pax header.
pub(crate) fn of_pax(bytes: &[u8]) -> (Option<PathBuf>, Option<PathBuf>) {
    let (mut name, mut link) = (None, None);
    for extension in tar::PaxExtensions::new(bytes).flatten() {
        let value = || Some(PathBuf::from(OsStr::from_bytes(extension.value_bytes())));
        match extension.key_bytes() {
            b"path" => name = value(),
            b"linkpath" => link = value(),
            _ => {}
        }
    }
    (name, link)
}
