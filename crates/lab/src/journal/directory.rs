//! The journal's directory: what lies in it is obeyed by root, so nobody else may have put it there.
//!
//! ```text
//! open    no link, of root or of this user, writable by nobody else     else: an error, and nothing in it is read
//! read    no link, a regular file (a FIFO would block), of the same owners, of a bounded length
//! write   NAME.RANDOM.new, which must not be there yet --> fsync --> rename to NAME --> fsync of the directory
//! ```
//! All files are named relative to the open directory: one that is put in its place meanwhile is not met.

use crate::Error;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, fstat, openat, renameat, unlinkat};
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// An entry is some kilobytes: a step is a hundred bytes, and a placement has some thousand of them at most.
const MOST_BYTES: u64 = 16 << 20;

/// How the name of a file ends that is being written.
const UNFINISHED: &str = ".new";

/// Permissions to write that nobody but the owner may have.
const OTHERS_WRITE: u32 = 0o022;

/// How long a program that waits for the lock sleeps between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// A directory that may be trusted.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    open: OwnedFd,
}

/// Held while a host is read, changed and read back, so that two programs never do so in turn.
#[derive(Debug)]
pub struct Lock {
    _directory: Directory,
}

impl Directory {
    /// Opens the directory; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be opened, is a link, or belongs or is open to somebody else.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(open) => open,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {
                return Err(Error::Denied(format!("{}: the journal must be a directory, not a link", path.display())));
            }
            Err(error) => return Err(Error::io(path, error.into())),
        };
        let about = fstat(&open).map_err(|error| Error::io(path, error.into()))?;
        trusted(about.st_uid, about.st_mode).map_err(|why| {
            let path = path.display();
            Error::Denied(format!(
                "the journal {path} {why}: its entries are not trusted, and nothing in it is undone; check what it holds, \
                 then: chown root: {path} && chmod 700 {path}"
            ))
        })?;
        Ok(Some(Self { path: path.to_owned(), open }))
    }

    /// Opens the directory, and makes it first if it is not there: for its owner alone.
    ///
    /// # Errors
    /// As [`Directory::open`], and if it cannot be made.
    pub(super) fn make(path: &Path) -> Result<Self, Error> {
        use std::os::unix::fs::DirBuilderExt;
        let made = || {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            match std::fs::DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                made => made,
            }
        };
        made().map_err(|error| {
            Error::Denied(format!(
                "{}: {error}; the journal that undoes changes must be writable: run as root, or name another directory with \
                 --journal DIR",
                path.display()
            ))
        })?;
        Self::open(path)?.ok_or_else(|| Error::io(path, ErrorKind::NotFound.into()))
    }

    /// Waits until no other program holds the lock; `None` if `stop` was set meanwhile.
    pub(super) fn lock(self, stop: &AtomicBool) -> Result<Option<Lock>, Error> {
        while !stop.load(Ordering::Relaxed) {
            match rustix::fs::flock(&self.open, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Lock { _directory: self })),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => std::thread::sleep(PAUSE),
                Err(error) => return Err(Error::io(&self.path, error.into())),
            }
        }
        Ok(None)
    }

    /// Names of entries, the oldest first, by when they were last written: pids begin again, and so do start times after a
    /// boot.
    pub(super) fn entries(&self) -> Result<Vec<String>, Error> {
        let mut names: Vec<(SystemTime, String)> = Vec::new();
        for name in self.names()?.into_iter().filter(|name| name.ends_with(".json")) {
            let written = std::fs::symlink_metadata(self.path.join(&name)).and_then(|about| about.modified());
            names.push((written.unwrap_or(SystemTime::UNIX_EPOCH), name));
        }
        names.sort();
        Ok(names.into_iter().map(|(_, name)| name).collect())
    }

    /// Names of files that were being written when their program was killed, with its pid where the name has it.
    pub(super) fn unfinished(&self) -> Result<Vec<(String, Option<u32>)>, Error> {
        let names = self.names()?.into_iter().filter(|name| name.ends_with(UNFINISHED));
        // COMMAND-PID-NUMBER.RANDOM.new
        let pid = |name: &str| name.split('.').next()?.rsplit('-').nth(1)?.parse().ok();
        let with_pid = |name: String| {
            let pid = pid(&name);
            (name, pid)
        };
        Ok(names.map(with_pid).collect())
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        let io = |error: rustix::io::Errno| Error::io(&self.path, error.into());
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.open).map_err(io)? {
            names.extend(entry.map_err(io)?.file_name().to_str().ok().map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// The bytes of an entry's file.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.path.join(name);
        let io = |error: rustix::io::Errno| Error::io(&path, error.into());
        let refuse =
            |why: &str| Error::Denied(format!("{} {why}: it is no journal entry, and is left alone", path.display()));
        // A FIFO without a writer would block an open that may block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = match openat(&self.open, name, flags, Mode::empty()) {
            Err(rustix::io::Errno::LOOP) => return Err(refuse("is a link")),
            open => open.map_err(io)?,
        };
        let about = fstat(&open).map_err(io)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(refuse("is not a regular file"));
        }
        trusted(about.st_uid, about.st_mode).map_err(|why| refuse(&why))?;
        let mut bytes = Vec::new();
        File::from(open).take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| Error::io(&path, error))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(refuse(&format!("has more than {MOST_BYTES} bytes")));
        }
        Ok(bytes)
    }

    /// True if there is such a file.
    pub(super) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.open, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Writes beside, makes durable, renames, makes the name durable: whole or not at all.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let io = |error: std::io::Error| Error::io(self.path.join(name), error);
        // The standard library keys its hashers with random numbers of the kernel: nobody can guess the name.
        let random = std::hash::RandomState::new().hash_one(name);
        let beside = format!("{}.{random:016x}{UNFINISHED}", name.trim_end_matches(".json"));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file =
            openat(&self.open, beside.as_str(), flags, Mode::RUSR | Mode::WUSR).map_err(|error| io(error.into()))?;
        let mut file = File::from(file);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let placed = written.and_then(|()| {
            renameat(&self.open, beside.as_str(), &self.open, name)?;
            Ok(rustix::fs::fsync(&self.open)?)
        });
        placed.map_err(|error| {
            // On a full disk what is there of it takes the place that the next try needs.
            let _ = unlinkat(&self.open, beside.as_str(), AtFlags::empty());
            io(error)
        })
    }

    /// Removes a file, for good.
    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        let io = |error: rustix::io::Errno| Error::io(self.path.join(name), error.into());
        unlinkat(&self.open, name, AtFlags::empty()).map_err(io)?;
        rustix::fs::fsync(&self.open).map_err(io)
    }
}

/// What of a file's owner and permissions lets somebody else have written it.
fn trusted(owner: u32, mode: u32) -> Result<(), String> {
    let ours = rustix::process::geteuid().as_raw();
    match () {
        () if owner != 0 && owner != ours => Err(format!("belongs to user {owner}")),
        () if mode & OTHERS_WRITE != 0 => Err(format!("is writable by others (mode {:o})", mode & 0o7777)),
        () => Ok(()),
    }
}
