//! Files and directories of a recording, carried into another one.

use anyhow::Context as _;
use base::recording::part_files;
use std::io;
use std::path::Path;

/// Copies the part at `from` of the recording at `root`, a file or a directory with all that is in it. What is no file of the recording
/// is refused.
///
/// # Errors
/// By the file that cannot be read, or is none of the recording.
pub fn copy(root: &Path, from: &Path, to: &Path) -> anyhow::Result<()> {
    carry(root, from, to, |from, to| std::fs::copy(from, to).map(drop))
}

/// The same, without using space where both places are on one file system: nothing in a recording is written again.
///
/// # Errors
/// Those of [`copy`].
pub fn link_or_copy(root: &Path, from: &Path, to: &Path) -> anyhow::Result<()> {
    carry(root, from, to, |from, to| std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop)))
}

fn carry(root: &Path, from: &Path, to: &Path, file: impl Fn(&Path, &Path) -> io::Result<()>) -> anyhow::Result<()> {
    for part_file in part_files(root, from)? {
        let (path, to) = (&part_file.path, part_file.in_part_at(to));
        let above = to.parent().map_or(Ok(()), std::fs::create_dir_all);
        let copied = above.and_then(|()| file(path, &to));
        copied.with_context(|| format!("{} could not be copied to {}", path.display(), to.display()))?;
    }
    Ok(())
}
