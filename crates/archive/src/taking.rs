//! The entries of an archive become files below a directory: plain names only, nothing through a link, within bounds.
//!
//! ```text
//! file --decoder--> Metered: no more bytes than allowed --tar, header by header--> directory/path
//!                                                          links: last of all, if they stay inside, or not at all
//! ```
//! Headers that extend others (long names, pax) are read here, because the tar crate would read them whole, however long.

use crate::Error;
use crate::bounds::{ENTRIES, EXTENSION_BYTES};
use crate::format::Format;
use crate::paths::{inside, make_directories, of_pax, plain};
use crate::unpack::Links;
use base::Problem;
use base::number::counted;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

const LINKS: usize = 0;
const PLACES: usize = 1;
const KINDS: usize = 2;

pub(crate) struct Taking<'a> {
    archive: &'a Path,
    root: &'a Path,
    left_out: [u64; 3],
    links: Vec<(PathBuf, PathBuf)>,
}

impl<'a> Taking<'a> {
    /// Nothing of `archive` yet, which is to go below `root`.
    pub(crate) fn new(archive: &'a Path, root: &'a Path) -> Self {
        Self { archive, root, left_out: [0; 3], links: Vec::new() }
    }

    /// Writes what is in it, `most` bytes at most, and returns how many were unpacked; `more` says whether to go on behind an
    /// entry. Links are only noted.
    pub(crate) fn entries(
        &mut self,
        format: Format,
        file: File,
        most: u64,
        more: &dyn Fn(&Path) -> bool,
    ) -> Result<u64, Error> {
        let reader = format.reader(file).map_err(|source| self.damaged(source))?;
        let reader = Metered { inner: reader, left: most, most };
        let mut tar = tar::Archive::new(reader);
        let (mut count, mut long_name, mut long_link) = (0, None, None);
        for entry in tar.entries().map_err(|source| self.damaged(source))?.raw(true) {
            let mut entry = entry.map_err(|source| self.damaged(source))?;
            count += 1;
            if count > ENTRIES {
                return Err(self.too_much(format!("it has more than {ENTRIES} entries")));
            }
            let kind = entry.header().entry_type();
            if kind.is_gnu_longname() || kind.is_gnu_longlink() || kind.is_pax_local_extensions() {
                let bytes = self.extension(&mut entry)?;
                if kind.is_pax_local_extensions() {
                    let (name, link) = of_pax(&bytes);
                    (long_name, long_link) = (name.or(long_name), link.or(long_link));
                } else {
                    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                    let slot = if kind.is_gnu_longname() { &mut long_name } else { &mut long_link };
                    *slot = Some(PathBuf::from(OsStr::from_bytes(text)));
                }
                continue;
            }
            let own = || PathBuf::from(OsStr::from_bytes(&entry.path_bytes()));
            let path = long_name.take().unwrap_or_else(own);
            let link = long_link.take();
            let Some(path) = plain(&path) else {
                // The archive's own top is no place outside.
                self.left_out[PLACES] += u64::from(!kind.is_dir() && !kind.is_pax_global_extensions());
                continue;
            };
            if kind.is_file() || kind.is_contiguous() {
                let written = self.file(&path, &mut entry);
                written.map_err(|source| self.damaged(source))?;
            } else if kind.is_dir() {
                make_directories(&self.root.join(&path)).map_err(|source| self.damaged(source))?;
            } else if kind.is_symlink() {
                let target = link.or_else(|| Some(PathBuf::from(OsStr::from_bytes(&entry.link_name_bytes()?))));
                self.links.extend(target.map(|target| (path.clone(), target)));
            } else {
                self.left_out[KINDS] += 1;
            }
            if !more(&path) {
                break;
            }
        }
        Ok(most - tar.into_inner().left)
    }

    /// Writes the one file that was compressed, under the name that the archive has without its ending.
    pub(crate) fn only(&mut self, format: Format, file: File, most: u64) -> Result<u64, Error> {
        let reader = format.reader(file).map_err(|source| self.damaged(source))?;
        let name = self.root.file_name().map_or_else(|| PathBuf::from("file"), PathBuf::from);
        self.whole(&name, reader, most)
    }

    /// Writes all that `inner` gives, as far as `most` allows.
    pub(crate) fn whole(&mut self, name: &Path, inner: impl Read, most: u64) -> Result<u64, Error> {
        let mut reader = Metered { inner, left: most, most };
        self.file(name, &mut reader).map_err(|source| self.damaged(source))?;
        Ok(most - reader.left)
    }

