//! Which pages of a guest's memory are there, and what is in them? Asked without making any.
//!
//! ```text
//! anonymous      pagemap: there, swapped, or a hole            read by /proc/PID/mem
//! shared file    SEEK_DATA, SEEK_HOLE of the file              read by pread of the file: a hole stays one
//! private file   pagemap, and where that has none the file     read by either
//! ```
//! Sources: Documentation/admin-guide/mm/pagemap.rst; lseek(2); `shmem_file_read_iter` in mm/shmem.c (Linux 6.12), which reads holes as zeros.

use super::mappings::Mapping;
use super::target::Target;
use crate::Error;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

pub(super) const PAGE_BYTES: u64 = 4096;
/// Of a word of pagemap: the page is there.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing was ever written to it: it is zeros, and nowhere.
    Hole,
    Mapped,
    InFile,
    /// Reading it would bring it back, so nobody does.
    Swapped,
}

/// Memory of a guest, one mapping of it.
pub(super) struct Region {
    mapping: Mapping,
    file: Option<File>,
}

/// What is open of the process.
pub(super) struct Memory {
    pagemap: File,
    mem: File,
    pub regions: Vec<Region>,
}

impl Memory {
    /// Opens what is needed to look at `mappings`.
    pub(super) fn open(target: &Target, mappings: Vec<Mapping>) -> Result<Self, Error> {
        let open = |name: &str| {
            let path = target.directory.join(name);
            File::open(&path).map_err(|error| match error.kind() {
                std::io::ErrorKind::PermissionDenied => Error::Denied(format!(
                    "{}: only root, or the user of process {}, may look at its memory",
                    path.display(),
                    target.pid
                )),
                _ => Error::io(&path, error),
            })
        };
        let (pagemap, mem) = (open("pagemap")?, open("mem")?);
        let regions = mappings.into_iter().map(|mapping| {
            let file = if mapping.inode == 0 { None } else { Some(file_of(&target.directory, &mapping)?) };
            Ok(Region { mapping, file })
        });
        Ok(Self { pagemap, mem, regions: regions.collect::<Result<_, Error>>()? })
    }

    /// The states of so many pages of `region` from page `first` on.
    pub(super) fn states(&self, region: &Region, first: u64, pages: u64) -> Result<Vec<State>, Error> {
        let mut states = match &region.file {
            Some(file) => in_file(file, region.mapping.offset + first * PAGE_BYTES, pages)
                .map_err(|error| Error::io(Path::new(&region.mapping.path), error.into()))?,
            None => vec![State::Hole; pages as usize],
        };
        // Of shared memory the file knows all; pagemap knows what this process has looked at.
        if region.file.is_some() && region.mapping.is_shared {
            return Ok(states);
        }
        let mut words = vec![0; pages as usize * 8];
        let at = (region.mapping.begin / PAGE_BYTES + first) * 8;
        self.pagemap
            .read_exact_at(&mut words, at)
            .map_err(|error| Error::refused("the pages of the process cannot be read (pagemap)", error))?;
        for (state, word) in states.iter_mut().zip(words.chunks_exact(8)) {
            *state = with_word(*state, u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        Ok(states)
    }

    /// Reads a page that is there; `false` if it no longer is.
    pub(super) fn read(&self, region: &Region, page: u64, state: State, into: &mut [u8]) -> bool {
        let at = page * PAGE_BYTES;
        match (state, &region.file) {
            (State::InFile, Some(file)) => file.read_exact_at(into, region.mapping.offset + at).is_ok(),
            (State::Mapped, _) => self.mem.read_exact_at(into, region.mapping.begin + at).is_ok(),
            _ => false,
        }
    }
}

impl Region {
    pub(super) fn pages(&self) -> u64 {
        self.mapping.bytes() / PAGE_BYTES
    }

    /// `anonymous`, `shared`, or `private file`.
    pub(super) fn kind(&self) -> &'static str {
        match (&self.file, self.mapping.is_shared) {
            (None, _) => base::bench::ANONYMOUS,
            (Some(_), true) => base::bench::SHARED,
            (Some(_), false) => "private file",
        }
    }

    /// What its file takes, and that file; none where there is none.
    pub(super) fn allocated(&self) -> Option<(u64, u64)> {
        let about = self.file.as_ref()?.metadata().ok()?;
        // Blocks of stat(2) are 512 bytes, whatever the file system's are.
        Some((about.ino(), about.blocks() * 512))
    }
}

/// What a word of pagemap adds to what the file says.
fn with_word(state: State, word: u64) -> State {
    match word {
        word if word & PRESENT != 0 => State::Mapped,
        word if word & SWAPPED != 0 => State::Swapped,
        _ => state,
    }
}

/// Data and holes of a file.
fn in_file(file: &File, from: u64, pages: u64) -> Result<Vec<State>, Errno> {
    let mut states = vec![State::Hole; pages as usize];
    let end = from + pages * PAGE_BYTES;
    let mut at = from;
    while at < end {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) if data < end => data.max(at),
            // ENXIO: nothing but holes from there on.
            Ok(_) | Err(Errno::NXIO) => break,
            Err(error) => return Err(error),
        };
        let hole = seek(file, SeekFrom::Hole(data))?.clamp(data + 1, end);
        let first = (data - from) / PAGE_BYTES;
        let last = (hole - from).div_ceil(PAGE_BYTES).min(pages);
        states.iter_mut().take(last as usize).skip(first as usize).for_each(|state| *state = State::InFile);
        at = hole;
    }
    Ok(states)
}

