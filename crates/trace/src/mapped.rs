//! A file in memory: the only place where files are mapped, and where it stands what that asks for.

use crate::Error;
use memmap2::{Advice, Mmap, UncheckedAdvice};
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;

/// Content of a file, as a slice of bytes; a file without bytes is not mapped.
#[derive(Debug)]
pub struct MappedFile(Option<Mmap>);

/// Most bytes that are mapped at once.
const MOST_READ_AHEAD: usize = 16 << 20;

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// If it cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let refused = |source| Error::Io { file: path.to_owned(), source };
        let file = File::open(path).map_err(refused)?;
        if file.metadata().map_err(refused)?.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the map is only read. A program that shortens the file meanwhile ends us with SIGBUS, as it would any
        // reader of a mapped file; tracers write their files once, and recordings are not rewritten in place.
        let map = unsafe { Mmap::map(&file) }.map_err(refused)?;
        Ok(Self(Some(map)))
    }

    /// Maps the pages of `range` at once instead of one fault at a time. It is only a hint: kernels before 5.14 do not
    /// know it, and a range that is too large for it is read as it comes.
    pub(crate) fn will_be_read(&self, range: Range<u64>) {
        let (from, length) = (range.start as usize, (range.end - range.start) as usize);
        if let Some(map) = &self.0
            && length <= MOST_READ_AHEAD
        {
            let _ = map.advise_range(Advice::PopulateRead, from, length);
        }
    }

    /// Unmaps the pages of `range`, which will hardly be read again: here, beside the consumer, instead of all at the end.
    pub(crate) fn was_read(&self, range: Range<u64>) {
        if let Some(map) = &self.0 {
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
        self.0.as_deref().unwrap_or_default()
    }
}
