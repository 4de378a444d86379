//! Shortcuts for what nearly all events of real traces look like.
//!
//! ```text
//! header   | id | time |            LTTng's two headers, as long as the id needs no extension; plain id and time
//! payload  | word | word | text |   integers at byte boundaries and characters, all of fixed size
//! ```
//! A shortcut is recognised in compiled steps and gives what the steps would give. Where a header or an alignment does not
//! fit, or the packet ends soon, the steps themselves are done.

use super::bits::Shape;
use super::model::Role;
use super::program::{Op, To};
use crate::Batch;
use crate::batch::store;
use crate::in_place::{Content, InPlace};
use crate::load::{Load, WINDOW_BYTES, Window};

/// An event header of fixed length.
#[derive(Debug, Clone)]
pub(super) struct Header {
    align: u64,
    id: Option<Take>,
    /// The time stamp and its length.
    time: Option<(Take, u8)>,
    ids: (u64, u64),
    bits: u64,
}

/// An event header of id and time, least significant byte first.
pub(super) struct LittleHeader {
    align: u64,
    id: Load,
    time: Load,
    /// Length of the time stamp.
    pub(crate) time_bits: u8,
    ids: (u64, u64),
    bits: u64,
}

/// What an event header says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// Position behind it.
    pub after: u64,
    /// Which kind of event follows.
    pub id: Option<u64>,
    /// The low bits of its time, and how many they are.
    pub time: Option<(u64, u8)>,
}

/// Wanted fields of an event, all at fixed places.
#[derive(Debug, Clone)]
pub(super) struct Payload {
    align: u64,
    takes: Vec<Take>,
    /// The same, where all are little-endian integers.
    loads: Option<Vec<Load>>,
    tid: Option<Take>,
    mask: u64,
    bits: u64,
}

/// One value, so many bytes from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Take {
    Word { load: Load, big: bool },
    Single { load: Load, big: bool },
    Bytes { byte: usize, count: usize, text: bool },
}

/// A list of steps up to where it stops being of fixed layout.
struct Start<'o> {
    align: u64,
    /// The fixed-size steps.
    fixed: &'o [Op],
    bits: u64,
    rest: &'o [Op],
}

fn start(ops: &[Op]) -> Start<'_> {
    let (align, ops) = match ops {
        [Op::Align(align), rest @ ..] => (u64::from(*align), rest),
        _ => (1, ops),
    };
    let fixed = ops.iter().take_while(|op| matches!(op, Op::Int { .. } | Op::Float { .. } | Op::Fixed { .. })).count();
    let (fixed, rest) = ops.split_at(fixed);
    let (bits, rest) = match rest {
        [Op::Advance(bits), rest @ ..] => (*bits, rest),
        _ => (0, rest),
    };
    Start { align: align - 1, fixed, bits, rest }
}

impl Header {
    /// The shortcut for a header's steps, if they allow one.
    pub(super) fn recognise(ops: &[Op]) -> Option<Self> {
        let first = start(ops);
        let (align, bits) = (first.align, first.bits);
        let mut header = Self { align, id: None, time: None, ids: (0, u64::MAX), bits };
        let mut selector = None;
        for op in first.fixed {
            match op {
                Op::Int { shape, to: To::Role(Role::EventId), .. } if !shape.signed => header.id = Some(take(op)?.0),
                Op::Int { shape, to: To::Time, .. } => header.time = Some((take(op)?.0, shape.bits)),
                Op::Int { to: To::Register(register), .. } => selector = Some((take(op)?.0, *register)),
                _ => return None,
            }
        }
        let [Op::Switch { register, arms, .. }] = first.rest else {
            return (first.rest.is_empty() && selector.is_none()).then_some(header);
        };
        // The first arm is the one for ids that fit; what it holds follows at once.
        let arm = arms.first().filter(|_| selector == header.id.map(|id| (id, *register)))?;
        let inner = start(&arm.body);
        let follows = header.bits.is_multiple_of(inner.align + 1) && inner.align <= header.align;
        match (arm.ranges.as_slice(), inner.fixed) {
            ([ids], [Op::Int { at, shape, to: To::Time }]) if follows && inner.rest.is_empty() && !arm.signed => {
                let at = u32::try_from(header.bits).ok()?.checked_add(*at)?;
                let (time, _) = take(&Op::Int { at, shape: *shape, to: To::Time })?;
                let bits = header.bits.checked_add(inner.bits)?;
                Some(Self { ids: *ids, time: Some((time, shape.bits)), bits, ..header })
            }
            _ => None,
        }
    }

