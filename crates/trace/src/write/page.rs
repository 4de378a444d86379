//! How does the kernel's ring buffer lay events out in pages?
//!
//! ```text
//! u64 time | long commit | event event event ... | unused | (long: number of missed events)
//!             ^ bytes of events; bit 31: events were missed before this page; bit 30: their number follows the events
//! event = u32 { type_len:5, delta:27 } + payload in words of 4 bytes
//! ```
//! A delta counts from the event before, the first one from the page's time. One that does not fit 27 bits gets a time
//! extend before it. Big-endian machines keep the bit fields from the top. Source: include/linux/ring_buffer.h and
//! kernel/trace/ring_buffer.c, Linux 6.12.

use super::layout::Machine;
use crate::format::Endian;
use std::io::{self, Write};

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// Bits that an extend or stamp carries: 27 in its header and 32 behind it.
const EXTEND_BITS: u32 = 59;
/// Longest payload whose length fits `type_len`.
const LONGEST_INLINE: usize = 28 * 4;
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// Words behind the header of a discarded event; the first states its length.
const DISCARDED_WORDS: usize = 3;

/// Choices that the kernel leaves open, so that readers can be tried on all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageStyle {
    /// An absolute stamp stands before every event, as for events that carry their own time.
    pub absolute: bool,
    /// Unused space of a page is counted in `commit` and filled by a padding event.
    pub padded_tail: bool,
    /// Events that were taken back stay as padding with a length.
    pub discards: Option<Discards>,
}

/// Events that were taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discards {
    /// One follows every so many events.
    pub every: u32,
    /// Its delta. The kernel leaves 1 where the true delta is unknown, and its checker then adds nothing (trace-cmd
    /// 3.1.6 does add it); any other delta counts.
    pub delta: u32,
}

/// Builds the pages of one CPU.
pub struct PageBuilder {
    machine: Machine,
    page_bytes: usize,
    style: PageStyle,
    page: Vec<u8>,
    last_ticks: u64,
    missed: Option<Missed>,
    events: u32,
}

#[derive(Clone, Copy)]
struct Missed {
    number: Option<u64>,
}

impl PageBuilder {
    /// A builder of pages of `page_bytes` bytes.
    pub fn new(machine: Machine, page_bytes: u32, style: PageStyle) -> Self {
        Self {
            machine,
            page_bytes: page_bytes as usize,
            style,
            page: Vec::with_capacity(page_bytes as usize),
            last_ticks: 0,
            missed: None,
            events: 0,
        }
    }

    /// Adds an event; a page that is full goes to `out`.
    ///
    /// # Errors
    /// If `out` refuses, or the payload does not fit an empty page.
    pub fn event(&mut self, ticks: u64, payload: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let length = payload.len().next_multiple_of(4).max(4);
        let body = if length <= LONGEST_INLINE { 4 + length } else { 8 + length };
        self.make_room(ticks, 8 + body, out)?;
        let delta = self.approach(ticks);
        if length <= LONGEST_INLINE {
            self.word(length as u32 / 4, delta);
        } else {
            self.word(0, delta);
            self.machine.put(&mut self.page, length as u64 + 4, 4);
        }
        self.page.extend_from_slice(payload);
        self.page.resize(self.page.len() + length - payload.len(), 0);
        self.last_ticks = ticks;
        self.events += 1;
        match self.style.discards {
            Some(Discards { every, delta }) if self.events.is_multiple_of(every.max(1)) => self.discard(delta),
            _ => {}
        }
        Ok(())
    }

    /// Closes the current page and marks the next one: events were missed before it.
    ///
    /// # Errors
    /// If `out` refuses.
    pub fn missed(&mut self, number: Option<u64>, out: &mut dyn Write) -> io::Result<()> {
        self.flush(out)?;
        let earlier = self.missed.map(|missed| missed.number);
        let number = match (earlier, number) {
            (Some(Some(earlier)), Some(number)) => Some(earlier + number),
            (None, number) => number,
            _ => None,
        };
        self.missed = Some(Missed { number });
        Ok(())
    }

