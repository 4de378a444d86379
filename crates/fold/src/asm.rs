// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//! Instructions of BPF, as a program writes them down, with jumps to labels.
//!
//! Source: Documentation/bpf/standardization/instruction-set.rst, Linux 6.12.

/// A register. R0 is what helpers return, R1 to R5 what they are given and spoil, R6 to R9 survive them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    /// The stack, which grows down from here.
    Fp,
}

/// A place to jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// What two registers, or a register and a number, become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Move = 0xb0,
}

/// When to jump. Numbers are without a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Equal = 0x10,
    Above = 0x20,
    AtLeast = 0x30,
    AnyBit = 0x40,
    Differs = 0x50,
    Below = 0xa0,
    AtMost = 0xb0,
}

/// Helpers of the kernel (include/uapi/linux/bpf.h, Linux 4.7 and later).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Helper {
    MapLookup = 1,
    MapUpdate = 2,
    /// CLOCK_MONOTONIC, which is the trace clock `mono`.
    Time = 5,
    Cpu = 8,
    PidTgid = 14,
}

/// A program that is being written.
#[derive(Debug, Default)]
pub(crate) struct Asm {
    code: Vec<[u8; 8]>,
    places: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

/// Bytes of an access, as the instruction says it.
fn width(bytes: u8) -> u8 {
    match bytes {
        1 => 0x10,
        2 => 0x08,
        4 => 0x00,
        _ => 0x18,
    }
}

impl Asm {
    fn push(&mut self, operation: u8, to: Reg, from: Reg, offset: i16, number: i32) {
        let (offset, number) = (offset.to_le_bytes(), number.to_le_bytes());
        let registers = to as u8 | (from as u8) << 4;
        self.code.push([operation, registers, offset[0], offset[1], number[0], number[1], number[2], number[3]]);
    }

    /// `to` op= `from`, in 64 bits.
    pub(crate) fn alu(&mut self, op: Alu, to: Reg, from: Reg) {
        self.push(op as u8 | 0x0f, to, from, 0, 0);
    }

    /// `to` op= a number.
    pub(crate) fn alui(&mut self, op: Alu, to: Reg, number: i32) {
        self.push(op as u8 | 0x07, to, Reg::R0, 0, number);
    }

    /// `to` = `from`.
    pub(crate) fn mov(&mut self, to: Reg, from: Reg) {
        self.alu(Alu::Move, to, from);
    }

    /// `to` = a number.
    pub(crate) fn movi(&mut self, to: Reg, number: i32) {
        self.alui(Alu::Move, to, number);
    }

    /// `to` = a number of 64 bits.
    pub(crate) fn wide(&mut self, to: Reg, number: u64) {
        self.push(0x18, to, Reg::R0, 0, number as u32 as i32);
        self.push(0, Reg::R0, Reg::R0, 0, (number >> 32) as u32 as i32);
    }

    /// `to` = the address of a map.
    pub(crate) fn map(&mut self, to: Reg, descriptor: i32) {
        // BPF_PSEUDO_MAP_FD is 1.
        self.push(0x18, to, Reg::R1, 0, descriptor);
        self.push(0, Reg::R0, Reg::R0, 0, 0);
    }

    /// `to` = what lies at `from` + `offset`.
    pub(crate) fn load(&mut self, bytes: u8, to: Reg, from: Reg, offset: i16) {
        self.push(0x61 | width(bytes), to, from, offset, 0);
    }

    /// What lies at `to` + `offset` = `from`.
    pub(crate) fn store(&mut self, bytes: u8, to: Reg, offset: i16, from: Reg) {
        self.push(0x63 | width(bytes), to, from, offset, 0);
    }

    /// What lies at `to` + `offset` = a number, in 64 bits.
    pub(crate) fn storei(&mut self, to: Reg, offset: i16, number: i32) {
        self.push(0x7a, to, Reg::R0, offset, number);
    }

    /// Adds `from` to what lies there, at once, and `from` becomes what was there (Linux 5.12).
    pub(crate) fn fetch_add(&mut self, to: Reg, offset: i16, from: Reg) {
        self.push(0xdb, to, from, offset, 0x01);
    }

    /// Sets bits of what lies there, at once (Linux 5.12).
    pub(crate) fn atomic_or(&mut self, to: Reg, offset: i16, from: Reg) {
        self.push(0xdb, to, from, offset, 0x40);
    }

    /// If what lies there is R0, it becomes `from`; R0 becomes what was there (Linux 5.12).
    pub(crate) fn compare_exchange(&mut self, to: Reg, offset: i16, from: Reg) {
        self.push(0xdb, to, from, offset, 0xf1);
    }

    pub(crate) fn call(&mut self, helper: Helper) {
        self.push(0x85, Reg::R0, Reg::R0, 0, helper as i32);
    }

    /// Ends the program.
    pub(crate) fn exit(&mut self) {
        self.movi(Reg::R0, 0);
        self.push(0x95, Reg::R0, Reg::R0, 0, 0);
    }

    /// A label that is to be placed.
    pub(crate) fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// The label is here.
    pub(crate) fn place(&mut self, label: Label) {
        self.places[label.0] = Some(self.code.len());
    }

    pub(crate) fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x05, Reg::R0, Reg::R0, 0, 0);
    }

    pub(crate) fn jump_if(&mut self, when: When, a: Reg, b: Reg, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(when as u8 | 0x0d, a, b, 0, 0);
    }

    /// The same with a number, which is extended by its sign.
    pub(crate) fn jump_ifi(&mut self, when: When, a: Reg, number: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(when as u8 | 0x05, a, Reg::R0, 0, number);
    }

    /// The program, its jumps resolved. `None`: a label has no place, or lies too far away.
    pub(crate) fn finish(mut self) -> Option<Vec<[u8; 8]>> {
        for (at, label) in &self.jumps {
            let place = self.places[label.0]?;
            let offset = i16::try_from(place as i64 - *at as i64 - 1).ok()?;
            self.code[*at][2..4].copy_from_slice(&offset.to_le_bytes());
        }
        Some(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_encoded_as_the_standard_says_and_jumps_find_their_labels() {
        let mut asm = Asm::default();
        let (end, nowhere) = (asm.label(), asm.label());
        asm.load(4, Reg::R1, Reg::R6, 8);
        asm.jump_ifi(When::Equal, Reg::R1, -1, end);
        asm.wide(Reg::R2, 0x1_0000_0002);
        asm.fetch_add(Reg::R7, 16, Reg::R3);
        asm.place(end);
        asm.exit();
        let code = asm.finish().unwrap();
        assert_eq!(code[0], [0x61, 0x61, 8, 0, 0, 0, 0, 0]);
        assert_eq!(code[1], [0x15, 0x01, 3, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!((code[2][4], code[3][4]), (2, 1));
        assert_eq!(code[4], [0xdb, 0x37, 16, 0, 1, 0, 0, 0]);
        assert_eq!(code[6], [0x95, 0, 0, 0, 0, 0, 0, 0]);
        let mut asm = Asm::default();
        asm.label();
        asm.jump(nowhere);
        assert_eq!(asm.places.len(), 1, "a label of another program");
        let mut asm = Asm::default();
        let nowhere = asm.label();
        asm.jump(nowhere);
        assert_eq!(asm.finish(), None);
    }
}
