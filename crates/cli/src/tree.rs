//! Files and directories of a recording, carried into another one.

use std::io;
use std::path::Path;

/// Copies a file, or a directory with all that is in it. Links are left out: they may lead anywhere.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    carry(from, to, &|from, to| std::fs::copy(from, to).map(drop))
}

/// The same, without using space where both places are on one file system: nothing in a recording is written again.
pub(crate) fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    carry(from, to, &|from, to| std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop)))
}

fn carry(from: &Path, to: &Path, file: &dyn Fn(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
    let kind = std::fs::symlink_metadata(from)?.file_type();
    if kind.is_file() {
        file(from, to)?;
    } else if kind.is_dir() {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            carry(&entry.path(), &to.join(entry.file_name()), file)?;
        }
    }
    Ok(())
}
