// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//! For how long had a VM at least one CPU? One word of each VM says it, which all its vCPUs change at once.

use super::{Emitter, stack};
use crate::asm::{Alu, Label, Reg, When};
use crate::layout::{BUSY_BITS, BUSY_MASK, Word, off};

/// Tries to change the word while other CPUs change it, too.
const MOST_TRIES: i32 = 8;

impl Emitter<'_> {
    /// R0 = the word of the record's VM.
    fn vm(&mut self, none: Label) {
        self.get(Reg::R1, Word::Vm);
        self.asm.store(4, Reg::Fp, stack::KEY, Reg::R1);
        self.lookup(self.maps.vms, stack::KEY);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, none);
    }

    /// One vCPU more of the VM has a CPU, or one less.
    pub(super) fn run(&mut self, comes: bool) {
        let (again, other, done) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.vm(done);
        self.asm.mov(Reg::R5, Reg::R0);
        self.keep(stack::TURNS, 0);
        self.asm.place(again);
        self.asm.load(8, Reg::R0, Reg::R5, 0);
        self.asm.mov(Reg::R2, Reg::R0);
        self.asm.alui(Alu::ShiftRight, Reg::R2, BUSY_BITS as i32);
        self.asm.mov(Reg::R3, Reg::R0);
        self.asm.jump_ifi(When::Differs, Reg::R2, i32::from(!comes), other);
        // The first one comes, the last one goes.
        self.asm.alu(if comes { Alu::Sub } else { Alu::Add }, Reg::R3, Reg::R8);
        self.asm.place(other);
        self.asm.wide(Reg::R4, BUSY_MASK);
        self.asm.alu(Alu::And, Reg::R3, Reg::R4);
        let none = self.asm.label();
        if comes {
            self.asm.alui(Alu::Add, Reg::R2, 1);
        } else {
            self.asm.jump_ifi(When::Equal, Reg::R2, 0, none);
            self.asm.alui(Alu::Sub, Reg::R2, 1);
        }
        self.asm.place(none);
        self.asm.alui(Alu::ShiftLeft, Reg::R2, BUSY_BITS as i32);
        self.asm.alu(Alu::Or, Reg::R3, Reg::R2);
        self.asm.mov(Reg::R4, Reg::R0);
        self.asm.compare_exchange(Reg::R5, 0, Reg::R3);
        self.asm.jump_if(When::Equal, Reg::R0, Reg::R4, done);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::TURNS);
        self.asm.alui(Alu::Add, Reg::R1, 1);
        self.asm.store(8, Reg::Fp, stack::TURNS, Reg::R1);
        self.asm.jump_ifi(When::Below, Reg::R1, MOST_TRIES, again);
        self.asm.place(done);
    }

    /// R2 = for how long it had one up to R8, modulo; 0 where it has no VM.
    pub(super) fn busy(&mut self) {
        let (none, idle) = (self.asm.label(), self.asm.label());
        self.vm(none);
        self.asm.load(8, Reg::R2, Reg::R0, 0);
        self.asm.mov(Reg::R1, Reg::R2);
        self.asm.alui(Alu::ShiftRight, Reg::R1, BUSY_BITS as i32);
        self.asm.jump_ifi(When::Equal, Reg::R1, 0, idle);
        self.asm.alu(Alu::Add, Reg::R2, Reg::R8);
        self.asm.place(idle);
        self.asm.wide(Reg::R1, BUSY_MASK);
        self.asm.alu(Alu::And, Reg::R2, Reg::R1);
        self.asm.mov(Reg::R0, Reg::R2);
        self.asm.place(none);
        self.asm.mov(Reg::R2, Reg::R0);
    }

    pub(super) fn leave(&mut self) {
        self.run(false);
        self.busy();
        self.set(Word::BusyFrom, Reg::R2);
    }

    /// How long another vCPU of the VM had a CPU while this one waited. Of a sleep the wait begins where it was woken, unless that was on its way
    /// off the CPU.
    pub(super) fn tear(&mut self) {
        let left = self.asm.label();
        self.busy();
        self.get(Reg::R3, Word::BusyFrom);
        self.get(Reg::R1, Word::Off);
        self.asm.jump_ifi(When::Differs, Reg::R1, off::WAKING as i32, left);
        self.get(Reg::R1, Word::Woken);
        self.get(Reg::R4, Word::Since);
        self.asm.jump_if(When::Differs, Reg::R1, Reg::R4, left);
        self.get(Reg::R3, Word::BusyWoken);
        self.asm.place(left);
        self.asm.alu(Alu::Sub, Reg::R2, Reg::R3);
        self.asm.wide(Reg::R1, BUSY_MASK);
        self.asm.alu(Alu::And, Reg::R2, Reg::R1);
        self.get(Reg::R1, Word::TornNs);
        self.asm.alu(Alu::Add, Reg::R1, Reg::R2);
        self.set(Word::TornNs, Reg::R1);
    }
}