    /// What the header at `at` says; `None`: do the steps.
    #[inline]
    pub(super) fn read(&self, data: &[u8], at: u64, end: u64) -> Option<Found> {
        let at = (at + self.align) & !self.align;
        let after = at.checked_add(self.bits).filter(|after| *after <= end)?;
        let window = window(data, at)?;
        let id = self.id.map(|take| take.number(window));
        if id.is_some_and(|id| !(self.ids.0..=self.ids.1).contains(&id)) {
            return None;
        }
        Some(Found { after, id, time: self.time.map(|(take, bits)| (take.number(window), bits)) })
    }

    /// The same for events whose fields stay in place.
    pub(super) fn little(&self) -> Option<LittleHeader> {
        let Self { align, ids, bits, .. } = *self;
        let (time, time_bits) = self.time?;
        Some(LittleHeader { align, id: self.id?.little()?, time: time.little()?, time_bits, ids, bits })
    }
}

impl LittleHeader {
    /// Id and time of the event at bit `at`, and the bit behind its header; `None`: do the steps.
    #[inline(always)]
    pub(super) fn read(&self, data: &[u8], at: u64) -> Option<(u64, u64, u64)> {
        let at = (at + self.align) & !self.align;
        let window = window(data, at)?;
        let id = self.id.value::<false>(window);
        let fits = (self.ids.0..=self.ids.1).contains(&id);
        fits.then(|| (id, self.time.value::<false>(window), at.saturating_add(self.bits)))
    }
}

impl Payload {
    /// The shortcut for the steps that read `fields` wanted fields, if they allow one.
    pub(super) fn recognise(ops: &[Op], fields: usize) -> Option<Self> {
        let first = start(ops);
        if !first.rest.is_empty() {
            return None;
        }
        let mut payload = Self {
            align: first.align,
            takes: vec![Take::Word { load: Load::ABSENT, big: false }; fields],
            loads: None,
            tid: None,
            mask: 0,
            bits: first.bits,
        };
        for op in first.fixed {
            let (take, to) = take(op)?;
            match to {
                To::Field(field) => {
                    *payload.takes.get_mut(field as usize)? = take;
                    payload.mask |= 1 << field;
                }
                To::Role(Role::Tid) => payload.tid = Some(take),
                _ => return None,
            }
        }
        // Values behind the last one that is there are not stored: the mask tells that they are absent.
        payload.takes.truncate(64 - payload.mask.leading_zeros() as usize);
        payload.loads = payload.takes.iter().map(|take| take.little()).collect();
        Some(payload)
    }

    /// Its alignment less one, and its length, in bits.
    pub(super) fn extent(&self) -> (u64, u64) {
        (self.align, self.bits)
    }

    /// Where the fields lie if they stay in place, and where the thread does; `None` if they cannot.
    pub(super) fn in_place(&self) -> Option<(InPlace, Load)> {
        let fields = self.takes.iter().enumerate().map(|(field, take)| (self.mask >> field & 1 == 1).then_some(take));
        let load = |take: Option<&Take>| take.map_or(Some(Load::ABSENT), Take::in_place);
        let loads = fields.clone().map(load).collect::<Option<Vec<Load>>>()?;
        let tid = self.tid.map_or(Some(Load::ABSENT), Take::little)?;
        let layout = InPlace::new(&loads, fields.map(|take| take?.content()).collect(), 0)?;
        Some((layout, tid))
    }

    /// Position behind the payload at `at`, if it ends before `end`.
    #[inline]
    pub(super) fn skip(&self, at: u64, end: u64) -> Option<u64> {
        let after = ((at + self.align) & !self.align).checked_add(self.bits)?;
        (after <= end).then_some(after)
    }

