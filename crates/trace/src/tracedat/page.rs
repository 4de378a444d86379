//! The events of one page of the kernel's ring buffer.
//!
//! ```text
//! u64 time | commit (4 or 8 bytes) | event event event ...                      | unused
//!            bits 0-19  bytes of events           header: type_len 5 bits, time delta 27 bits
//!            bit 31     events were lost before this page
//!            bit 30     their number stands behind the last event
//! ```
//! Source: `struct ring_buffer_event`, `rb_event_length` in include/linux/ring_buffer.h and kernel/trace/ring_buffer.c
//! (Linux 6.12). Big-endian kernels lay the header's bit fields out from the other end.

use super::Shape;
use crate::format::Endian;

/// What kinds of record there are beside data (type_len 1 to 28: that many 32-bit words).
const DATA_WITH_LENGTH: u32 = 0;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// No data record takes less: a header, and a word of data.
pub(super) const LEAST_RECORD_BYTES: usize = 8;

/// The bits of `commit`.
const COMMIT_LENGTH: u64 = 0xf_ffff;
const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

/// An absolute stamp has 59 bits; the rest comes from the last full one.
const STAMP_BITS: u32 = 59;

/// What a page says beside its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PageEnd {
    /// Events were lost before the page: how many, 0 if the page does not say.
    pub missed: Option<u64>,
    /// Where in the page its events stopped making sense, if they did, and why.
    pub damage: Option<(usize, &'static str)>,
    /// Where in the page its events end, by its own account.
    pub(crate) events_end: usize,
}

/// Time and loss mark of a page, read before its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageHead {
    /// Time at which the deltas start, in ticks.
    pub ticks: u64,
    /// Bytes of events behind the header.
    pub length: usize,
    /// See [`PageEnd::missed`].
    pub missed: Option<u64>,
}

/// Reads a page's head; `None` if the page is shorter than one.
pub(super) fn head(page: &[u8], shape: &Shape) -> Option<PageHead> {
    let ticks = shape.endian.unsigned(page.get(..8)?);
    let commit_at = shape.commit_offset;
    let commit = shape.endian.unsigned(page.get(commit_at..commit_at + shape.commit_size)?);
    let length = (commit & COMMIT_LENGTH) as usize;
    let stored_at = shape.data_offset + length;
    let missed = (commit & MISSED_EVENTS != 0).then(|| match page.get(stored_at..stored_at + shape.commit_size) {
        Some(bytes) if commit & MISSED_STORED != 0 => shape.endian.unsigned(bytes),
        _ => 0,
    });
    Some(PageHead { ticks, length, missed })
}

/// One data record of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'p> {
    pub ticks: u64,
    pub bytes: &'p [u8],
    /// How far before the end of the page's events it begins.
    pub(crate) before_end: usize,
}

/// The data records of one page, in order.
///
/// `BIG`: the page was written by a big-endian kernel.
#[derive(Clone, Copy)]
pub(super) struct Records<'p, const BIG: bool> {
    /// The page from the next record on.
    left: &'p [u8],
    ticks: u64,
    end: PageEnd,
}

impl<'p, const BIG: bool> Records<'p, BIG> {
    /// The records of `page`.
    pub(super) fn new(page: &'p [u8], shape: &Shape) -> Self {
        let Some(head) = head(page, shape) else {
            let damage = Some((0, "a page header"));
            return Self { left: &[], ticks: 0, end: PageEnd { damage, events_end: page.len(), ..PageEnd::default() } };
        };
        let claimed = shape.data_offset + head.length;
        let damage = (claimed > page.len()).then_some((page.len(), "the rest of a page"));
        let end = PageEnd { missed: head.missed, damage, events_end: claimed.min(page.len()) };
        let left = page[..end.events_end].get(shape.data_offset..).unwrap_or_default();
        Self { left, ticks: head.ticks, end }
    }

    /// What the page says beside its events; whole once the last of them was given.
    pub(super) fn end(&self) -> PageEnd {
        self.end
    }

