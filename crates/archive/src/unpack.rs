//! An archive becomes a directory of its own, within bounds.
//!
//! ```text
//! file --decoder--> Metered: no more bytes than allowed --tar, header by header--> directory/NAME/path
//!                                                          links: last of all, if they stay inside, or not at all
//! ```
//! Headers that extend others (long names, pax) are read here, because the tar crate would read them whole, however long.

use crate::bounds::{DEPTH, ENTRIES, EXTENSION_BYTES, PATH_BYTES, unpacked_bytes};
use crate::format::{Format, format_of};
use crate::{EXTENSION, Error};
use base::Problem;
use base::recording::{MANIFEST, Recording};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use tempfile::TempDir;

/// What becomes of symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// They are left out: a recording has none.
    Never,
    /// Those that lead to a place inside are made, after all files: a tree of `/sys` says by them what belongs to what.
    Inside,
}

/// What was in an archive; it is removed when this is dropped.
#[derive(Debug)]
pub struct Unpacked {
    directory: TempDir,
    name: PathBuf,
    /// What was left out.
    pub problems: Vec<Problem>,
}

impl Unpacked {
    /// The directory that has what was in it, called as the archive was.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join(&self.name)
    }

    /// The private directory around it, to be removed.
    pub fn place(&self) -> &Path {
        self.directory.path()
    }

    /// The recording that was in it.
    ///
    /// # Errors
    /// If there is none, or if its manifest cannot be read.
    pub fn recording(&self) -> Result<Recording, Error> {
        let mut recording = Recording::open(&self.root())?;
        recording.problems.extend(self.problems.iter().cloned());
        Ok(recording)
    }
}

/// Unpacks the archive `path` into `directory`, which is private and empty.
///
/// # Errors
/// If it cannot be read, is none, or goes beyond a bound; nothing is left behind then.
pub fn unpack(path: &Path, links: Links, directory: TempDir) -> Result<Unpacked, Error> {
    take(path, links, directory, unpacked_bytes, &|_| true)
}

/// Unpacks the manifest alone, which comes first: to list a recording.
///
/// # Errors
/// As [`unpack`].
pub fn manifest(path: &Path) -> Result<Unpacked, Error> {
    let directory = private().map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
    take(path, Links::Never, directory, unpacked_bytes, &|entry| entry != Path::new(MANIFEST))
}

/// A new private directory for what was packed.
///
/// # Errors
/// If the operating system refuses.
pub fn private() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("kvmscope-unpacked-").tempdir()
}

/// `most` says how much an archive of a size may unpack to, `more` whether to go on behind an entry.
fn take(
    path: &Path,
    links: Links,
    directory: TempDir,
    most: fn(u64) -> u64,
    more: &dyn Fn(&Path) -> bool,
) -> Result<Unpacked, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let no_archive = || io::Error::new(io::ErrorKind::InvalidData, "neither tar nor compressed by gzip, xz or zstd");
    let format = format_of(path).ok_or_else(|| Error::Damaged { path: path.to_owned(), source: no_archive() })?;
    let file = File::open(path).map_err(io)?;
    let packed = file.metadata().map_err(io)?.len();
    let name = PathBuf::from(name_of(path));
    let root = directory.path().join(&name);
    make_directories(&root).map_err(io)?;
    let mut taking = Taking { archive: path, root: &root, left_out: [0; 3], links: Vec::new() };
    taking.entries(format, file, most(packed), more)?;
    if links == Links::Inside {
        taking.make_links();
    } else {
        taking.left_out[LINKS] += taking.links.len() as u64;
    }
    let problems = taking.problems();
    Ok(Unpacked { directory, name, problems })
}

/// The archive's name without what says how it is packed; a name that leads elsewhere is none.
fn name_of(path: &Path) -> &OsStr {
    let name = path.file_name().unwrap_or(OsStr::new("archive")).as_bytes();
    let own = format!(".{EXTENSION}");
    let ends = [own.as_str(), ".zst", ".zstd", ".xz", ".gz", ".tgz", ".txz", ".tar"];
    let mut name = name;
    for end in ends {
        name = name.strip_suffix(end.as_bytes()).filter(|rest| !rest.is_empty()).unwrap_or(name);
    }
    OsStr::from_bytes(name)
}

