//! Where are the pieces of one CPU's data?
//!
//! A piece is a compressed chunk (version 7) or a run of pages. They are found once, when the file is opened, without
//! unpacking any.

use super::cursor::Cursor;
use super::layout::{Buffer, CpuData, Layout, MOST_UNPACKED};
use base::Problem;

/// Pages in a piece of an uncompressed file: 40 KB of 4 KB pages, as much as trace-cmd packs in a chunk.
const PAGES_A_PIECE: usize = 10;

/// What stands before the chunks of a CPU: their number.
const CHUNK_COUNT_BYTES: u64 = 4;

/// Most bytes that a chunk of pages of `page_size` bytes may unpack to: trace-cmd packs ten pages in one
/// (`PAGES_A_PIECE`); some more for other writers.
fn most_in_chunk(page_size: usize) -> u32 {
    u32::try_from(page_size.saturating_mul(64)).unwrap_or(MOST_UNPACKED).clamp(4 << 20, MOST_UNPACKED)
}

/// Where a piece lies in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub file: usize,
    /// First byte.
    pub offset: usize,
    pub stored: usize,
    /// Bytes once unpacked.
    pub size: usize,
}

/// The pieces of one CPU.
pub(super) struct Index {
    /// The CPU.
    pub cpu: u32,
    pub(crate) page_size: usize,
    /// The pieces, in order.
    pub places: Vec<Place>,
    /// Damage that was met, behind which nothing of this CPU was found; the first piece tells it.
    pub problem: Option<Problem>,
}

pub(super) struct Search<'t> {
    pub file: usize,
    pub bytes: &'t [u8],
    pub name: &'t str,
    /// What it says of itself.
    pub layout: &'t Layout,
}

impl Search<'_> {
    /// Finds the pieces of `cpu`, none of which reaches beyond `limit`: there the next CPU's begin.
    pub(super) fn pieces(&self, buffer: &Buffer, cpu: CpuData, limit: usize) -> Index {
        let start = usize::try_from(cpu.offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let claimed = usize::try_from(cpu.size).unwrap_or(usize::MAX).saturating_add(start);
        let end = claimed.min(self.bytes.len());
        let own = (64..=1 << 24).contains(&buffer.page_size);
        let page_size = if own { buffer.page_size } else { self.layout.page_size };
        let mut index = Index { cpu: cpu.cpu, page_size, places: Vec::new(), problem: None };
        // The size of packed data is not to be trusted: trace-cmd 3.1.6 leaves parts of the chunk heads out of it. The
        // list of chunks knows its own end.
        if claimed > end && !buffer.compressed {
            let missing = (claimed - end) as u64;
            self.complain(&mut index, end, "the rest of a CPU's data", "the end of the file", missing);
        }
        match buffer.compressed {
            true if start < end => self.chunks(&mut index, start, cpu.size, limit),
            true if cpu.size > 0 => {
                self.complain(&mut index, start, "a CPU's compressed data", "the end of the file", cpu.size);
            }
            true => {}
            false => self.pages(&mut index, start, end.min(limit)),
        }
        index
    }

    fn chunks(&self, index: &mut Index, start: usize, claimed: u64, limit: usize) {
        let end = self.bytes.len().min(limit);
        let mut cursor = Cursor::new(&self.bytes[..end], start.min(end), self.layout.endian);
        let Some(chunks) = cursor.u32() else {
            return self.complain(index, start, "the number of compressed chunks", "the end of the file", 0);
        };
        // A CPU without events has a size of 0, or of the bare count.
        if chunks == 0 && claimed > CHUNK_COUNT_BYTES {
            return self.complain(index, start, "at least one compressed chunk", "none", claimed - CHUNK_COUNT_BYTES);
        }
        for _ in 0..chunks {
            let at = cursor.at();
            let sizes = cursor.u32().zip(cursor.u32());
            let most = most_in_chunk(index.page_size);
            let Some((stored, size)) = sizes.filter(|(_, size)| (1..=most).contains(size)) else {
                return self.complain(
                    index,
                    at,
                    "the sizes of a compressed chunk",
                    "none that can be",
                    end.saturating_sub(at) as u64,
                );
            };
            let offset = cursor.at();
            if cursor.take(u64::from(stored)).is_none() {
                return self.complain(
                    index,
                    at,
                    "a whole compressed chunk",
                    "the end of the data",
                    end.saturating_sub(at) as u64,
                );
            }
            index.places.push(Place { file: self.file, offset, stored: stored as usize, size: size as usize });
        }
    }

    fn complain(&self, index: &mut Index, offset: usize, expected: &str, found: &str, skipped: u64) {
        let text = format!(
            "{}: CPU {}: expected {expected} at byte {offset:#x}, found {found}; {skipped} bytes are missing",
            self.name, index.cpu
        );
        index.problem = Some(Problem::at(self.name, offset as u64, expected, found, skipped, text));
    }

    fn pages(&self, index: &mut Index, start: usize, end: usize) {
        let step = index.page_size * PAGES_A_PIECE;
        let mut at = start;
        while at < end {
            let size = step.min(end - at);
            index.places.push(Place { file: self.file, offset: at, stored: size, size });
            at += size;
        }
    }
}
