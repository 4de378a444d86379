//! What is read: a path, `-` for stdin, or an archive, which is unpacked first.

use anyhow::{Context, bail};
use archive::{Links, Unpacked};
use base::Problem;
use process::interrupt::Interrupt;
use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Gives stdin a name, as readers jump to and fro in what they read, and keeps what was unpacked. All is gone when this is.
#[derive(Default)]
pub(crate) struct Stdin {
    copy: OnceCell<TempDir>,
    unpacked: RefCell<Vec<Unpacked>>,
    pieces: RefCell<Vec<TempDir>>,
}

impl Stdin {
    /// Unpacks an archive and hands what was in it to `read`; a signal removes it.
    pub(crate) fn unpacked<T>(
        &self,
        path: &Path,
        links: Links,
        interrupt: &Interrupt,
        read: impl FnOnce(&Unpacked) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut unpacked = archive::unpack(path, links, interrupt.temporary("kvmscope-unpacked")?)?;
        if links == Links::Inside {
            unpack_within(&mut unpacked);
        }
        let answer = read(&unpacked);
        self.unpacked.borrow_mut().push(unpacked);
        answer
    }

    /// Keeps the pieces of a text until all is answered.
    pub(crate) fn keep(&self, pieces: TempDir) {
        self.pieces.borrow_mut().push(pieces);
    }

    /// The path itself, or that of a copy of stdin.
    pub(crate) fn path(&self, path: &Path) -> anyhow::Result<PathBuf> {
        if !super::is_dash(path) {
            return Ok(path.to_owned());
        }
        let made = base::recording::temporary("kvmscope-stdin").context("a temporary directory")?;
        let copy = made.path().join("stdin");
        std::io::copy(&mut std::io::stdin().lock(), &mut File::create(&copy)?).context("stdin cannot be read")?;
        if self.copy.set(made).is_err() {
            bail!(process::exit::WrongUse("stdin can be read only once; name files for the others".to_owned()));
        }
        Ok(copy)
    }
}

/// A must-gather has the files of each node's `/proc` and `/sys` in an archive of their own. What cannot be unpacked is a
/// problem, and the rest is read.
fn unpack_within(unpacked: &mut Unpacked) {
    let (root, mut left) = (unpacked.root(), unpacked.most_bytes_within());
    for inner in host::snapshot::trees_in(&root).iter().filter_map(|tree| host::snapshot::packed_in(tree)) {
        if let Err(error) = unpacked.add(&inner, &mut left) {
            let file = inner.display().to_string();
            unpacked.problems.push(Problem::at(file, None, "files of a machine", "none", 0, error.to_string()));
        }
    }
}

/// `-`, as everywhere: stdin where something is read, stdout where something is written.
pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}
