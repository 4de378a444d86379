//! Integers, floating-point numbers, text and bytes.

use super::references::Node;
use super::{Compiler, Use};
use crate::ctf::bits::Shape;
use crate::ctf::model::{Float, Integer, Leb, Length, Role, Scope};
use crate::ctf::program::{Count, Op, To};
use crate::facts::FieldKind;
use crate::format::Endian;

/// So many names of values weigh as much as a field when the size of an event's description is bounded.
const LABELS_PER_CLASS: usize = 16;

impl Compiler<'_> {
    pub(super) fn float(&mut self, float: &Float, usage: &Use) -> Node {
        self.body.align(float.align);
        let at = self.body.place();
        let mut shape = Shape::new(float.bits, false, float.order);
        shape.high_first ^= float.swapped;
        shape.bytes_swapped = float.swapped;
        if let Some(to) = self.purpose(usage, FieldKind::Float, &[]) {
            self.emit(Op::Float { at, shape, to });
        }
        self.body.at += u64::from(float.bits);
        Node::Nothing
    }

    /// Text up to a NUL.
    pub(super) fn text(&mut self, unit: u8, order: Endian, usage: &Use) -> Node {
        self.body.align(8);
        self.body.rebase();
        let to = self.purpose(usage, FieldKind::Text, &[]).into_iter().collect();
        self.emit(Op::Text { unit, big: order == Endian::Big, to });
        self.body.base = 8;
        Node::Nothing
    }

    pub(super) fn integer(&mut self, integer: &Integer, name: &str, usage: &Use) -> Result<Node, String> {
        self.classes += integer.labels.len() / LABELS_PER_CLASS;
        self.body.align(integer.align);
        let at = self.body.place();
        let mut shape = Shape::new(integer.bits, integer.signed, integer.order);
        shape.high_first ^= integer.swapped;
        shape.bytes_swapped = integer.swapped;
        let mut roles = self.roles(name, &integer.roles);
        // A mapped integer in an event header is its time, whatever its name.
        if self.scope == Scope::EventHeader && integer.clock.is_some() && roles.is_empty() {
            roles.push(Role::Time);
        }
        for role in roles {
            let to = self.role_purpose(role, integer.bits, integer.clock.as_ref());
            self.emit(Op::Int { at, shape, to });
        }
        let kind = if integer.signed { FieldKind::Signed } else { FieldKind::Unsigned };
        if let Some(to) = self.purpose(usage, kind, &integer.labels) {
            let to = if to == To::Print && integer.text { To::Char } else { to };
            self.emit(Op::Int { at, shape, to });
        }
        let register = self.register();
        self.emit(Op::Int { at, shape, to: To::Register(register) });
        self.body.at += u64::from(integer.bits);
        Ok(Node::Integer { register, signed: integer.signed, labels: integer.labels.as_slice().into() })
    }

    pub(super) fn leb(&mut self, leb: &Leb, name: &str, usage: &Use) -> Result<Node, String> {
        self.body.align(8);
        self.body.rebase();
        let register = self.register();
        let mut to = vec![To::Register(register)];
        for role in self.roles(name, &leb.roles) {
            // Its length varies, so it may be as short as one byte.
            to.push(self.role_purpose(role, 7, None));
        }
        let kind = if leb.signed { FieldKind::Signed } else { FieldKind::Unsigned };
        to.extend(self.purpose(usage, kind, &leb.labels));
        self.emit(Op::Leb { signed: leb.signed, to });
        self.body.base = 8;
        Ok(Node::Integer { register, signed: leb.signed, labels: leb.labels.as_slice().into() })
    }

    pub(super) fn counted(&mut self, length: &Length, text: bool, usage: &Use) -> Result<Node, String> {
        self.body.align(8);
        let kind = if text { FieldKind::Text } else { FieldKind::Bytes };
        let purpose = self.purpose(usage, kind, &[]);
        let count = self.count(length)?;
        match count {
            Count::Is(bytes) if bytes < 1 << 24 => {
                let at = self.body.place();
                if let Some(to) = purpose {
                    self.emit(Op::Fixed { at, bytes: bytes as u32, text, to });
                }
                self.body.at += bytes * 8;
            }
            bytes => {
                self.body.rebase();
                self.emit(Op::Counted { bytes, text, to: purpose.into_iter().collect() });
                self.body.base = 8;
            }
        }
        Ok(Node::Nothing)
    }
}
