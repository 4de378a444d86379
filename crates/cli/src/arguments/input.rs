//! What is read: a path, or `-` for stdin.

use anyhow::{Context, bail};
use std::cell::OnceCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Gives stdin a name, as readers jump to and fro in what they read. The copy is gone when this is.
#[derive(Default)]
pub struct Stdin {
    copy: OnceCell<TempDir>,
}

impl Stdin {
    /// The path itself, or that of a copy of stdin.
    pub fn path(&self, path: &Path) -> anyhow::Result<PathBuf> {
        if !super::is_dash(path) {
            return Ok(path.to_owned());
        }
        let made = tempfile::Builder::new().prefix("kvmscope-stdin-").tempdir().context("a temporary directory")?;
        let copy = made.path().join("stdin");
        std::io::copy(&mut std::io::stdin().lock(), &mut File::create(&copy)?).context("stdin cannot be read")?;
        if self.copy.set(made).is_err() {
            bail!(crate::exit::WrongUse("stdin can be read once only; name files for the others".to_owned()));
        }
        Ok(copy)
    }
}

/// `-`, as everywhere: stdin where something is read, stdout where something is written.
pub fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}
