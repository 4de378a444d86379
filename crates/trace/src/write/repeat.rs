//! How is a trace of many gigabytes written without having one?
//!
//! A page's events count their time from the page's own stamp. So a block of pages can follow itself any number of
//! times, if only the stamps in the page heads move on: valid input of any size, made as fast as the disk takes it, and
//! nothing but the block in memory. Pages with absolute stamps before their events cannot be repeated this way.

use crate::format::Endian;
use std::io::{self, Read};

/// A block of pages, repeated.
pub struct Repeat {
    block: Vec<u8>,
    page_bytes: usize,
    endian: Endian,
    shift_ticks: u64,
    pages_left: u64,
    next_page: usize,
    /// Bytes of the page before `next_page` that are not read yet.
    unread: usize,
    rounds: u64,
}

impl Repeat {
    /// `pages` pages: those of `block` again and again, each round `shift_ticks` later than the one before.
    ///
    /// What of `block` does not fill a page is left out.
    pub fn new(mut block: Vec<u8>, page_bytes: u32, endian: Endian, shift_ticks: u64, pages: u64) -> Self {
        let page_bytes = page_bytes.max(8) as usize;
        block.truncate(block.len() / page_bytes * page_bytes);
        let pages_left = if block.is_empty() { 0 } else { pages };
        Self { block, page_bytes, endian, shift_ticks, pages_left, next_page: 0, unread: 0, rounds: 0 }
    }

    /// Moves on to the next page and its stamp; false at the end.
    fn turn(&mut self) -> bool {
        if self.pages_left == 0 {
            return false;
        }
        if self.next_page * self.page_bytes == self.block.len() {
            (self.next_page, self.rounds) = (0, self.rounds + 1);
        }
        if self.rounds > 0 {
            let at = self.next_page * self.page_bytes;
            let stamp = &mut self.block[at..at + 8];
            let later = self.endian.unsigned(stamp).wrapping_add(self.shift_ticks);
            stamp.copy_from_slice(&match self.endian {
                Endian::Little => later.to_le_bytes(),
                Endian::Big => later.to_be_bytes(),
            });
        }
        self.next_page += 1;
        self.pages_left -= 1;
        self.unread = self.page_bytes;
        true
    }
}

impl Read for Repeat {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unread == 0 && !self.turn() {
            return Ok(0);
        }
        let end = self.next_page * self.page_bytes;
        let length = self.unread.min(buffer.len());
        let from = end - self.unread;
        buffer[..length].copy_from_slice(&self.block[from..from + length]);
        self.unread -= length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_move_on_and_the_rest_stays() {
        let page = |stamp: u64, fill: u8| [stamp.to_be_bytes().to_vec(), vec![fill; 8]].concat();
        let block = [page(10, 1), page(20, 2)].concat();
        let mut out = Vec::new();
        Repeat::new(block, 16, Endian::Big, 100, 5).read_to_end(&mut out).unwrap();
        let expected = [page(10, 1), page(20, 2), page(110, 1), page(120, 2), page(210, 1)].concat();
        assert_eq!(out, expected);
    }

    #[test]
    fn nothing_repeated_is_nothing() {
        assert_eq!(Repeat::new(vec![0; 7], 16, Endian::Little, 1, 9).read(&mut [0; 4]).unwrap(), 0);
    }
}
