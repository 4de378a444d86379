//! Fields that stay in their record until somebody asks for one.
//!
//! ```text
//! [ record ......................................... ][ what follows ]
//!   ^-- window of 72 bytes: field i is one load from it, or some of its bytes
//! ```
//! Most records are asked for one or two of their fields, if any: to store all of them first would cost more than all
//! that is done with them. It needs fixed places near the record's start, and the least significant byte first. Other
//! records, and those that are too short for their description, are stored as values instead (`extract.rs`).

use crate::load::{Load, WINDOW_BYTES, Window};

/// Where the wanted fields of one kind of record lie.
#[derive(Debug, Clone)]
pub struct InPlace {
    /// Of each wanted field: an integer, the first bytes of a content, or [`Load::ABSENT`].
    loads: [Load; MOST_FIELDS],
    /// Of each wanted field its content, if it has one.
    contents: Vec<Option<Content>>,
    /// The shortest record that has all of them.
    needs_bytes: usize,
}

/// Kinds of records with more wanted fields are stored as values. Few, so that the place of a field needs no look-up.
const MOST_FIELDS: usize = 16;

/// Bytes of a record.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    /// The first of them.
    pub offset: usize,
    /// How many there are at most.
    pub size: usize,
    /// Characters, which end with NUL if there are fewer.
    pub chars: bool,
}

/// Bytes that have to follow the last record, so that every record has a whole window.
pub const PADDING_BYTES: usize = WINDOW_BYTES;

impl InPlace {
    /// Little-endian integers at `known`, contents at `contents`, in records of at least `needs_bytes`; `None` if they are
    /// too many, or a content lies too far from the record's start.
    pub fn new(known: &[Load], contents: Vec<Option<Content>>, needs_bytes: usize) -> Option<Self> {
        let near = |content: &Content| content.offset + content.size <= WINDOW_BYTES;
        let mut loads = [Load::ABSENT; MOST_FIELDS];
        loads.get_mut(..known.len())?.copy_from_slice(known);
        contents.iter().flatten().all(near).then_some(Self { loads, contents, needs_bytes })
    }

    /// Bytes that a record has if all of its fields are there.
    pub fn needs_bytes(&self) -> usize {
        self.needs_bytes
    }
}

/// The wanted fields of one event.
#[derive(Debug, Clone, Copy)]
pub enum Fields<'b> {
    /// As values.
    Stored {
        /// Bit i is set if the i-th field is there.
        mask: u64,
        /// The fields, and whatever follows them.
        values: &'b [u64],
        /// What handles among them stand for.
        bytes: &'b [u8],
    },
    /// Still in the record.
    InPlace {
        /// Where they lie.
        layout: &'b InPlace,
        /// The record's start.
        window: &'b Window,
    },
}

impl<'b> Fields<'b> {
    /// Value of the `field`-th wanted field, if the event has it. That of a content says no more than that it is there.
    #[inline(always)]
    pub fn get(&self, field: usize) -> Option<u64> {
        match self {
            Fields::Stored { mask, values, .. } => (mask >> field & 1 == 1).then(|| values[field]),
            Fields::InPlace { layout, window } => {
                let load = layout.loads.get(field).filter(|load| !load.is_absent())?;
                Some(load.value_of_whole_bytes(window))
            }
        }
    }

    /// Content of a text or bytes field.
    pub fn content(&self, field: usize) -> Option<&'b [u8]> {
        match self {
            Fields::Stored { bytes, .. } => self.get(field).map(|handle| content(bytes, handle)),
            Fields::InPlace { layout, window } => {
                let Content { offset, size, chars } = (*layout.contents.get(field)?)?;
                let content = &window[offset..offset + size];
                Some(if chars { up_to_nul(content) } else { content })
            }
        }
    }
}

/// What `handle` stands for: place << 32 | length.
pub fn content(bytes: &[u8], handle: u64) -> &[u8] {
    let (at, length) = ((handle >> 32) as usize, (handle & 0xffff_ffff) as usize);
    bytes.get(at..at + length).unwrap_or_default()
}

/// The characters before the first NUL.
pub(crate) fn up_to_nul(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_out_of_the_record_itself_and_absent_ones_not_at_all() {
        let mut window = [0xaa; WINDOW_BYTES];
        window[8..12].copy_from_slice(&(-2i32).to_le_bytes());
        window[24..29].copy_from_slice(b"idle\0");
        let loads = [Load::new(8, 0, 32, true).unwrap(), Load::ABSENT, Load::new(24, 0, 64, false).unwrap()];
        let content = Content { offset: 24, size: 16, chars: true };
        let layout = InPlace::new(&loads, vec![None, None, Some(content)], 40).unwrap();
        let fields = Fields::InPlace { layout: &layout, window: &window };
        assert_eq!((fields.get(0).map(|value| value as i64), fields.get(1)), (Some(-2), None));
        assert_eq!((fields.content(0), fields.content(2)), (None, Some(&b"idle"[..])));
        assert!(fields.get(2).is_some() && fields.get(3).is_none() && fields.get(MOST_FIELDS).is_none());
        let bytes = InPlace::new(&loads, vec![None, None, Some(Content { chars: false, ..content })], 40).unwrap();
        let fields = Fields::InPlace { layout: &bytes, window: &window };
        assert_eq!(fields.content(2), Some(&window[24..40]));
    }

    #[test]
    fn what_does_not_lie_near_is_not_left_in_place() {
        let far = Content { offset: WINDOW_BYTES - 1, size: 2, chars: true };
        assert!(InPlace::new(&[Load::ABSENT], vec![Some(far)], 0).is_none());
        assert!(InPlace::new(&[Load::ABSENT; MOST_FIELDS + 1], Vec::new(), 0).is_none());
    }
}
