//! Does the steps of a [`Program`](super::program::Program) on the bytes of a packet.

use super::bits::Shape;
use super::fast::{Header, Payload};
use super::model::Role;
use super::program::{Arm, Count, Op, To, order_key};
use crate::Batch;
use std::io::Write;

/// Why an event could not be read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It reaches beyond the content of its packet.
    Short,
    /// A variant's selector has a value that selects nothing.
    NoChoice,
    /// Endless repetition of nothing.
    Empty,
}

/// A place in a packet and what was read on the way to it.
pub(super) struct Machine<'d> {
    data: &'d [u8],
    /// Bits from the start of the packet.
    pub at: u64,
    /// First bit behind the content.
    pub end: u64,
    registers: Vec<u64>,
    roles: [u64; Role::COUNT],
    /// Where each role was read last, and how.
    places: [(u64, Shape); Role::COUNT],
    seen: u32,
    /// Ticks of the stream's clock, extended to 64 bits.
    pub ticks: u64,
    /// Where the values of the current event start in the batch.
    values_at: usize,
    pub mask: u64,
    /// Repetitions left that read nothing.
    fuel: u64,
}

/// Repetitions that read nothing, per packet and beside as many as the packet has bits.
const FREE_REPETITIONS: u64 = 1 << 20;

impl<'d> Machine<'d> {
    /// A machine at the start of a packet whose bytes are `data`.
    pub(super) fn new(data: &'d [u8], registers: usize) -> Self {
        let end = data.len() as u64 * 8;
        let nowhere = (0, Shape { bits: 0, signed: false, high_first: false, bytes_swapped: false });
        Self {
            data,
            at: 0,
            end,
            registers: vec![0; registers],
            roles: [0; Role::COUNT],
            places: [nowhere; Role::COUNT],
            seen: 0,
            ticks: 0,
            values_at: 0,
            mask: 0,
            fuel: end + FREE_REPETITIONS,
        }
    }

