//! Where everything lies in a ring's region.
//!
//! ```text
//!      0  header         one page: magic, version, shape, generation, owners   written once, then only read
//!   4096  producer line  head: u64             written by the producer alone
//!   4224  consumer line  tail: u64             written by the consumer alone
//!   4352  notify line    want_kick: u64 of the consumer, u64 of the producer
//!   8192  slots          each begins a cache line
//! ```
//! Lines that different CPUs write lie 128 bytes apart, because the prefetcher of many CPUs fetches pairs of lines (Linux pads by
//! 0x80 in `tools/virtio/ringtest`). A slot is a descriptor of 8 bytes (`len: u16, flags: u16, gen: u32`, little-endian; the
//! flags are a number of frames and the low bits of the connection's generation, `gen` is the epoch) and its data. Frames of one batch
//! that are of one length are a run, and share the descriptor of the first. Both lie together ([`Lengths::InSlot`]), or all descriptors
//! come before the data of all slots ([`Lengths::Apart`]), those of one run after the other, eight in a line: a frame of 64 bytes then
//! moves a line, not a slot of two. There are as many of them as slots, and no run has less than one.

use crate::fault::Refused;

/// First bytes of a region: "kvmscope", little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"kvmscope");
/// Of this layout.
pub const VERSION: u32 = 2;

pub(crate) const PAGE_BYTES: usize = 4096;
/// What CPUs move between each other.
pub const LINE_BYTES: usize = 64;
pub(crate) const HEAD_AT: usize = PAGE_BYTES;
pub(crate) const TAIL_AT: usize = HEAD_AT + 2 * LINE_BYTES;
pub(crate) const CONSUMER_WANTS_AT: usize = TAIL_AT + 2 * LINE_BYTES;
pub(crate) const PRODUCER_WANTS_AT: usize = CONSUMER_WANTS_AT + 8;
const SLOTS_AT: usize = 2 * PAGE_BYTES;
/// Up to here a region has no slots: the half of a consumer.
pub(crate) const CONTROL_BYTES: usize = SLOTS_AT;

pub(crate) const DESCRIPTOR_BYTES: usize = 8;
const MOST_SLOTS: u32 = 1 << 20;
const MOST_SLOT_BYTES: u32 = 64 << 10;

/// Where the descriptors of slots lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// Before the data, in the slot.
    InSlot,
    /// In an array of their own, before the first slot, in the order of runs.
    Apart,
}

/// How many slots of how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    slots: u32,
    slot_bytes: u32,
    lengths: Lengths,
}

impl Shape {
    /// `slots` is a power of two up to 2^20, `slot_bytes` a multiple of a cache line up to 64 KiB.
    pub fn new(slots: u32, slot_bytes: u32, lengths: Lengths) -> Result<Shape, Refused> {
        if !slots.is_power_of_two() || slots > MOST_SLOTS {
            return Err(Refused::Slots { slots });
        }
        if slot_bytes == 0 || !slot_bytes.is_multiple_of(LINE_BYTES as u32) || slot_bytes > MOST_SLOT_BYTES {
            return Err(Refused::SlotBytes { slot_bytes });
        }
        Ok(Shape { slots, slot_bytes, lengths })
    }

    /// The smallest slots that hold frames of `frame_bytes`.
    pub fn for_frames(slots: u32, frame_bytes: u32, lengths: Lengths) -> Result<Shape, Refused> {
        let descriptor = if lengths == Lengths::InSlot { DESCRIPTOR_BYTES as u32 } else { 0 };
        let slot_bytes = frame_bytes.saturating_add(descriptor).max(1).checked_next_multiple_of(LINE_BYTES as u32);
        Shape::new(slots, slot_bytes.unwrap_or(u32::MAX), lengths)
    }

    /// How many frames wait at most.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// The longest frame.
    pub fn frame_bytes(&self) -> usize {
        match self.lengths {
            Lengths::InSlot => self.slot_bytes as usize - DESCRIPTOR_BYTES,
            // A length has 16 bits.
            Lengths::Apart => (self.slot_bytes as usize).min(u16::MAX.into()),
        }
    }