    /// Writes what is left. A mark with no event behind it becomes a page without events.
    ///
    /// # Errors
    /// If `out` refuses.
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.missed.is_some() && self.page.is_empty() {
            self.begin(self.last_ticks);
        }
        self.flush(out)
    }

    fn head_bytes(&self) -> usize {
        8 + usize::from(self.machine.long_bytes)
    }

    fn begin(&mut self, ticks: u64) {
        self.machine.put(&mut self.page, ticks, 8);
        self.machine.put(&mut self.page, 0, usize::from(self.machine.long_bytes));
        self.last_ticks = ticks;
    }

    /// Sees to it that `bytes` more fit the page, and that the time of the page can be continued.
    fn make_room(&mut self, ticks: u64, bytes: usize, out: &mut dyn Write) -> io::Result<()> {
        let stored = if self.missed.is_some() { usize::from(self.machine.long_bytes) } else { 0 };
        let too_long = self.head_bytes() + stored + bytes > self.page_bytes;
        if too_long {
            let text = format!("an event of {bytes} bytes does not fit a page of {}", self.page_bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let full = self.page.len() + stored + bytes > self.page_bytes;
        let far = ticks < self.last_ticks || (ticks - self.last_ticks) >> EXTEND_BITS != 0;
        if !self.page.is_empty() && (full || far) {
            self.flush(out)?;
        }
        if self.page.is_empty() {
            self.begin(ticks);
        }
        Ok(())
    }

    /// Writes what must stand before an event at `ticks`, and returns the delta that is left for the event itself.
    fn approach(&mut self, ticks: u64) -> u32 {
        let distance = ticks - self.last_ticks;
        let (kind, time) = match (self.style.absolute, distance >> DELTA_BITS) {
            (true, _) => (TIME_STAMP, ticks),
            (false, 0) => return distance as u32,
            (false, _) => (TIME_EXTEND, distance),
        };
        self.word(kind, (time & ((1 << DELTA_BITS) - 1)) as u32);
        self.machine.put(&mut self.page, time >> DELTA_BITS & 0xffff_ffff, 4);
        0
    }

    fn word(&mut self, type_len: u32, delta: u32) {
        let word = match self.machine.endian {
            Endian::Little => type_len | delta << 5,
            Endian::Big => type_len << DELTA_BITS | delta,
        };
        self.machine.put(&mut self.page, u64::from(word), 4);
    }

    /// An event that was taken back keeps its space, where the page has room for it.
    fn discard(&mut self, delta: u32) {
        let bytes = 4 + 4 * DISCARDED_WORDS;
        let stored = if self.missed.is_some() { usize::from(self.machine.long_bytes) } else { 0 };
        if self.page.len() + stored + bytes <= self.page_bytes {
            self.word(PADDING, delta);
            self.machine.put(&mut self.page, 4 * DISCARDED_WORDS as u64, 4);
            self.page.resize(self.page.len() + 4 * (DISCARDED_WORDS - 1), 0xaa);
            if delta > 1 {
                self.last_ticks += u64::from(delta);
            }
        }
    }

    fn flush(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.page.is_empty() {
            return Ok(());
        }
        let head = self.head_bytes();
        let missed = self.missed.take();
        let stored = missed.and_then(|missed| missed.number);
        if self.style.padded_tail && stored.is_none() && self.page.len() + 8 <= self.page_bytes {
            self.word(PADDING, 0);
            // Delta 0 alone means the rest of the page; the length is there for trace-cmd, which looks at nothing else.
            let rest = self.page_bytes - self.page.len();
            self.machine.put(&mut self.page, rest as u64, 4);
            self.page.resize(self.page_bytes, 0);
        }
        let mut commit = (self.page.len() - head) as u64;
        if missed.is_some() {
            commit |= MISSED;
        }
        let long = usize::from(self.machine.long_bytes);
        if let Some(number) = stored {
            commit |= MISSED_STORED;
            self.machine.put(&mut self.page, number, long);
        }
        self.machine.put_at(&mut self.page, 8, commit, long);
        self.page.resize(self.page_bytes, 0);
        out.write_all(&self.page)?;
        self.page.clear();
        Ok(())
    }
}

/// The text of `events/header_page` for pages of this shape.
pub fn header_page(machine: Machine, page_bytes: u32) -> String {
    let long = u32::from(machine.long_bytes);
    let (data, room) = (8 + long, page_bytes.saturating_sub(8 + long));
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
         \tfield: char data;\toffset:{data};\tsize:{room};\tsigned:1;\n"
    )
}

/// The text of `events/header_event`.
pub(crate) const HEADER_EVENT: &str = "# compressed entry header\n\
    \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
    \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
    \tdata max type_len  == 28\n";

#[cfg(test)]
mod tests {
    use super::*;

    const LE64: Machine = Machine::X86_64;

    fn pages(style: PageStyle, feed: impl FnOnce(&mut PageBuilder, &mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        let mut builder = PageBuilder::new(LE64, 4096, style);
        feed(&mut builder, &mut out);
        builder.finish(&mut out).unwrap();
        out
    }

    #[test]
    fn two_events_and_a_long_pause() {
        let out = pages(PageStyle::default(), |builder, out| {
            builder.event(1_000, &[1; 8], out).unwrap();
            builder.event(1_000 + (1 << 30), &[2; 6], out).unwrap();
        });
        assert_eq!(out.len(), 4096);
        assert_eq!(out[..8], 1_000u64.to_le_bytes());
        assert_eq!(out[8..16], 32u64.to_le_bytes(), "12 bytes, an extend of 8, 12 bytes");
        assert_eq!(out[16..20], 2u32.to_le_bytes(), "two words, delta 0");
        assert_eq!(out[28..36], [30, 0, 0, 0, 8, 0, 0, 0], "2^30 = 8 << 27");
    }

    #[test]
    fn a_mark_carries_the_sum_of_what_was_missed() {
        let out = pages(PageStyle::default(), |builder, out| {
            builder.event(5, &[0; 4], out).unwrap();
            builder.missed(Some(3), out).unwrap();
            builder.missed(Some(4), out).unwrap();
            builder.event(9, &[0; 4], out).unwrap();
        });
        let second = &out[4096..];
        assert_eq!(second[8..16], (8 | MISSED | MISSED_STORED).to_le_bytes());
        assert_eq!(second[24..32], 7u64.to_le_bytes());
    }

    #[test]
    fn an_event_larger_than_a_page_is_refused() {
        let mut builder = PageBuilder::new(LE64, 4096, PageStyle::default());
        assert!(builder.event(0, &[0; 4096], &mut Vec::new()).is_err());
    }
}
