//! The lines of a part of a file, none of them longer than is sensible.

use std::borrow::Cow;
use std::ops::Range;

/// Longest line that is looked at. ftrace prints at most a page (`trace_seq`, 8 KB) per event.
const LONGEST_LINE: usize = 64 << 10;

/// What stands between two line ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry<'f> {
    Text(Cow<'f, str>),
    /// A line of so many bytes, too many to be one of a trace.
    TooLong(usize),
}

/// Lines that start in a range of a file, with their offsets.
#[derive(Debug, Clone)]
pub(super) struct Lines<'f> {
    bytes: &'f [u8],
    at: usize,
    end: usize,
}

impl<'f> Lines<'f> {
    /// Lines that start in `range` of `bytes`.
    pub(super) fn new(bytes: &'f [u8], range: Range<usize>) -> Self {
        let end = range.end.min(bytes.len());
        let at = match range.start {
            0 => 0,
            // A line that started before the range belongs to the part before.
            start => memchr::memchr(b'\n', &bytes[start.min(end) - 1..end]).map_or(end, |at| start + at),
        };
        Self { bytes, at, end }
    }

    /// Where the line after the last one begins; beyond the file's end if that had no line end.
    pub(super) fn next_start(&self) -> usize {
        self.at
    }
}

impl<'f> Iterator for Lines<'f> {
    type Item = (u64, Entry<'f>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let start = self.at;
        let rest = &self.bytes[start..];
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.at = start + length + 1;
        let line = &rest[..length];
        let entry = if length > LONGEST_LINE {
            Entry::TooLong(length)
        } else {
            Entry::Text(String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)))
        };
        Some((start as u64, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_belongs_to_exactly_one_part() {
        let text = b"one\n\ntwo\r\nthree\nlast";
        let whole: Vec<_> = Lines::new(text, 0..text.len()).collect();
        assert_eq!(whole.len(), 5);
        assert_eq!(whole[2], (5, Entry::Text("two".into())));
        for cut in 0..=text.len() {
            let parts: Vec<_> = Lines::new(text, 0..cut).chain(Lines::new(text, cut..text.len())).collect();
            assert_eq!(parts, whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_long_line_is_not_copied() {
        let mut text = vec![b'x'; LONGEST_LINE + 1];
        text.extend_from_slice(b"\nnext");
        let lines: Vec<_> = Lines::new(&text, 0..text.len()).map(|(_, entry)| entry).collect();
        assert_eq!(lines, [Entry::TooLong(LONGEST_LINE + 1), Entry::Text("next".into())]);
    }
}