    pub(super) fn data(&self) -> &'d [u8] {
        self.data
    }

    /// What was read for `role`.
    #[inline]
    pub(super) fn role(&self, role: Role) -> Option<u64> {
        (self.seen >> role as u32 & 1 == 1).then(|| self.roles[role as usize])
    }

    /// Where `role` stands, and in which shape.
    pub(super) fn place(&self, role: Role) -> Option<(u64, Shape)> {
        let place = self.places[role as usize];
        (self.seen >> role as u32 & 1 == 1 && place.1.bits > 0).then_some(place)
    }

    /// Forgets what was read for `role`.
    #[inline]
    pub(super) fn forget(&mut self, role: Role) {
        self.seen &= !(1 << role as u32);
    }

    /// Reads an event header by its shortcut; returns the id if the header has one. `None`: do the steps.
    #[inline]
    pub(super) fn take_header(&mut self, header: &Header) -> Option<Option<u64>> {
        let found = header.read(self.data, self.at, self.end)?;
        self.at = found.after;
        if let Some((time, bits)) = found.time {
            self.ticks = extended(self.ticks, time, bits);
        }
        Some(found.id)
    }

    /// Passes over a payload of fixed size.
    ///
    /// # Errors
    /// If the packet ends before it.
    #[inline]
    pub(super) fn pass(&mut self, payload: &Payload) -> Result<(), Stop> {
        self.at = payload.skip(self.at, self.end).ok_or(Stop::Short)?;
        Ok(())
    }

    /// Reads a payload by its shortcut; returns the thread if the event says it. `None`: do the steps.
    #[inline]
    pub(super) fn take_payload(&mut self, payload: &Payload, batch: &mut Batch) -> Option<Option<i32>> {
        let after = payload.skip(self.at, self.end)?;
        let tid = payload.read(self.data, self.at, batch)?;
        self.at = after;
        Some(tid)
    }

    /// Makes room for the mask and `fields` values of an event.
    #[inline]
    pub(super) fn begin(&mut self, batch: &mut Batch, fields: usize) {
        batch.values.room(1 + fields)[..=fields].fill(0);
        batch.values.advance(1 + fields);
        self.values_at = batch.values.len() - fields;
        self.mask = 0;
    }

    /// Does `ops`; what they read for fields goes into `batch`.
    ///
    /// # Errors
    /// If the packet ends before the steps do, or a selector selects nothing.
    pub(super) fn run(&mut self, ops: &[Op], batch: &mut Batch) -> Result<(), Stop> {
        for op in ops {
            match op {
                Op::Int { at, shape, to } => {
                    let place = self.at + u64::from(*at);
                    let value = shape.read(self.data, place);
                    self.put(*to, value, place, *shape, batch);
                }
                Op::Advance(bits) => self.advance(*bits)?,
                Op::Align(bits) => {
                    let mask = u64::from(*bits) - 1;
                    self.at = (self.at + mask) & !mask;
                }
                Op::Fixed { at, bytes, text, to } => {
                    let from = ((self.at + u64::from(*at)) >> 3) as usize;
                    let content = self.data.get(from..).unwrap_or_default();
                    let content = &content[..content.len().min(*bytes as usize)];
                    self.put_bytes(&[*to], content, *text, batch);
                }
                Op::Switch { register, arms, must_match } => {
                    let value = self.registers[*register as usize];
                    let holds = |arm: &&Arm| {
                        let key = order_key(value, arm.signed);
                        arm.ranges.iter().any(|(first, last)| (*first..=*last).contains(&key))
                    };
                    match arms.iter().find(holds) {
                        Some(arm) => self.run(&arm.body, batch)?,
                        None if *must_match => return Err(Stop::NoChoice),
                        None => {}
                    }
                }
                Op::Float { at, shape, to } => {
                    let place = self.at + u64::from(*at);
                    let raw = shape.read(self.data, place);
                    let number = match shape.bits {
                        32 => f64::from(f32::from_bits(raw as u32)),
                        _ => f64::from_bits(raw),
                    };
                    if *to == To::Print {
                        // Writing to memory does not fail.
                        let _ = write!(batch.bytes, "{number}");
                    } else {
                        self.put(*to, number.to_bits(), place, *shape, batch);
                    }
                }
                Op::AdvanceTimes(count, bits) => {
                    let bits = self.count(*count).checked_mul(*bits).ok_or(Stop::Short)?;
                    self.advance(bits)?;
                }
                Op::Leb { signed, to } => self.leb(*signed, to, batch)?,
                Op::Text { unit, big, to } => self.text(*unit, *big, to, batch)?,
                Op::Counted { bytes, text, to } => {
                    let from = (self.at >> 3) as usize;
                    let count = self.count(*bytes);
                    self.advance(count.checked_mul(8).ok_or(Stop::Short)?)?;
                    // `advance` has shown that the bytes are there.
                    self.put_bytes(to, &self.data[from..from + count as usize], *text, batch);
                }
                Op::Repeat { count, body, list } => self.repeat(self.count(*count), body, *list, batch)?,
                Op::Literal(words) => batch.bytes.extend_from_slice(words.as_bytes()),
                Op::Printed { fields, body } => {
                    let from = batch.bytes.len();
                    self.run(body, batch)?;
                    let handle = (from as u64) << 32 | (batch.bytes.len() - from) as u64;
                    for field in fields {
                        self.put_field(*field, handle, batch);
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn advance(&mut self, bits: u64) -> Result<(), Stop> {
        self.at = self.at.checked_add(bits).filter(|at| *at <= self.end).ok_or(Stop::Short)?;
        Ok(())
    }

    #[inline]
    fn count(&self, count: Count) -> u64 {
        match count {
            Count::Is(count) => count,
            Count::Register(register) => self.registers[register as usize],
        }
    }

    fn repeat(&mut self, count: u64, body: &[Op], list: bool, batch: &mut Batch) -> Result<(), Stop> {
        for n in 0..count {
            let before = self.at;
            if list && n > 0 {
                batch.bytes.extend_from_slice(b", ");
            }
            self.run(body, batch)?;
            if self.at == before {
                self.fuel = self.fuel.checked_sub(1).ok_or(Stop::Empty)?;
            }
            // Steps that only read do not notice the end by themselves.
            if self.at > self.end {
                return Err(Stop::Short);
            }
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, to: To, value: u64, place: u64, shape: Shape, batch: &mut Batch) {
        match to {
            To::Field(field) => self.put_field(field, value, batch),
            To::Register(register) => self.registers[register as usize] = value,
            To::Time => self.ticks = extended(self.ticks, value, shape.bits),
            To::Role(role) => {
                self.roles[role as usize] = value;
                self.places[role as usize] = (place, shape);
                self.seen |= 1 << role as u32;
            }
            To::Print => print(value, shape.signed, batch),
            To::Char => batch.bytes.push(value as u8),
        }
    }

    #[inline]
    fn put_field(&mut self, field: u32, value: u64, batch: &mut Batch) {
        batch.values[self.values_at + field as usize] = value;
        self.mask |= 1 << field;
    }

    fn put_bytes(&mut self, to: &[To], content: &[u8], text: bool, batch: &mut Batch) {
        let content = match memchr::memchr(0, content) {
            Some(end) if text => &content[..end],
            _ => content,
        };
        for to in to {
            match to {
                To::Field(field) => {
                    let handle = batch.handle(content);
                    self.put_field(*field, handle, batch);
                }
                To::Print if text => {
                    batch.bytes.push(b'"');
                    batch.bytes.extend_from_slice(content);
                    batch.bytes.push(b'"');
                }
                To::Print => {
                    for byte in content {
                        // Writing to memory does not fail.
                        let _ = write!(batch.bytes, "{byte:02x}");
                    }
                }
                To::Register(_) | To::Role(_) | To::Time | To::Char => {}
            }
        }
    }

    /// LEB128 as CTF2-SPEC-2.0 section 6.4 and DWARF 5 section 7.6 have it; bits beyond 64 are dropped.
    fn leb(&mut self, signed: bool, to: &[To], batch: &mut Batch) -> Result<(), Stop> {
        let place = self.at;
        let (mut value, mut bits) = (0u64, 0u32);
        loop {
            let byte = self.data.get((self.at >> 3) as usize).copied().ok_or(Stop::Short)?;
            self.advance(8)?;
            if bits < 64 {
                value |= u64::from(byte & 0x7F) << bits;
            }
            bits = bits.saturating_add(7);
            if byte & 0x80 == 0 {
                if signed && byte & 0x40 != 0 && bits < 64 {
                    value |= u64::MAX << bits;
                }
                break;
            }
        }
        let shape = Shape { bits: bits.min(64) as u8, signed, high_first: false, bytes_swapped: false };
        for to in to {
            self.put(*to, value, place, shape, batch);
            if let To::Role(role) = to {
                // A value of other length would not fit into its place.
                self.places[*role as usize].1.bits = 0;
            }
        }
        Ok(())
    }

    fn text(&mut self, unit: u8, big: bool, to: &[To], batch: &mut Batch) -> Result<(), Stop> {
        let (from, end) = ((self.at >> 3) as usize, (self.end >> 3) as usize);
        let rest = self.data.get(from..end).ok_or(Stop::Short)?;
        let length = match unit {
            1 => memchr::memchr(0, rest),
            _ => rest.chunks_exact(usize::from(unit)).position(|unit| unit.iter().all(|byte| *byte == 0)),
        };
        let length = length.ok_or(Stop::Short)? * usize::from(unit);
        self.advance((length as u64 + u64::from(unit)) * 8)?;
        match (unit, to.is_empty()) {
            (_, true) => {}
            (1, _) => self.put_bytes(to, &rest[..length], true, batch),
            _ => self.put_bytes(to, wide_text(&rest[..length], unit, big).as_bytes(), true, batch),
        }
        Ok(())
    }
}

/// The next time whose low `bits` are `value`: a stamp that is smaller than the one before has wrapped once.
#[inline]
pub(super) fn extended(before: u64, value: u64, bits: u8) -> u64 {
    let range_less_one = u64::MAX >> (64 - u32::from(bits.clamp(1, 64)));
    let low = before & range_less_one;
    let time = (before - low).wrapping_add(value);
    if value < low { time.wrapping_add(range_less_one).wrapping_add(1) } else { time }
}

fn print(value: u64, signed: bool, batch: &mut Batch) {
    // Writing to memory does not fail.
    let _ = if signed { write!(batch.bytes, "{}", value as i64) } else { write!(batch.bytes, "{value}") };
}

/// UTF-16 or UTF-32 as UTF-8.
fn wide_text(bytes: &[u8], unit: u8, big: bool) -> String {
    let order = if big { crate::format::Endian::Big } else { crate::format::Endian::Little };
    let units = bytes.chunks_exact(usize::from(unit)).map(|unit| order.unsigned(unit) as u32);
    match unit {
        2 => char::decode_utf16(units.map(|unit| unit as u16))
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect(),
        _ => units.map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)).collect(),
    }
}