/// Kinds of what is left out.
const LINKS: usize = 0;
const PLACES: usize = 1;
const KINDS: usize = 2;

struct Taking<'a> {
    archive: &'a Path,
    root: &'a Path,
    left_out: [u64; 3],
    /// Links: where they stand, and their targets.
    links: Vec<(PathBuf, PathBuf)>,
}

impl Taking<'_> {
    fn entries(&mut self, format: Format, file: File, most: u64, more: &dyn Fn(&Path) -> bool) -> Result<(), Error> {
        let damaged = |source: io::Error| match source.get_ref().and_then(|inner| inner.downcast_ref::<Beyond>()) {
            Some(Beyond(most)) => self.too_much(format!("it unpacks to more than {most} bytes")),
            None => Error::Damaged { path: self.archive.to_owned(), source },
        };
        let reader = Metered { inner: format.reader(file).map_err(damaged)?, left: most, most };
        let mut tar = tar::Archive::new(reader);
        let (mut count, mut long_name, mut long_link) = (0, None, None);
        for entry in tar.entries().map_err(damaged)?.raw(true) {
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
        Ok(())
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
            None => Error::Damaged { path: self.archive.to_owned(), source },
        }
    }

    fn too_much(&self, reason: String) -> Error {
        Error::TooMuch { path: self.archive.to_owned(), reason }
    }

    fn problems(&self) -> Vec<Problem> {
        let said = [
            (LINKS, "links that lead out of it"),
            (PLACES, "files whose names lead out of it, or come twice"),
            (KINDS, "devices and other entries that are no files"),
        ];
        let file = self.archive.display().to_string();
        let problem = |(kind, what): (usize, &str)| {
            let count = self.left_out[kind];
            let text = format!("{file}: left out {count} entries: {what}");
            (count > 0).then(|| Problem::at(file.clone(), None, "plain files", what, 0, text))
        };
        said.into_iter().filter_map(problem).collect()
    }
}