    /// Writes what is in a ZIP, as [`entries`](Self::entries) does.
    pub(crate) fn zipped(&mut self, file: File, most: u64) -> Result<u64, Error> {
        let broken = |error| match error {
            zip::result::ZipError::Io(source) => source,
            error => io::Error::new(io::ErrorKind::InvalidData, error),
        };
        let mut zip = zip::ZipArchive::new(file).map_err(|error| self.damaged(broken(error)))?;
        if zip.len() as u64 > ENTRIES {
            return Err(self.too_much(format!("it has more than {ENTRIES} entries")));
        }
        let mut left = most;
        for index in 0..zip.len() {
            let entry = zip.by_index(index).map_err(|error| self.damaged(broken(error)))?;
            let name = entry.name().map(std::borrow::Cow::into_owned);
            let Some(path) = name.ok().and_then(|name| plain(Path::new(&name))) else {
                self.left_out[PLACES] += u64::from(!entry.is_dir());
                continue;
            };
            if entry.is_symlink() {
                self.left_out[LINKS] += 1;
            } else if entry.is_dir() {
                make_directories(&self.root.join(&path)).map_err(|source| self.damaged(source))?;
            } else {
                let mut reader = Metered { inner: entry, left, most };
                self.file(&path, &mut reader).map_err(|source| self.damaged(source))?;
                left = reader.left;
            }
        }
        Ok(most - left)
    }

    /// Makes the noted links as far as they are allowed.
    pub(crate) fn links(&mut self, links: Links) {
        match links {
            Links::Inside => self.make_links(),
            Links::Never => self.left_out[LINKS] += self.links.len() as u64,
        }
    }

    /// A header that extends the next one.
    fn extension(&self, entry: &mut impl Read) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = entry.take(EXTENSION_BYTES + 1).read_to_end(&mut bytes).map_err(|source| self.damaged(source))?;
        if read as u64 > EXTENSION_BYTES {
            return Err(self.too_much(format!("a name or header in it has more than {EXTENSION_BYTES} bytes")));
        }
        Ok(bytes)
    }

    /// Writes a file; of several of one name the first stays.
    fn file(&mut self, path: &Path, bytes: &mut impl Read) -> io::Result<()> {
        let place = self.root.join(path);
        let made = make_directories(place.parent().unwrap_or(self.root));
        let file = made.and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place));
        match file {
            Ok(mut file) => io::copy(bytes, &mut file).map(drop),
            // A file where a directory should be, or the other way round, or a second one.
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) => {
                self.left_out[PLACES] += 1;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the links that lead to places inside. Nothing is written any more, so nothing is written through them.
    fn make_links(&mut self) {
        for (path, target) in std::mem::take(&mut self.links) {
            let place = self.root.join(&path);
            let above = place.parent().unwrap_or(self.root);
            // The directory is itself, not one that another link leads to.
            let is_itself = || Some(above.canonicalize().ok()? == self.root.canonicalize().ok()?.join(path.parent()?));
            let made = inside(&path, &target)
                && make_directories(above).is_ok()
                && is_itself() == Some(true)
                && symlink(&target, &place).is_ok();
            self.left_out[LINKS] += u64::from(!made);
        }
    }

    fn damaged(&self, source: io::Error) -> Error {
        match source.get_ref().and_then(|inner| inner.downcast_ref::<Beyond>()) {
            Some(Beyond(most)) => self.too_much(format!("it unpacks to more than {most} bytes")),
            // A disk that fails, or is full, says nothing about the archive.
            None if source.raw_os_error().is_some() => Error::Refused { path: self.archive.to_owned(), source },
            None => Error::Damaged { path: self.archive.to_owned(), source },
        }
    }

    fn too_much(&self, reason: String) -> Error {
        Error::TooMuch { path: self.archive.to_owned(), reason }
    }

    pub(crate) fn problems(&self) -> Vec<Problem> {
        let said = [
            (LINKS, "links that point outside"),
            (PLACES, "files with names that point outside, or duplicates"),
            (KINDS, "devices and other special files"),
        ];
        let file = self.archive.display().to_string();
        let problem = |(kind, what): (usize, &str)| {
            let count = self.left_out[kind];
            let text = format!("{file}: ignored {}: {what}", counted(count, "entry", "entries"));
            (count > 0).then(|| Problem::at(file.clone(), None, "plain files", what, 0, text))
        };
        said.into_iter().filter_map(problem).collect()
    }
}

/// Said by [`Metered`] at its end.
#[derive(Debug, thiserror::Error)]
#[error("more than {0} bytes")]
struct Beyond(u64);

/// A reader that gives so many bytes and no more.
struct Metered<R> {
    inner: R,
    left: u64,
    most: u64,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(Beyond(self.most)))?;
        Ok(read)
    }
}
