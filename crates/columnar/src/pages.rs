//! What the pages of a Parquet file unpack to, by their own headers, before anything is unpacked: a file of a few kilobytes may name
//! gigabytes, and its footer need not say so.
//!
//! Source: the Parquet format 2.10, `parquet.thrift` (PageHeader: field 2 is `uncompressed_page_size`, field 3 `compressed_page_size`), and
//! Apache Thrift's compact protocol.

/// Structs inside structs; a page's header has three.
const MOST_DEPTH: u32 = 16;

/// Bytes that the pages in `chunk` unpack to: all of them, and those of the largest one. `None` if it is damaged.
pub(crate) fn unpacked_bytes(mut chunk: &[u8]) -> Option<(u64, u64)> {
    let (mut all, mut largest) = (0_u64, 0);
    while !chunk.is_empty() {
        let mut header = Cursor { rest: chunk };
        let (unpacked, packed) = header.page()?;
        all = all.checked_add(unpacked)?;
        largest = largest.max(unpacked);
        chunk = header.rest.get(usize::try_from(packed).ok()?..)?;
    }
    Some((all, largest))
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    /// Unpacked and packed bytes of the page behind the header.
    fn page(&mut self) -> Option<(u64, u64)> {
        let (mut unpacked, mut packed, mut field) = (None, None, 0);
        while let Some(kind) = self.field(&mut field)? {
            match (field, kind) {
                (2, 5) => unpacked = Some(u64::try_from(self.integer()?).ok()?),
                (3, 5) => packed = Some(u64::try_from(self.integer()?).ok()?),
                _ => self.skip(kind, 0)?,
            }
        }
        Some((unpacked?, packed?))
    }

    /// The type of the next field, whose number becomes `field`; `None` at the end of a struct.
    fn field(&mut self, field: &mut i64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        match head >> 4 {
            0 => *field = self.integer()?,
            step => *field += i64::from(step),
        }
        Some(Some(head & 15))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth > MOST_DEPTH {
            return None;
        }
        match kind {
            // true, false: the type is the value.
            1 | 2 => Some(()),
            3 => self.take(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.take(8),
            8 => {
                let length = self.varint()?;
                self.take(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                (0..count).try_for_each(|_| self.skip_element(head & 15, depth))
            }
            11 => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 15, depth)
                })
            }
            12 => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, depth + 1)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// In a collection a truth takes a byte.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Option<()> {
        if kind <= 2 { self.take(1) } else { self.skip(kind, depth + 1) }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Zigzag.
    fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data page's header: type 0, sizes, and a data page header with a list inside that is skipped; then the page.
    fn page(unpacked: u8, packed: usize) -> Vec<u8> {
        let header =
            [0x15, 0, 0x15, unpacked << 1, 0x15, (packed as u8) << 1, 0x2c, 0x15, 4, 0x29, 0x23, 1, 2, 0x00, 0];
        [header.as_slice(), &vec![0xff; packed]].concat()
    }

    #[test]
    fn pages_are_added_up_by_their_headers_and_damage_is_no_size() {
        let chunk = [page(40, 3), page(20, 7)].concat();
        assert_eq!(unpacked_bytes(&chunk), Some((60, 40)));
        assert_eq!(unpacked_bytes(&[]), Some((0, 0)));
        for end in 1..chunk.len() {
            let cut = unpacked_bytes(&chunk[..end]);
            assert_eq!(cut, (end == page(40, 3).len()).then_some((40, 40)), "{end}");
        }
        assert_eq!(unpacked_bytes(&[0x1c; 64]), None, "structs without an end");
        assert_eq!(unpacked_bytes(&[0x15, 0, 0x15, 1, 0x15, 2, 0]), None, "a negative size");
    }
}