    /// The one of both layouts that moves fewer bytes from CPU to CPU, for frames of this length in batches of so many.
    pub fn moving_least(slots: u32, frame_bytes: u32, batch: u32) -> Result<Shape, Refused> {
        let in_slot = Shape::for_frames(slots, frame_bytes, Lengths::InSlot)?;
        let apart = Shape::for_frames(slots, frame_bytes, Lengths::Apart)?;
        let moved = |shape: &Shape| shape.bytes_moved(frame_bytes as usize, batch);
        Ok(if moved(&apart) < moved(&in_slot) { apart } else { in_slot })
    }

    /// Bytes that one frame moves from CPU to CPU in whole cache lines, in a batch of frames of one length, which has one descriptor.
    pub fn bytes_moved(&self, frame_bytes: usize, batch: u32) -> usize {
        match self.lengths {
            Lengths::InSlot => (frame_bytes + DESCRIPTOR_BYTES).next_multiple_of(LINE_BYTES),
            Lengths::Apart => {
                frame_bytes.next_multiple_of(LINE_BYTES) + DESCRIPTOR_BYTES.div_ceil(batch.max(1) as usize)
            }
        }
    }

    /// Of a region with slots.
    pub fn region_bytes(&self) -> usize {
        self.places().data_at + self.slots as usize * self.slot_bytes as usize
    }

    /// Where slots lie in a region.
    pub(crate) fn places(&self) -> Places {
        let slot_bytes = self.slot_bytes as usize;
        let (descriptor_step, data_at) = match self.lengths {
            Lengths::InSlot => (slot_bytes, SLOTS_AT + DESCRIPTOR_BYTES),
            Lengths::Apart => {
                let descriptors = self.slots as usize * DESCRIPTOR_BYTES;
                (DESCRIPTOR_BYTES, SLOTS_AT + descriptors.next_multiple_of(2 * LINE_BYTES))
            }
        };
        Places {
            mask: u64::from(self.slots - 1),
            lengths: self.lengths,
            slot_bytes,
            descriptor_step,
            data_at,
            frame_bytes: self.frame_bytes(),
        }
    }
}

/// [`Shape::places`], worked out once: asked for every frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    mask: u64,
    lengths: Lengths,
    /// From the data of one slot to that of the next.
    pub slot_bytes: usize,
    descriptor_step: usize,
    data_at: usize,
    pub frame_bytes: usize,
}

impl Places {
    /// Of the descriptor of a run that begins in the slot with this free-running number; `run` counts runs as `number` counts slots.
    #[inline]
    pub(crate) fn descriptor(&self, number: u64, run: u64) -> usize {
        let at = match self.lengths {
            Lengths::InSlot => number,
            Lengths::Apart => run,
        };
        SLOTS_AT + (at & self.mask) as usize * self.descriptor_step
    }

    /// Slots from this one to the last in the region, both counted.
    #[inline]
    pub(crate) fn before_the_wrap(&self, number: u64) -> u64 {
        self.mask + 1 - (number & self.mask)
    }

    #[inline]
    pub(crate) fn data(&self, number: u64) -> usize {
        self.data_at + (number & self.mask) as usize * self.slot_bytes
    }
}

/// What stands before a frame's data, and before that of the frames after it that are like it. All of it is the peer's word until it
/// was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub len: u16,
    /// So many frames after this one have the same descriptor, and their slots none: its line need not move again.
    pub more: u8,
    /// The low bits of the generation of the channel in which it was sent.
    pub generation: u8,
    /// What the sender stamps: the epoch of the flow table that it decided by.
    pub epoch: u32,
}

impl Descriptor {
    #[inline]
    pub(crate) fn word(self) -> u64 {
        let Descriptor { len, more, generation, epoch } = self;
        u64::from(len) | u64::from(more) << 16 | u64::from(generation) << 24 | u64::from(epoch) << 32
    }

    #[inline]
    pub(crate) fn of(word: u64) -> Descriptor {
        Descriptor {
            len: word as u16,
            more: (word >> 16) as u8,
            generation: (word >> 24) as u8,
            epoch: (word >> 32) as u32,
        }
    }
}

/// The first page, as far as it has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How many slots of how many bytes.
    pub shape: Shape,
    /// Each time that the two are connected anew.
    pub generation: u32,
    /// Who sends.
    pub producer: u32,
    /// Who receives.
    pub consumer: u32,
}

