//! The steps that read one event, compiled once per kind of event.
//!
//! ```text
//! Class tree --compile--> Program: all fields --select--> steps for the wanted fields, the rest one addition
//!
//! base                        base
//!  |  Int at 0 | Int at 32 | ... | Advance 96 | Text ... | Int at 0 ...
//! ```
//! Steps of fixed size stand at fixed distances from a base; `Advance`, `Align` and everything of unknown length move
//! the base. So a payload of fixed size costs one step to pass over, whatever it holds.

use super::bits::Shape;
use super::model::Role;
use crate::FieldType;

/// One step. Positions (`at`) are bits from the base.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Op {
    /// Moves the base up to a multiple of so many bits.
    Align(u32),
    /// Moves the base.
    Advance(u64),
    /// Moves the base so many times.
    AdvanceTimes(Count, u64),
    Int {
        at: u32,
        shape: Shape,
        to: To,
    },
    /// Reads a floating-point number of 32 or 64 bits.
    Float {
        at: u32,
        /// Its bits as an integer.
        shape: Shape,
        to: To,
    },
    /// Reads bytes of fixed number.
    Fixed {
        at: u32,
        bytes: u32,
        /// True for text, which may end earlier at a NUL.
        text: bool,
        to: To,
    },
    /// Reads a LEB128 integer at the base and moves the base behind it.
    Leb {
        /// True for two's complement.
        signed: bool,
        /// What for; an integer can serve several purposes.
        to: Vec<To>,
    },
    /// Reads text up to a NUL and moves the base behind that.
    Text {
        /// Bytes of a code unit.
        unit: u8,
        /// True if code units have their high byte first.
        big: bool,
        /// What for; empty: only to pass over it.
        to: Vec<To>,
    },
    /// Reads so many bytes and moves the base behind them.
    Counted {
        bytes: Count,
        text: bool,
        /// What for; empty: only to pass over them.
        to: Vec<To>,
    },
    /// Does the same steps several times.
    Repeat {
        count: Count,
        body: Vec<Op>,
        /// True if what they print is a list.
        list: bool,
    },
    /// Does the steps of the arm whose range holds the register's value.
    Switch {
        register: u32,
        arms: Vec<Arm>,
        /// True if no arm is an error (a variant), false if it means nothing is there (an optional field).
        must_match: bool,
    },
    /// Prints these words.
    Literal(String),
    /// What the steps print is the value of fields.
    Printed {
        /// The fields, numbered as in [`To::Field`].
        fields: Vec<u32>,
        /// The steps; they move the base behind what they read.
        body: Vec<Op>,
    },
}

/// One arm of a [`Op::Switch`].
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arm {
    /// First and last value, both inside, as [`order_key`] makes them.
    pub ranges: Vec<(u64, u64)>,
    pub body: Vec<Op>,
    /// True if register values are signed.
    pub signed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// Always so many.
    Is(u64),
    Register(u32),
}

/// What a value is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// Field so and so; before [`Program::select`] its position in [`Program::fields`], after it in the request.
    Field(u32),
    /// A later step needs it.
    Register(u32),
    /// The reader needs it.
    Role(Role),
    /// It is the time of the event, as many bits of it as it has.
    Time,
    /// It is printed as part of a field.
    Print,
    /// It is a character of a text that is part of a field.
    Char,
}

/// A value for which unsigned order is the value's own order.
#[inline]
pub(super) fn order_key(value: u64, signed: bool) -> u64 {
    if signed { value ^ 1 << 63 } else { value }
}

/// All steps of a part of a packet or event.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    pub ops: Vec<Op>,
    /// The fields that `To::Field` refers to, in the order in which they are read.
    pub fields: Vec<FieldType>,
    /// So many of them belong to contexts.
    pub(crate) context_fields: usize,
}

impl Program {
    /// The fields as the user sees them: the payload's first.
    pub(super) fn shown_fields(&self) -> Vec<FieldType> {
        let (context, payload) = self.fields.split_at(self.context_fields);
        [payload, context].concat()
    }

    /// Position in `fields` of a field that the user sees at `shown`.
    pub(super) fn position(&self, shown: usize) -> usize {
        (shown + self.context_fields) % self.fields.len().max(1)
    }

    /// The steps that are left if of all fields only these are wanted: per wanted field its position in `fields`.
    ///
    /// Registers and roles stay. What stands between is passed over in one step, as far as its size is fixed.
    pub(super) fn select(&self, wanted: &[Option<usize>]) -> Vec<Op> {
        let mut kept = Kept { wanted, ops: Vec::new(), pending: 0 };
        kept.take(&self.ops);
        kept.finish()
    }
}

