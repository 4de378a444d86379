//! The bytes in which the fields of a batch's events were left.
//!
//! ```text
//! own      a piece that was unpacked for this batch
//! mapped   a file [ .. | packet from here on .. ]     stays mapped as long as a batch needs it
//! ```

use crate::Error;
use memmap2::{Advice, Mmap, UncheckedAdvice};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes in which fields were left; rows give places in them.
#[derive(Debug, Clone)]
pub enum Records {
    /// Unpacked for this batch.
    Own(Vec<u8>),
    /// A mapped file from some byte on.
    Mapped(Arc<MappedFile>, usize),
}

impl Default for Records {
    fn default() -> Self {
        Records::Own(Vec::new())
    }
}

impl Records {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Records::Own(bytes) => bytes,
            Records::Mapped(file, from) => file.bytes().get(*from..).unwrap_or_default(),
        }
    }

    /// Forgets the bytes; memory of its own is kept.
    pub fn clear(&mut self) {
        match self {
            Records::Own(bytes) => bytes.clear(),
            Records::Mapped(..) => *self = Records::default(),
        }
    }

    /// Memory of its own, emptied, to be filled and given back.
    pub fn take_own(&mut self) -> Vec<u8> {
        self.clear();
        match std::mem::take(self) {
            Records::Own(bytes) => bytes,
            Records::Mapped(..) => Vec::new(),
        }
    }
}

/// Content of a file.
#[derive(Debug)]
pub enum MappedFile {
    /// The file has no bytes.
    Empty,
    /// It is mapped.
    Map(Mmap),
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
        let file = File::open(path).map_err(refused)?;
        if file.metadata().map_err(refused)?.len() == 0 {
            return Ok(MappedFile::Empty);
        }
        // SAFETY: the map is only read. A program that shortens the file meanwhile ends us with SIGBUS, as it would any
        // reader of a mapped file; recordings are not rewritten in place.
        let map = unsafe { Mmap::map(&file) }.map_err(refused)?;
        Ok(MappedFile::Map(map))
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            MappedFile::Empty => &[],
            MappedFile::Map(map) => map,
        }
    }

    /// Maps the pages of `range` at once instead of one fault at a time. It is only a hint: kernels before 5.14 do not
    /// know it, and a range that is too large for it is read as it comes.
    pub fn will_be_read(&self, range: Range<u64>) {
        let (from, length) = (range.start as usize, (range.end - range.start) as usize);
        if let MappedFile::Map(map) = self
            && length <= MOST_READ_AHEAD
        {
            let _ = map.advise_range(Advice::PopulateRead, from, length);
        }
    }

    /// Unmaps the pages of `range`, which will hardly be read again: here, beside the consumer, instead of all at the end.
    pub fn was_read(&self, range: Range<u64>) {
        if let MappedFile::Map(map) = self {
            let (from, length) = (range.start as usize, (range.end - range.start) as usize);
            // SAFETY: the mapping is shared, of a file, and never written, so pages that are given back come again with
            // the same bytes when they are touched.
            let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, from, length) };
        }
    }
}
