//! An archive becomes a directory of its own, which is removed when it is no longer needed.

use crate::bounds::unpacked_bytes;
use crate::format::{Format, format_of};
use crate::paths::make_directories;
use crate::taking::Taking;
use crate::{EXTENSION, Error};
use base::Problem;
use base::recording::{MANIFEST, Recording, Shown, temporary};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use tempfile::TempDir;

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
    archive: PathBuf,
    directory: TempDir,
    name: PathBuf,
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
        recording.shown.push(self.shown());
        Ok(recording)
    }

    /// What people call the private directory: the archive.
    pub fn shown(&self) -> Shown {
        Shown { place: self.root(), name: self.archive.clone() }
    }

    /// Unpacks an archive that was in this one, and links inside it, beside itself. All that are unpacked together take
    /// `left` bytes at most, which become fewer.
    ///
    /// # Errors
    /// As [`unpack`]; what was written by then stays.
    pub fn add(&mut self, inner: &Path, left: &mut u64) -> Result<(), Error> {
        let beside = inner.parent().unwrap_or(Path::new("."));
        let mut taking = Taking::new(inner, beside);
        let format = format_of(inner).ok_or_else(|| no_archive(inner))?;
        let file = base::files::open(inner).map_err(|source| Error::Io { path: inner.to_owned(), source })?;
        *left -= match format {
            Format::Zip => taking.zipped(file, *left)?,
            format => taking.entries(format, file, *left, &|_| true)?,
        };
        taking.links(Links::Inside);
        self.problems.extend(taking.problems());
        Ok(())
    }

    /// Bytes that archives in this one may unpack to.
    pub fn most_bytes_within(&self) -> u64 {
        unpacked_bytes(std::fs::metadata(&self.archive).map_or(0, |about| about.len()))
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

/// True if an archive is a packed recording: its manifest comes first, whatever the file is called.
pub fn is_recording(path: &Path) -> bool {
    let first = |path: &Path| {
        let mut tar = tar::Archive::new(format_of(path)?.reader(base::files::open(path).ok()?).ok()?);
        let first = tar.entries().ok()?.raw(true).next()?.ok()?;
        Some(first.path_bytes() == MANIFEST.as_bytes())
    };
    first(path) == Some(true)
}

/// A new private directory for what was packed.
///
/// # Errors
/// If the operating system refuses.
pub fn private() -> io::Result<TempDir> {
    temporary("kvmscope-unpacked")
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
    let format = format_of(path).ok_or_else(|| no_archive(path))?;
    let file = base::files::open(path).map_err(io)?;
    let packed = file.metadata().map_err(io)?.len();
    let name = PathBuf::from(name_of(path));
    let root = directory.path().join(&name);
    make_directories(&root).map_err(io)?;
    let mut taking = Taking::new(path, &root);
    let open = || base::files::open(path).map_err(io);
    match format {
        Format::Zip => taking.zipped(file, most(packed))?,
        format if format.is_one_file(open()?) => taking.only(format, file, most(packed))?,
        format => taking.entries(format, file, most(packed), more)?,
    };
    taking.links(links);
    let problems = taking.problems();
    Ok(Unpacked { archive: path.to_owned(), directory, name, problems })
}

fn no_archive(path: &Path) -> Error {
    let source =
        io::Error::new(io::ErrorKind::InvalidData, "neither tar or zip nor compressed by gzip, xz, zstd or bzip2");
    Error::Damaged { path: path.to_owned(), source }
}

/// The archive's name without what says how it is packed; a name that leads elsewhere is none.
fn name_of(path: &Path) -> &OsStr {
    let name = path.file_name().unwrap_or(OsStr::new("archive")).as_bytes();
    let own = format!(".{EXTENSION}");
    let ends = [own.as_str(), ".zst", ".zstd", ".xz", ".gz", ".bz2", ".zip", ".tgz", ".txz", ".tar"];
    let mut name = name;
    for end in ends {
        name = name.strip_suffix(end.as_bytes()).filter(|rest| !rest.is_empty()).unwrap_or(name);
    }
    // `...tar` would leave `..`, the directory above.
    let is_plain =
        matches!(Path::new(OsStr::from_bytes(name)).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
    OsStr::from_bytes(if is_plain { name } else { b"archive" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::EXTENSION_BYTES;
    use std::fs::{self, File};
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
            .map(|(count, said)| said.text.contains(&format!("ignored {count} entries")))
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
    fn a_disk_that_fails_is_no_damage_of_the_archive() {
        struct Failing;
        impl io::Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(5)) // EIO
            }
        }
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.tar.gz");
        let mut taking = Taking::new(&path, place.path());
        let error = taking.whole(Path::new("file"), Failing, 100).unwrap_err().to_string();
        assert!(error.contains("x.tar.gz cannot be unpacked: Input/output error"), "{error}");
    }

    #[test]
    fn an_archive_whose_name_leads_elsewhere_is_unpacked_in_its_own_directory() {
        let place = tempfile::tempdir().unwrap();
        for (name, root) in
            [("...tar.gz", "archive"), ("...kvmscope", "archive"), ("..tar.gz", "archive"), ("a..tar", "a.")]
        {
            let path = place.path().join(name);
            fs::rename(archive_of(place.path(), &[raw(EntryType::Regular, "file", "", b"text")]), &path).unwrap();
            let unpacked = unpack(&path, Links::Never, private().unwrap()).unwrap();
            assert_eq!(unpacked.root(), unpacked.place().join(root), "{name}");
            assert_eq!(files(unpacked.place()), [format!("{root}/file")], "{name}");
        }
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