    /// The page ends here, where its events stop making sense: `back` bytes before what is left.
    #[cold]
    fn stopped(self, back: usize, expected: &'static str) -> Self {
        let damage = Some((self.end.events_end - self.left.len() - back, expected));
        Self { left: &[], end: PageEnd { damage, ..self.end }, ..self }
    }

    /// Passes over a record that is not data of a length in its header: time goes on, or the page ends. Gives a long
    /// record.
    ///
    /// Takes and returns the position as a whole: behind a reference it could not stay in registers.
    #[cold]
    fn behind_special(mut self, type_len: u32, delta: u32) -> (Self, Option<Record<'p>>) {
        let (delta, second) = (u64::from(delta), word::<BIG>(self.left));
        match (type_len, second) {
            (DATA_WITH_LENGTH, second) => {
                self.ticks = self.ticks.wrapping_add(delta);
                // The length counts its own four bytes and is rounded up to whole words.
                let length = second.unwrap_or(0) as usize;
                if length < 4 || length > self.left.len() {
                    return (self.stopped(HEADER_BYTES, "a record inside its page"), None);
                }
                let record =
                    Record { ticks: self.ticks, bytes: &self.left[4..length], before_end: self.left.len() - 4 };
                (self.behind(length), Some(record))
            }
            (PADDING, Some(length)) if delta != 0 => {
                // Delta 1 marks a discarded event that had none of its own (rb_event_discard).
                if delta != 1 {
                    self.ticks = self.ticks.wrapping_add(delta);
                }
                if length < 4 {
                    return (self.stopped(HEADER_BYTES, "padding of at least four bytes"), None);
                }
                (self.behind(length as usize), None)
            }
            (PADDING, _) => (Self { left: &[], ..self }, None),
            (_, None) => (self.stopped(HEADER_BYTES, "the second word of a time record"), None),
            (..=TIME_EXTEND, Some(high)) => {
                self.ticks = self.ticks.wrapping_add((u64::from(high) << 27) + delta);
                (self.behind(4), None)
            }
            (TIME_STAMP.., Some(high)) => {
                self.ticks = full_stamp(self.ticks, (u64::from(high) << 27) | delta);
                (self.behind(4), None)
            }
        }
    }

    /// The position behind `bytes`, rounded up to whole words.
    fn behind(self, bytes: usize) -> Self {
        Self { left: self.left.get(bytes.next_multiple_of(4)..).unwrap_or_default(), ..self }
    }
}

/// Bytes of a record's header.
const HEADER_BYTES: usize = 4;

