//! Reading numbers and strings out of bytes that may end anywhere.

use crate::format::Endian;

/// A place in some bytes of the file. Every read says `None` at the end instead of going past it.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    endian: Endian,
}

impl<'a> Cursor<'a> {
    /// A cursor at `at`.
    pub(super) fn new(bytes: &'a [u8], at: usize, endian: Endian) -> Self {
        Self { bytes, at, endian }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let end = usize::try_from(length).ok()?.checked_add(self.at)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// The next two bytes as a number.
    pub(super) fn u16(&mut self) -> Option<u16> {
        self.number(2).map(|value| value as u16)
    }

    /// The next four bytes as a number.
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.number(4).map(|value| value as u32)
    }

    /// The next eight bytes as a number.
    pub(super) fn u64(&mut self) -> Option<u64> {
        self.number(8)
    }

    /// Text up to a NUL, which is passed.
    pub(super) fn text(&mut self) -> Option<String> {
        let rest = self.bytes.get(self.at..)?;
        let length = memchr::memchr(0, rest)?;
        self.at += length + 1;
        Some(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    fn number(&mut self, length: u64) -> Option<u64> {
        let endian = self.endian;
        self.take(length).map(|bytes| endian.unsigned(bytes))
    }
}
