//! What does the lab's machine boot into?
//!
//! Into this very program: the initramfs holds it as [`PROGRAM`], the libraries that it is linked with, the modules, and
//! what it is to do there ([`Orders`]). No shell and no other program are needed.
//!
//! Which libraries those are, `ldd` says, by the paths under which the program will look for them.

use super::cpio::Archive;
use super::inside::Orders;
use super::modules::{self, Modules};
use lab::Error;
use lab::program::Program;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where the program lies in the machine.
pub const PROGRAM: &str = "/kvmscope";
pub(crate) const JOB: &str = "/job.json";

pub struct Contents<'a> {
    pub program: &'a Path,
    /// What it is to do there; the names of the modules are filled in.
    pub orders: Orders,
    pub modules: &'a [&'a str],
    pub programs: Vec<PathBuf>,
    pub files: Vec<(PathBuf, PathBuf)>,
}

/// Writes the initramfs to `to`.
///
/// # Errors
/// If something cannot be read or written, or if a program's libraries cannot be told.
pub fn write(to: &Path, contents: Contents<'_>, modules: &Modules) -> Result<(), Error> {
    let mut archive = Tree::new(BufWriter::new(File::create(to).map_err(|error| Error::io(to, error))?));
    let io = |error| Error::io(to, error);
    for directory in ["proc", "sys", "dev", "tmp"] {
        archive.directory(Path::new(directory)).map_err(io)?;
    }
    archive.copy(Path::new(PROGRAM), contents.program).map_err(io)?;
    let mut all: BTreeSet<PathBuf> = libraries(contents.program)?.into_iter().collect();
    for program in contents.programs {
        all.extend(libraries(&program)?);
        all.insert(program);
    }
    for path in &all {
        archive.copy(path, path).map_err(|error| Error::io(path, error))?;
    }
    for (place, from) in &contents.files {
        archive.copy(place, from).map_err(|error| Error::io(from, error))?;
    }
    let mut orders = contents.orders;
    for (name, path) in modules.in_order(contents.modules)? {
        archive.file(&PathBuf::from(format!("modules/{name}.ko")), &modules::content(&path)?).map_err(io)?;
        orders.modules.push(name);
    }
    let orders = serde_json::to_vec(&orders).map_err(|error| io(error.into()))?;
    archive.file(Path::new(JOB), &orders).map_err(io)?;
    archive.archive.finish().map_err(io)?;
    Ok(())
}

/// An archive that makes directories as they are needed.
struct Tree<W: Write> {
    archive: Archive<W>,
    directories: BTreeSet<PathBuf>,
}

impl<W: Write> Tree<W> {
    fn new(out: W) -> Self {
        Self { archive: Archive::new(out), directories: BTreeSet::new() }
    }

    fn directory(&mut self, path: &Path) -> io::Result<()> {
        let path = inside(path);
        if path.as_os_str().is_empty() || !self.directories.insert(path.to_owned()) {
            return Ok(());
        }
        if let Some(above) = path.parent() {
            self.directory(above)?;
        }
        self.archive.directory(&path.to_string_lossy())
    }

    fn above(&mut self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |above| self.directory(above))
    }

    fn copy(&mut self, path: &Path, from: &Path) -> io::Result<()> {
        self.above(path)?;
        self.archive.copy(&inside(path).to_string_lossy(), from)
    }

    fn file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.above(path)?;
        self.archive.file(&inside(path).to_string_lossy(), bytes)
    }
}

/// Names in an archive are relative to the root that it becomes.
fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// The shared libraries and the dynamic linker of a program; none if it is linked statically.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, Error> {
    let unable =
        |why: String| Error::refused(format_args!("the libraries of {} cannot be determined", program.display()), why);
    let output = Program::new("ldd", "libc-bin").output(&[program]);
    let output =
        output.map_err(|error| unable(format!("ldd does not start ({error}); it is in the package libc-bin")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let linked_statically = said.contains("not a dynamic") || text.contains("not a dynamic");
        return if linked_statically { Ok(Vec::new()) } else { Err(unable(said.trim().to_owned())) };
    }
    Ok(listed(&text))
}

/// The paths in what `ldd` prints: `libc.so.6 => /lib/libc.so.6 (0x7f..)`, or `/lib64/ld-linux-x86-64.so.2 (0x7f..)`.
fn listed(text: &str) -> Vec<PathBuf> {
    let paths = text.lines().filter_map(|line| {
        let line = line.split_once(" => ").map_or(line, |(_, path)| path);
        line.split_whitespace().next().filter(|path| path.starts_with('/'))
    });
    paths.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_that_have_a_path() {
        let text = "\tlinux-vdso.so.1 (0x7ffe)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x7f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x7f0)\n\tstatically linked\n";
        let expected = [Path::new("/lib/x86_64-linux-gnu/libm.so.6"), Path::new("/lib64/ld-linux-x86-64.so.2")];
        assert_eq!(listed(text), expected);
    }

    #[test]
    fn directories_come_once_and_before_what_they_hold() {
        let mut tree = Tree::new(Vec::new());
        tree.file(Path::new("/lib/deep/a"), b"1").unwrap();
        tree.file(Path::new("/lib/deep/b"), b"2").unwrap();
        let bytes = tree.archive.finish().unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let places: Vec<_> = ["lib\0", "lib/deep\0", "lib/deep/a\0", "lib/deep/b\0"].map(|name| text.find(name)).into();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
        assert_eq!(text.matches("lib/deep\0").count(), 1);
    }
}