struct Kept<'w> {
    wanted: &'w [Option<usize>],
    ops: Vec<Op>,
    /// Bits by which the base of the old steps is ahead of that of the new ones.
    pending: u64,
}

impl Kept<'_> {
    fn finish(mut self) -> Vec<Op> {
        self.settle();
        self.ops
    }

    /// Moves the new base to the old one.
    fn settle(&mut self) {
        if self.pending > 0 {
            self.ops.push(Op::Advance(self.pending));
            self.pending = 0;
        }
    }

    fn push(&mut self, op: Op) {
        self.settle();
        self.ops.push(op);
    }

    /// Places of the request that a field answers.
    fn places(&self, field: u32) -> impl Iterator<Item = u32> {
        let wanted = self.wanted.iter().enumerate();
        wanted.filter(move |(_, at)| **at == Some(field as usize)).map(|(place, _)| place as u32)
    }

    /// What a value is still needed for. What a printed field is made of is not, if the field is not.
    fn uses(&self, to: To) -> Vec<To> {
        match to {
            To::Field(field) => self.places(field).map(To::Field).collect(),
            To::Print | To::Char => Vec::new(),
            To::Register(_) | To::Role(_) | To::Time => vec![to],
        }
    }

    /// Position of a step from the new base.
    fn ahead(&mut self, at: u32) -> u32 {
        match u32::try_from(self.pending).ok().and_then(|pending| pending.checked_add(at)) {
            Some(at) => at,
            None => {
                self.settle();
                at
            }
        }
    }

    /// The steps of `body` that are left, as a list of their own.
    fn inner(&self, body: &[Op]) -> Vec<Op> {
        let mut inner = Kept { wanted: self.wanted, ops: Vec::new(), pending: 0 };
        inner.take(body);
        inner.finish()
    }

    fn take(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Align(_) => self.push(op.clone()),
                Op::Advance(bits) => self.pending = self.pending.saturating_add(*bits),
                Op::AdvanceTimes(Count::Is(count), bits) => {
                    self.pending = self.pending.saturating_add(count.saturating_mul(*bits));
                }
                Op::AdvanceTimes(Count::Register(_), _) => self.push(op.clone()),
                Op::Int { at, shape, to } => {
                    for to in self.uses(*to) {
                        let at = self.ahead(*at);
                        self.ops.push(Op::Int { at, shape: *shape, to });
                    }
                }
                Op::Float { at, shape, to } => {
                    for to in self.uses(*to) {
                        let at = self.ahead(*at);
                        self.ops.push(Op::Float { at, shape: *shape, to });
                    }
                }
                Op::Fixed { at, bytes, text, to } => {
                    for to in self.uses(*to) {
                        let at = self.ahead(*at);
                        self.ops.push(Op::Fixed { at, bytes: *bytes, text: *text, to });
                    }
                }
                Op::Leb { signed, to } => {
                    let to = to.iter().flat_map(|to| self.uses(*to)).collect();
                    self.push(Op::Leb { signed: *signed, to });
                }
                Op::Text { unit, big, to } => {
                    let to = to.iter().flat_map(|to| self.uses(*to)).collect();
                    self.push(Op::Text { unit: *unit, big: *big, to });
                }
                Op::Counted { bytes, text, to } => {
                    let to: Vec<To> = to.iter().flat_map(|to| self.uses(*to)).collect();
                    match (bytes, to.is_empty()) {
                        (Count::Is(count), true) => self.pending = self.pending.saturating_add(count.saturating_mul(8)),
                        (_, true) => self.push(Op::AdvanceTimes(*bytes, 8)),
                        _ => self.push(Op::Counted { bytes: *bytes, text: *text, to }),
                    }
                }
                Op::Repeat { count, body, .. } => match (count, self.inner(body).as_slice()) {
                    (_, []) => {}
                    (Count::Is(count), [Op::Advance(bits)]) => {
                        self.pending = self.pending.saturating_add(count.saturating_mul(*bits));
                    }
                    (_, [Op::Advance(bits)]) => self.push(Op::AdvanceTimes(*count, *bits)),
                    (_, steps) => self.push(Op::Repeat { count: *count, body: steps.to_vec(), list: false }),
                },
                Op::Switch { register, arms, must_match } => {
                    let arm = |arm: &Arm| Arm { body: self.inner(&arm.body), ..arm.clone() };
                    let arms = arms.iter().map(arm).collect();
                    self.push(Op::Switch { register: *register, arms, must_match: *must_match });
                }
                Op::Literal(_) => {}
                Op::Printed { fields, body } => {
                    let fields: Vec<u32> = fields.iter().flat_map(|field| self.places(*field)).collect();
                    if fields.is_empty() {
                        self.take(body);
                    } else {
                        self.push(Op::Printed { fields, body: body.clone() });
                    }
                }
            }
        }
    }
}
