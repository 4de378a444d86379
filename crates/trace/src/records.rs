//! The bytes in which the fields of a batch's events were left.
//!
//! ```text
//! own      a piece that was unpacked for this batch
//! mapped   a file [ .. | packet from here on .. ]     stays mapped as long as a batch needs it
//! ```

use crate::mapped::MappedFile;
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
            Records::Mapped(file, from) => file.get(*from..).unwrap_or_default(),
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
    pub(crate) fn take_own(&mut self) -> Vec<u8> {
        self.clear();
        match std::mem::take(self) {
            Records::Own(bytes) => bytes,
            Records::Mapped(..) => Vec::new(),
        }
    }
}