pub(crate) const HEADER_BYTES: usize = 40;

impl Header {
    pub(crate) fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        let lengths = u32::from(self.shape.lengths == Lengths::Apart);
        let words =
            [VERSION, self.shape.slots, self.shape.slot_bytes, lengths, self.generation, self.producer, self.consumer];
        for (to, word) in bytes[8..].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads a private copy of what somebody else wrote.
    pub(crate) fn of(bytes: &[u8; HEADER_BYTES]) -> Result<Header, Refused> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..8] != MAGIC.to_le_bytes() {
            return Err(Refused::NoRing);
        }
        if word(8) != VERSION {
            return Err(Refused::Version { version: word(8) });
        }
        let lengths = match word(20) {
            0 => Lengths::InSlot,
            1 => Lengths::Apart,
            _ => return Err(Refused::NoRing),
        };
        Ok(Header {
            shape: Shape::new(word(12), word(16), lengths)?,
            generation: word(24),
            producer: word(28),
            consumer: word(32),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_begin_cache_lines_and_do_not_overlap() {
        for lengths in [Lengths::InSlot, Lengths::Apart] {
            let shape = Shape::for_frames(8, 100, lengths).unwrap();
            let places = shape.places();
            for number in 0..8 {
                let (descriptor, data) = (places.descriptor(number, number), places.data(number));
                let begin = if lengths == Lengths::InSlot { descriptor } else { data };
                assert!(begin.is_multiple_of(LINE_BYTES), "{lengths:?} slot {number}");
                assert!(data >= descriptor + DESCRIPTOR_BYTES);
                let end = data + shape.frame_bytes();
                assert!(end <= shape.region_bytes());
                if number < 7 {
                    assert!(end <= places.data(number + 1));
                }
            }
            assert_eq!(places.data(8), places.data(0), "indices run on and are masked");
            assert_eq!(places.data(u64::MAX), places.data(7));
        }
    }

    #[test]
    fn a_frame_of_64_bytes_moves_two_lines_in_its_slot_and_little_more_than_one_beside_its_length() {
        let [in_slot, apart] = [Lengths::InSlot, Lengths::Apart].map(|l| Shape::for_frames(256, 64, l).unwrap());
        assert_eq!((in_slot.bytes_moved(64, 32), apart.bytes_moved(64, 32)), (128, 65));
        assert_eq!((in_slot.frame_bytes(), apart.frame_bytes()), (120, 64));
        let least = |bytes, batch| Shape::moving_least(256, bytes, batch).unwrap().lengths;
        assert_eq!([least(64, 32), least(64, 1), least(56, 32)], [Lengths::Apart, Lengths::Apart, Lengths::InSlot]);
    }

    #[test]
    fn descriptors_apart_lie_one_behind_the_other_whatever_slots_their_runs_begin_in() {
        let [in_slot, apart] =
            [Lengths::InSlot, Lengths::Apart].map(|l| Shape::for_frames(256, 64, l).unwrap().places());
        assert_eq!(apart.descriptor(64, 2) - apart.descriptor(32, 1), DESCRIPTOR_BYTES);
        assert_eq!(apart.descriptor(0, 256), apart.descriptor(0, 0));
        assert_eq!(in_slot.descriptor(64, 2), in_slot.descriptor(64, 9));
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_refused_otherwise() {
        let shape = Shape::for_frames(4096, 1518, Lengths::Apart).unwrap();
        let header = Header { shape, generation: 3, producer: 1, consumer: 2 };
        assert_eq!(Header::of(&header.bytes()), Ok(header));
        for (at, byte) in [(0, 0), (8, 9), (12, 3), (16, 1), (20, 7)] {
            let mut bytes = header.bytes();
            bytes[at] = byte;
            assert!(Header::of(&bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn shapes_that_cannot_be_are_refused() {
        for (slots, slot_bytes) in [(0, 64), (3, 64), (1 << 21, 64), (8, 0), (8, 63), (8, 1 << 20)] {
            assert!(Shape::new(slots, slot_bytes, Lengths::InSlot).is_err(), "{slots} of {slot_bytes}");
        }
        assert!(Shape::for_frames(8, u32::MAX, Lengths::InSlot).is_err());
    }
}
