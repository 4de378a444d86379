//! What is read: a path, `-` for stdin, or an archive, which is unpacked first.

use crate::interrupt::Interrupt;
use anyhow::{Context, bail};
use archive::{Links, Unpacked};
use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Gives stdin a name, as readers jump to and fro in what they read, and keeps what was unpacked. All is gone when this is.
#[derive(Default)]
pub struct Stdin {
    copy: OnceCell<TempDir>,
    unpacked: RefCell<Vec<Unpacked>>,
}

impl Stdin {
    /// Unpacks an archive and hands what was in it to `read`; a signal removes it.
    pub fn unpacked<T>(
        &self,
        path: &Path,
        links: Links,
        interrupt: &Interrupt,
        read: impl FnOnce(&Unpacked) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let unpacked = archive::unpack(path, links, interrupt.temporary("kvmscope-unpacked-")?)?;
        let answer = read(&unpacked);
        self.unpacked.borrow_mut().push(unpacked);
        answer
    }

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