/// The file behind a mapping: by the mapping, as root, or by a descriptor that the process has of it.
fn file_of(directory: &Path, mapping: &Mapping) -> Result<File, Error> {
    let is_it = |file: &File| file.metadata().is_ok_and(|about| about.is_file() && about.ino() == mapping.inode);
    let by_mapping = directory.join("map_files").join(format!("{:x}-{:x}", mapping.begin, mapping.end));
    if let Ok(file) = File::open(by_mapping)
        && is_it(&file)
    {
        return Ok(file);
    }
    let descriptors = std::fs::read_dir(directory.join("fd")).into_iter().flatten().flatten();
    // Looked at before it is opened: opening a device may do something.
    let same = |path: &Path| std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.ino() == mapping.inode);
    let mut paths = descriptors.map(|entry| entry.path()).filter(|path| same(path));
    let found = paths.find_map(|path| File::open(path).ok().filter(is_it));
    found.ok_or_else(|| {
        Error::Denied(format!(
            "{}: the guest's memory is in this file, which only root may open through its process",
            mapping.path
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn words_of_pagemap_tell_pages_that_are_there_and_swapped_ones() {
        assert_eq!(with_word(State::Hole, 0), State::Hole);
        assert_eq!(with_word(State::InFile, 0), State::InFile);
        assert_eq!(with_word(State::Hole, 0xa100_0000_0498_83da), State::Mapped);
        assert_eq!(with_word(State::InFile, SWAPPED), State::Swapped);
    }

    #[test]
    fn holes_of_a_file_are_told_without_filling_them() {
        // Memory, whose holes are as small as pages.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let path = directory.path().join("memory");
        let mut file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        file.set_len(64 * PAGE_BYTES).unwrap();
        file.write_all_at(&[7; 4096], 3 * PAGE_BYTES).unwrap();
        file.write_all_at(&[7; 8192], 40 * PAGE_BYTES).unwrap();
        file.flush().unwrap();
        let before = file.metadata().unwrap().blocks();
        let states = in_file(&file, 0, 64).unwrap();
        let data: Vec<usize> = (0..64).filter(|page| states[*page] == State::InFile).collect();
        assert_eq!(data, [3, 40, 41]);
        let states = in_file(&file, 4 * PAGE_BYTES, 37).unwrap();
        assert_eq!(states.iter().filter(|state| **state == State::InFile).count(), 1);
        assert_eq!(states[36], State::InFile);
        assert_eq!(file.metadata().unwrap().blocks(), before);
    }
}
