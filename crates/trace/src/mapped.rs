//! A file in memory: the only place where files are mapped, and where it stands what that asks for.

use crate::Error;
use crate::torn::Guard;
use memmap2::{Advice, Mmap, UncheckedAdvice};
use std::ops::{Deref, Range};
use std::path::Path;

/// Content of a file, as a slice of bytes; a file without bytes is not mapped.
#[derive(Debug)]
pub struct MappedFile(Option<Guarded>);

/// The guard is dropped before the map that it guards.
#[derive(Debug)]
struct Guarded {
    guard: Guard,
    map: Mmap,
}

/// Most bytes that are mapped at once.
const MOST_READ_AHEAD: usize = 16 << 20;

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// If it cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let refused = |source| Error::Io { file: path.to_owned(), source };
        let file = base::files::open(path).map_err(refused)?;
        if file.metadata().map_err(refused)?.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the map is only read. A program may write to the file meanwhile, as it could before it was read; pages that it takes
        // away become zeros (see `torn`).
        let map = unsafe { Mmap::map(&file) }.map_err(refused)?;
        let guard = Guard::of(map.as_ptr_range()).map_err(refused)?;
        Ok(Self(Some(Guarded { guard, map })))
    }

    /// True once bytes were read that the file no longer has: it has become shorter, and they are zeros.
    pub(crate) fn is_torn(&self) -> bool {
        self.0.as_ref().is_some_and(|file| file.guard.is_torn())
    }

    /// Maps the pages of `range` at once instead of one fault at a time. It is only a hint: kernels before 5.14 do not
    /// know it, and a range that is too large for it is read as it comes.
    pub(crate) fn will_be_read(&self, range: Range<u64>) {
        let (from, length) = (range.start as usize, (range.end - range.start) as usize);
        if let Some(Guarded { map, .. }) = &self.0
            && length <= MOST_READ_AHEAD
        {
            let _ = map.advise_range(Advice::PopulateRead, from, length);
        }
    }

    /// Unmaps the pages of `range`, which will hardly be read again: here, beside the consumer, instead of all at the end.
    pub(crate) fn was_read(&self, range: Range<u64>) {
        if let Some(Guarded { map, .. }) = &self.0 {
            let (from, length) = (range.start as usize, (range.end - range.start) as usize);
            // SAFETY: the mapping is shared, of a file, and never written, so pages that are given back come again with
            // the same bytes when they are touched.
            let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, from, length) };
        }
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |file| &file.map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_becomes_shorter_reads_as_zeros_and_is_known_to_be_torn() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for name in ["shorter", "whole"] {
            fs::write(path(name), vec![7; 3 << 16]).unwrap();
        }
        let [shorter, whole] = ["shorter", "whole"].map(|name| MappedFile::open(&path(name)).unwrap());
        let file = fs::OpenOptions::new().write(true).open(path("shorter")).unwrap();
        file.set_len(1 << 16).unwrap();
        assert_eq!((shorter[0], shorter.is_torn()), (7, false), "what is still there is read as it is");
        assert_eq!((shorter[(3 << 16) - 1], shorter.is_torn()), (0, true));
        assert_eq!((shorter[2 << 16], shorter[(1 << 16) - 1]), (0, 7));
        assert_eq!((whole[(3 << 16) - 1], whole.is_torn()), (7, false));
        drop(shorter);
        assert!(!MappedFile::open(&path("shorter")).unwrap().is_torn(), "another map of it has what the file has");
    }
}