#[inline(always)]
fn word<const BIG: bool>(bytes: &[u8]) -> Option<u32> {
    let word = *bytes.first_chunk()?;
    Some(if BIG { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
}

impl<'p, const BIG: bool> Iterator for Records<'p, BIG> {
    type Item = Record<'p>;

    #[inline(always)]
    fn next(&mut self) -> Option<Record<'p>> {
        loop {
            let header = word::<BIG>(self.left)?;
            let (type_len, delta) = if BIG { (header >> 27, header & 0x07ff_ffff) } else { (header & 31, header >> 5) };
            self.left = &self.left[HEADER_BYTES..];
            if !(1..PADDING).contains(&type_len) {
                let (behind, long) = self.behind_special(type_len, delta);
                *self = behind;
                match long {
                    None => continue,
                    long => return long,
                }
            }
            self.ticks = self.ticks.wrapping_add(u64::from(delta));
            let before_end = self.left.len();
            let Some((bytes, left)) = self.left.split_at_checked(4 * type_len as usize) else {
                *self = self.stopped(HEADER_BYTES, "a record inside its page");
                return None;
            };
            self.left = left;
            return Some(Record { ticks: self.ticks, bytes, before_end });
        }
    }
}

/// Calls `on_event(ticks, record)` for every data record of a page, in order.
pub(super) fn walk(page: &[u8], shape: &Shape, on_event: impl FnMut(u64, &[u8])) -> PageEnd {
    match shape.endian {
        Endian::Little => walk_records(Records::<false>::new(page, shape), on_event),
        Endian::Big => walk_records(Records::<true>::new(page, shape), on_event),
    }
}

fn walk_records<const BIG: bool>(mut records: Records<'_, BIG>, mut on_event: impl FnMut(u64, &[u8])) -> PageEnd {
    for record in &mut records {
        on_event(record.ticks, record.bytes);
    }
    records.end()
}

/// The absolute stamp whose lower bits are `low`, at or after `before`.
fn full_stamp(before: u64, low: u64) -> u64 {
    let mask = (1 << STAMP_BITS) - 1;
    let low = low & mask;
    let stamp = (before & !mask) | low;
    // `rb_fix_abs_ts`: a smaller value means that the lower bits wrapped; a small step back is a step back.
    if before & mask > low && (before & mask) - low > 1 << (STAMP_BITS - 1) {
        stamp.wrapping_add(1 << STAMP_BITS)
    } else {
        stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(endian: Endian) -> Shape {
        Shape { endian, commit_offset: 8, commit_size: 8, data_offset: 16 }
    }

    fn page(commit: u64, words: &[u32]) -> Vec<u8> {
        let mut page = 1000u64.to_le_bytes().to_vec();
        page.extend(commit.to_le_bytes());
        words.iter().for_each(|word| page.extend(word.to_le_bytes()));
        page.resize(4096, 0xff);
        page
    }

    fn seen(page: &[u8]) -> (Vec<(u64, usize)>, PageEnd) {
        let mut events = Vec::new();
        let end = walk(page, &shape(Endian::Little), |ticks, record| events.push((ticks, record.len())));
        (events, end)
    }

    #[test]
    fn each_kind_of_record_moves_time_and_place_as_the_kernel_does() {
        let words = [
            2 | 5 << 5, // two words of data, 5 ticks later
            0,
            0,
            TIME_EXTEND | 3 << 5, // 3 + (1 << 27) ticks
            1,
            PADDING | 1 << 5, // a discarded event of 8 bytes behind its header
            8,
            0,
            DATA_WITH_LENGTH | 7 << 5, // length 12 counts itself
            12,
            0,
            0,
            TIME_STAMP | 9 << 5, // absolute: 9 + (4 << 27)
            4,
            1 | 1 << 5,
            0,
        ];
        let (events, end) = seen(&page(words.len() as u64 * 4, &words));
        let extended = 1005 + 3 + (1 << 27);
        assert_eq!(events, [(1005, 8), (extended + 7, 8), (9 + (4 << 27) + 1, 4)]);
        assert_eq!((end.missed, end.damage), (None, None));
    }

    #[test]
    fn lost_events_are_told_with_their_number_where_it_is_stored() {
        let words = [1 | 1 << 5, 0, 42, 0];
        assert_eq!(seen(&page(8 | MISSED_EVENTS, &words)).1.missed, Some(0));
        assert_eq!(seen(&page(8 | MISSED_EVENTS | MISSED_STORED, &words)).1.missed, Some(42));
    }

    #[test]
    fn a_record_longer_than_its_page_is_damage_and_what_came_before_stays() {
        let (events, end) = seen(&page(12, &[1, 0, 28]));
        assert_eq!(events, [(1000, 4)]);
        assert_eq!(end.damage, Some((24, "a record inside its page")));
    }

    #[test]
    fn an_absolute_stamp_keeps_its_upper_bits_and_wraps_once() {
        let top = 3 << STAMP_BITS;
        assert_eq!(full_stamp(top | 100, 200), top | 200);
        assert_eq!(full_stamp(top | ((1 << STAMP_BITS) - 1), 5), (4 << STAMP_BITS) | 5);
        assert_eq!(full_stamp(top | 200, 100), top | 100, "a small step back is told as it is");
    }
}