    /// Adds the mask and the values to `batch`; returns the thread if the event says it. `None`: do the steps.
    #[inline]
    pub(super) fn read(&self, data: &[u8], at: u64, batch: &mut Batch) -> Option<Option<i32>> {
        let at = (at + self.align) & !self.align;
        let window = window(data, at)?;
        let Batch { values, bytes, .. } = batch;
        let room = values.room(1 + self.takes.len());
        if let Some((mask, room)) = room.split_first_mut() {
            *mask = self.mask;
            match &self.loads {
                Some(loads) => {
                    room.iter_mut().zip(loads).for_each(|(value, load)| *value = load.value::<false>(window));
                }
                None => {
                    let takes = room.iter_mut().zip(&self.takes);
                    takes.for_each(|(value, take)| *value = take.value(window, bytes));
                }
            }
        }
        values.advance(1 + self.takes.len());
        Some(self.tid.map(|tid| tid.number(window) as i32))
    }
}

/// The window at bit `at`, if that is a byte's first.
#[inline(always)]
pub(super) fn window(data: &[u8], at: u64) -> Option<&Window> {
    if at & 7 != 0 {
        return None;
    }
    data.get((at >> 3) as usize..)?.first_chunk()
}

/// What does the same as a step, and what it is for; `None` if it does not fit into a window.
fn take(op: &Op) -> Option<(Take, To)> {
    match *op {
        Op::Int { at, shape, to } => Some((word(at, shape)?, to)),
        Op::Float { at, shape, to } if at.is_multiple_of(8) => {
            let take = if shape.bits == 32 && !shape.bytes_swapped {
                let skip = if shape.high_first { 32 } else { 0 };
                Take::Single { load: Load::new((at / 8) as usize, skip, 32, false)?, big: shape.high_first }
            } else if shape.bits == 64 {
                word(at, shape)?
            } else {
                return None;
            };
            Some((take, to))
        }
        Op::Fixed { at, bytes, text, to } if at.is_multiple_of(8) => {
            let (byte, count) = ((at / 8) as usize, bytes as usize);
            (byte + count <= WINDOW_BYTES).then_some((Take::Bytes { byte, count, text }, to))
        }
        _ => None,
    }
}

/// One load of 8 bytes, where these hold all bits of the integer.
fn word(at: u32, shape: Shape) -> Option<Take> {
    let skip = (at % 8) as u8;
    if shape.bytes_swapped || skip + shape.bits > 64 {
        return None;
    }
    let shift = if shape.high_first { 64 - shape.bits - skip } else { skip };
    Some(Take::Word { load: Load::new((at / 8) as usize, shift, shape.bits, shape.signed)?, big: shape.high_first })
}

impl Take {
    /// The load of an integer whose least significant byte comes first.
    fn little(self) -> Option<Load> {
        if let Take::Word { load, big: false } = self { Some(load) } else { None }
    }

    /// What a field that stays in place is loaded by; `None` if it cannot.
    fn in_place(&self) -> Option<Load> {
        match *self {
            // Of a content only that it is there.
            Take::Bytes { byte, .. } => Load::new(byte, 0, 8, false),
            _ => self.little().filter(Load::has_whole_bytes),
        }
    }

    fn content(&self) -> Option<Content> {
        match *self {
            Take::Bytes { byte, count, text } => Some(Content { offset: byte, size: count, chars: text }),
            _ => None,
        }
    }

    /// The value of what is no text.
    #[inline]
    fn number(self, window: &Window) -> u64 {
        match self {
            Take::Word { load, big: false } => load.value::<false>(window),
            Take::Word { load, big: true } => load.value::<true>(window),
            Take::Single { load, big } => {
                let raw = if big { load.value::<true>(window) } else { load.value::<false>(window) };
                f64::from(f32::from_bits(raw as u32)).to_bits()
            }
            Take::Bytes { .. } => 0,
        }
    }

    #[inline]
    fn value(self, window: &Window, bytes: &mut Vec<u8>) -> u64 {
        let Take::Bytes { byte, count, text } = self else { return self.number(window) };
        let content = &window[byte..byte + count];
        let length = if text { content.iter().position(|byte| *byte == 0) } else { None };
        store(bytes, &content[..length.unwrap_or(content.len())])
    }
}
