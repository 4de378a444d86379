//! Is everything there that a run of the lab will start or take along?
//!
//! In: what a run needs, and where programs and files are looked for. Out: nothing, or one sentence with all that is missing
//! and the Debian packages that bring it, before anything is fetched or booted.

use lab::Error;
use std::path::{Path, PathBuf};

/// A program, or a file by its path, and the Debian package that brings it.
pub(crate) type Need = (&'static str, &'static str);

/// Looks for each of `needs`: programs in the directories `programs`, files below `root`.
///
/// # Errors
/// If anything is missing.
pub(crate) fn require<'n>(
    needs: impl IntoIterator<Item = &'n Need>,
    programs: &[PathBuf],
    root: &Path,
) -> Result<(), Error> {
    let there = |name: &str| match name.strip_prefix('/') {
        Some(file) => root.join(file).exists(),
        None => programs.iter().any(|directory| directory.join(name).is_file()),
    };
    let needs: Vec<&Need> = needs.into_iter().filter(|(name, _)| !there(name)).collect();
    if needs.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = needs.iter().map(|(name, _)| *name).collect();
    let mut packages: Vec<_> = needs.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    let (names, packages) = (names.join(", "), packages.join(" "));
    Err(Error::Absent(format!("the lab needs {names}; on Debian: apt-get install {packages}")))
}