/// A path of plain names below the directory.
fn plain(path: &Path) -> Option<PathBuf> {
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
fn inside(path: &Path, target: &Path) -> bool {
    let up = target.components().take_while(|component| *component == Component::ParentDir).count();
    let mut down = target.components().skip(up);
    up < path.components().count() && down.all(|component| matches!(component, Component::Normal(_)))
}

/// Makes a directory and those above it, for its owner alone.
fn make_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// `path` and `linkpath` of a pax header.
fn of_pax(bytes: &[u8]) -> (Option<PathBuf>, Option<PathBuf>) {
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

/// Said by [`Metered`] at its end.
#[derive(Debug, thiserror::Error)]
#[error("more than {0} bytes")]
struct Beyond(u64);

/// A reader that gives so many bytes and no more.
struct Metered {
    inner: Box<dyn Read>,
    left: u64,
    most: u64,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(Beyond(self.most)))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use tar::{Builder, EntryType, Header};

    /// An entry with a name as it is, which the tar crate would refuse.
    fn raw(kind: EntryType, name: &str, link: &str, bytes: &[u8]) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o777);
        let fields = header.as_gnu_mut().unwrap();
        fields.name[..name.len()].copy_from_slice(name.as_bytes());
        fields.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        let mut entry = [header.as_bytes(), bytes].concat();
        entry.resize(entry.len().next_multiple_of(512), 0);
        entry
    }

    fn archive_of(directory: &Path, entries: &[Vec<u8>]) -> PathBuf {
        let path = directory.join("report.tar.gz");
        let mut packed = flate2::write::GzEncoder::new(File::create(&path).unwrap(), flate2::Compression::fast());
        packed.write_all(&[entries.concat(), vec![0; 1_024]].concat()).unwrap();
        packed.finish().unwrap();
        path
    }

    fn files(root: &Path) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for entry in fs::read_dir(root).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                found.extend(files(&entry.path()).iter().map(|inner| format!("{name}/{inner}")));
            } else {
                found.push(name);
            }
        }
        found.sort();
        found
    }

    #[test]
    fn nothing_is_written_outside_and_what_is_left_out_is_said() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| raw(EntryType::Regular, name, "", b"text");
        let link = |name: &str, to: &str| raw(EntryType::Symlink, name, to, b"");
        let entries = [
            file("../outside"),
            file("/absolute"),
            file("a/../../outside"),
            link("up", "../.."),
            file("up/through"),
            link("a/way", ".."),
            link("down", "a/../../x"),
            link("etc", "/etc"),
            link("a/near", "../b/c"),
            raw(EntryType::Link, "hard", "/etc/passwd", b""),
            raw(EntryType::Fifo, "fifo", "", b""),
            file("b/c"),
            file("b/c"),
            file("b/c/d"),
        ];
        let path = archive_of(place.path(), &entries);
        let unpacked = unpack(&path, Links::Inside, private().unwrap()).unwrap();
        assert_eq!(files(&unpacked.root()), ["a/near", "a/way", "b/c", "up/through"]);
        assert_eq!(fs::read(unpacked.root().join("a/near")).unwrap(), b"text");
        let said: Vec<&str> = unpacked.problems.iter().map(|problem| problem.found.as_str()).collect();
        assert_eq!(said.len(), 3, "{said:?}");
        let counts: Vec<bool> = [3, 5, 2]
            .iter()
            .zip(&unpacked.problems)
            .map(|(count, said)| said.text.contains(&format!("out {count} ")))
            .collect();
        assert_eq!(counts, [true; 3], "{:?}", unpacked.problems);
        assert_eq!(files(place.path()), ["report.tar.gz"]);
        let kept = unpacked.place().to_owned();
        drop(unpacked);
        assert!(!kept.exists());
        let recording = unpack(&path, Links::Never, private().unwrap()).unwrap();
        assert!(files(&recording.root()).iter().all(|name| !name.starts_with("a/")), "a recording has no links");
    }

    #[test]
    fn an_archive_that_unpacks_to_too_much_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = archive_of(place.path(), &[raw(EntryType::Regular, "zeros", "", &[0; 100_000])]);
        assert!(take(&path, Links::Never, private().unwrap(), |_| 200_000, &|_| true).is_ok());
        let error = take(&path, Links::Never, private().unwrap(), |_| 50_000, &|_| true).unwrap_err();
        assert!(error.to_string().contains("it unpacks to more than 50000 bytes"), "{error}");
        let long = raw(EntryType::GNULongName, "././@LongLink", "", &vec![b'x'; EXTENSION_BYTES as usize + 1]);
        let error = unpack(&archive_of(place.path(), &[long]), Links::Never, private().unwrap()).unwrap_err();
        assert!(matches!(error, Error::TooMuch { .. }), "{error}");
    }

    #[test]
    fn long_names_are_read_in_both_notations() {
        let place = tempfile::tempdir().unwrap();
        let long = "d/".repeat(40) + &"n".repeat(120);
        let mut tar = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_size(4);
        tar.append_data(&mut header, &long, &b"text"[..]).unwrap();
        let record = |length: usize| format!("{length} path=pax/{}\n", "p".repeat(200));
        let pax = record(record(0).len() + 2);
        let entries = [
            tar.into_inner().unwrap()[..512 * 4].to_vec(),
            raw(EntryType::XHeader, "x", "", pax.as_bytes()),
            raw(EntryType::Regular, "short", "", b"text"),
        ];
        let unpacked = unpack(&archive_of(place.path(), &entries), Links::Never, private().unwrap()).unwrap();
        assert_eq!(files(&unpacked.root()), [long, format!("pax/{}", "p".repeat(200))]);
    }

    #[test]
    fn what_is_no_archive_is_said() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.gz");
        for bytes in [&b""[..], b"text", b"\x1f\x8b", b"\x28\xb5\x2f\xfd\0", b"\xfd7zXZ\0\0"] {
            fs::write(&path, bytes).unwrap();
            let unpacked = unpack(&path, Links::Never, private().unwrap());
            assert!(matches!(unpacked, Err(Error::Damaged { .. })), "{bytes:?}: {unpacked:?}");
        }
    }
}
