// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//! Conditions and actions of the rules as instructions; each does what `interpret` does under the same name.

use super::{Emitter, shared, stack};
use crate::asm::{Alu, Label, Reg, When};
use crate::event::CASE_BITS;
use crate::layout::{
    BINS, MOST_ROWS, NS_AT, ROW_BINS_AT, RowWord, STATE_ROOM, Shared, State, VMM_CLASS, WAKE_BINS_AT, Word, irq, off,
};
use crate::rules::{Action, Guard, HALTS, VMX};

impl Emitter<'_> {
    pub(super) fn guard(&mut self, guard: Guard, skip: Label) {
        match guard {
            Guard::Is(word, value) => {
                self.get(Reg::R1, word);
                self.asm.jump_ifi(When::Differs, Reg::R1, value as i32, skip);
            }
            Guard::Argument(value) => {
                self.asm.mov(Reg::R1, Reg::R9);
                self.asm.alui(Alu::And, Reg::R1, (1 << CASE_BITS) - 1);
                self.asm.jump_ifi(When::Differs, Reg::R1, value as i32, skip);
            }
            Guard::ExitsFire => {
                self.shared(skip);
                self.asm.load(8, Reg::R1, Reg::R0, shared(Shared::SeenExit));
                self.asm.jump_ifi(When::Equal, Reg::R1, 0, skip);
            }
        }
    }

    pub(super) fn action(&mut self, action: Action) {
        match action {
            Action::Set(word, value) => self.seti(word, value as i32),
            Action::SetBit(word, bit) => {
                self.get(Reg::R1, word);
                self.asm.alui(Alu::Or, Reg::R1, bit as i32);
                self.set(word, Reg::R1);
            }
            Action::ClearBit(word, bit) => {
                self.get(Reg::R1, word);
                self.asm.alui(Alu::And, Reg::R1, !(bit as i32));
                self.set(word, Reg::R1);
            }
            Action::Copy(to, from) => {
                self.get(Reg::R1, from);
                self.set(to, Reg::R1);
            }
            Action::Count(word) => self.count(word, Reg::R1),
            Action::Stamp(word) => self.set(word, Reg::R8),
            Action::Arrive => self.arrive(),
            Action::Miss => self.miss(),
            Action::Close => self.close(Reg::R8),
            Action::CloseAtLast => self.close_at_last(),
            Action::CloseAs(state) => self.close_as(state),
            Action::CloseNmi => self.close_nmi(),
            Action::Wake => self.wake(),
            Action::OpenExit => self.open_exit(),
            Action::FinishExit => self.finish_exit(true),
            Action::DropExit => self.finish_exit(false),
            Action::CountVmm => {
                let lost = self.asm.label();
                self.argument(Reg::R3);
                self.unsigned(Reg::R3);
                self.asm.wide(Reg::R1, VMM_CLASS << 32);
                self.asm.alu(Alu::Or, Reg::R3, Reg::R1);
                self.row(lost);
                self.add(RowWord::Count, 1);
                self.asm.place(lost);
            }
            Action::Number => {
                self.argument(Reg::R1);
                self.asm.alui(Alu::Add, Reg::R1, 1);
                self.set(Word::Vcpu, Reg::R1);
            }
            Action::Wait => self.wait(),
            Action::Come => self.run(true),
            Action::Leave => self.leave(),
            Action::Tear => self.tear(),
            Action::SeeExit => {
                let none = self.asm.label();
                self.shared(none);
                self.asm.storei(Reg::R0, shared(Shared::SeenExit), 1);
                self.asm.place(none);
            }
        }
    }

    fn arrive(&mut self) {
        let (missed, known, end) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.get(Reg::R1, Word::Off);
        self.asm.jump_ifi(When::Equal, Reg::R1, off::ON as i32, end);
        self.asm.jump_ifi(When::Differs, Reg::R1, off::UNSEEN as i32, missed);
        self.seti(Word::Off, off::ON as i32);
        self.asm.jump(known);
        self.asm.place(missed);
        self.miss();
        self.asm.place(known);
        self.run(true);
        self.asm.place(end);
    }

    fn miss(&mut self) {
        self.count(Word::Missed, Reg::R1);
        self.close_at_last();
        for word in [Word::Mode, Word::Off, Word::Irq, Word::Pending, Word::Halt, Word::Woken] {
            self.seti(word, 0);
        }
        self.seti(Word::Lost, 1);
        self.finish_exit(false);
    }

    /// R5 is brought between the begin of the piece and now.
    fn inside(&mut self) {
        let (above, below) = (self.asm.label(), self.asm.label());
        self.get(Reg::R1, Word::Since);
        self.asm.jump_if(When::AtLeast, Reg::R5, Reg::R1, above);
        self.asm.mov(Reg::R5, Reg::R1);
        self.asm.place(above);
        self.asm.jump_if(When::AtMost, Reg::R5, Reg::R8, below);
        self.asm.mov(Reg::R5, Reg::R8);
        self.asm.place(below);
    }

    fn close_at_last(&mut self) {
        self.get(Reg::R5, Word::Last);
        self.inside();
        self.close(Reg::R5);
    }

    /// The piece ends at `to`, which is R5 or R8, and not before its begin.
    fn close(&mut self, to: Reg) {
        let (on, nobody, mode, unknown, add) =
            (self.asm.label(), self.asm.label(), self.asm.label(), self.asm.label(), self.asm.label());
        self.get(Reg::R1, Word::Since);
        self.asm.mov(Reg::R2, to);
        self.asm.alu(Alu::Sub, Reg::R2, Reg::R1);
        self.get(Reg::R3, Word::Off);
        self.asm.jump_ifi(When::Equal, Reg::R3, off::ON as i32, on);
        self.asm.jump_ifi(When::Above, Reg::R3, off::WAKING as i32, nobody);
        self.get(Reg::R4, Word::OffNs);
        self.asm.alu(Alu::Add, Reg::R4, Reg::R2);
        self.set(Word::OffNs, Reg::R4);
        self.asm.alui(Alu::Add, Reg::R3, State::Preempted as i32 - off::PREEMPTED as i32);
        self.asm.jump(add);
        self.asm.place(on);
        self.get(Reg::R4, Word::Irq);
        self.asm.jump_ifi(When::Equal, Reg::R4, 0, mode);
        self.asm.movi(Reg::R3, State::Irq as i32);
        self.asm.jump_ifi(When::AnyBit, Reg::R4, irq::IRQ as i32, add);
        self.asm.movi(Reg::R3, State::Softirq as i32);
        self.asm.jump(add);
        self.asm.place(mode);
        // Modes and their states have the same order, from 1 and from 0.
        self.get(Reg::R3, Word::Mode);
        self.asm.jump_ifi(When::Equal, Reg::R3, 0, unknown);
        self.asm.alui(Alu::Sub, Reg::R3, 1);
        self.asm.jump(add);
        self.asm.place(nobody);
        self.asm.place(unknown);
        self.asm.movi(Reg::R3, State::Unknown as i32);
        self.asm.place(add);
        self.asm.alui(Alu::And, Reg::R3, STATE_ROOM as i32 - 1);
        self.asm.alui(Alu::ShiftLeft, Reg::R3, 3);
        self.asm.alu(Alu::Add, Reg::R3, Reg::R7);
        self.asm.load(8, Reg::R4, Reg::R3, 8 * NS_AT as i16);
        self.asm.alu(Alu::Add, Reg::R4, Reg::R2);
        self.asm.store(8, Reg::R3, 8 * NS_AT as i16, Reg::R4);
        self.set(Word::Since, to);
        self.set(Word::Last, to);
    }

    /// The piece ends now, as that.
    fn close_as(&mut self, state: State) {
        let place = 8 * (NS_AT + state as usize) as i16;
        self.get(Reg::R1, Word::Since);
        self.asm.mov(Reg::R2, Reg::R8);
        self.asm.alu(Alu::Sub, Reg::R2, Reg::R1);
        self.asm.load(8, Reg::R4, Reg::R7, place);
        self.asm.alu(Alu::Add, Reg::R4, Reg::R2);
        self.asm.store(8, Reg::R7, place, Reg::R4);
        self.set(Word::Since, Reg::R8);
        self.set(Word::Last, Reg::R8);
    }

    fn close_nmi(&mut self) {
        let long = self.asm.label();
        self.argument(Reg::R1);
        self.asm.movi(Reg::R5, 0);
        self.asm.jump_if(When::Above, Reg::R1, Reg::R8, long);
        self.asm.mov(Reg::R5, Reg::R8);
        self.asm.alu(Alu::Sub, Reg::R5, Reg::R1);
        self.asm.place(long);
        self.inside();
        self.close(Reg::R5);
        self.close_as(State::Nmi);
    }

    fn wake(&mut self) {
        let (asleep, woken, end) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.get(Reg::R1, Word::Off);
        for state in [off::HALTED, off::BLOCKED, off::ASLEEP] {
            self.asm.jump_ifi(When::Equal, Reg::R1, state as i32, asleep);
        }
        self.asm.jump(end);
        self.asm.place(asleep);
        self.get(Reg::R5, Word::Woken);
        self.get(Reg::R1, Word::SleptFrom);
        self.asm.jump_if(When::AtLeast, Reg::R5, Reg::R1, woken);
        self.get(Reg::R1, Word::Since);
        self.asm.mov(Reg::R2, Reg::R8);
        self.asm.alu(Alu::Sub, Reg::R2, Reg::R1);
        self.get(Reg::R3, Word::OffNs);
        self.asm.alu(Alu::Add, Reg::R3, Reg::R2);
        self.set(Word::OffNs, Reg::R3);
        self.close_as(State::Unknown);
        self.asm.jump(end);
        self.asm.place(woken);
        self.inside();
        self.close(Reg::R5);
        self.seti(Word::Off, off::WAKING as i32);
        self.count(Word::Wakeups, Reg::R1);
        self.asm.mov(Reg::R3, Reg::R8);
        self.asm.alu(Alu::Sub, Reg::R3, Reg::R5);
        let longest = self.asm.label();
        self.get(Reg::R1, Word::WakeMax);
        self.asm.jump_if(When::AtLeast, Reg::R1, Reg::R3, longest);
        self.set(Word::WakeMax, Reg::R3);
        self.asm.place(longest);
        self.bin(Reg::R7, WAKE_BINS_AT);
        self.asm.place(end);
    }

    fn open_exit(&mut self) {
        let (whole, told) = (self.asm.label(), self.asm.label());
        self.argument(Reg::R3);
        self.asm.mov(Reg::R1, Reg::R3);
        self.asm.alui(Alu::ShiftRight, Reg::R1, 32);
        self.asm.jump_ifi(When::Differs, Reg::R1, i32::from(VMX), whole);
        self.asm.wide(Reg::R1, u64::from(VMX) << 32 | 0xffff);
        self.asm.alu(Alu::And, Reg::R3, Reg::R1);
        self.asm.place(whole);
        self.seti(Word::ExitOpen, 1);
        self.set(Word::ExitKey, Reg::R3);
        self.set(Word::ExitAt, Reg::R8);
        self.get(Reg::R1, Word::OffNs);
        self.set(Word::OffBefore, Reg::R1);
        self.seti(Word::ToVmm, 0);
        self.asm.movi(Reg::R2, 1);
        for (isa, code) in HALTS {
            self.asm.wide(Reg::R1, u64::from(*isa) << 32 | u64::from(*code));
            self.asm.jump_if(When::Equal, Reg::R3, Reg::R1, told);
        }
        self.asm.movi(Reg::R2, 0);
        self.asm.place(told);
        self.set(Word::Halt, Reg::R2);
    }

    fn finish_exit(&mut self, entered: bool) {
        let (none, lost) = (self.asm.label(), self.asm.label());
        self.get(Reg::R1, Word::ExitOpen);
        self.asm.jump_ifi(When::Equal, Reg::R1, 0, none);
        self.seti(Word::ExitOpen, 0);
        self.get(Reg::R3, Word::ExitKey);
        self.row(lost);
        self.add(RowWord::Count, 1);
        self.get(Reg::R1, Word::ToVmm);
        self.asm.load(8, Reg::R2, Reg::R0, 8 * RowWord::ToVmm as i16);
        self.asm.alu(Alu::Add, Reg::R2, Reg::R1);
        self.asm.store(8, Reg::R0, 8 * RowWord::ToVmm as i16, Reg::R2);
        if entered {
            self.cost();
        } else {
            self.add(RowWord::Clipped, 1);
        }
        self.asm.place(lost);
        self.asm.place(none);
    }

    /// What the exit cost goes into the row that R0 points to.
    fn cost(&mut self) {
        let (all_off, some, longest) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.get(Reg::R1, Word::ExitAt);
        self.asm.mov(Reg::R3, Reg::R8);
        self.asm.alu(Alu::Sub, Reg::R3, Reg::R1);
        self.get(Reg::R1, Word::OffNs);
        self.get(Reg::R2, Word::OffBefore);
        self.asm.alu(Alu::Sub, Reg::R1, Reg::R2);
        self.asm.jump_if(When::Above, Reg::R1, Reg::R3, all_off);
        self.asm.alu(Alu::Sub, Reg::R3, Reg::R1);
        self.asm.jump(some);
        self.asm.place(all_off);
        self.asm.movi(Reg::R3, 0);
        self.asm.place(some);
        self.asm.load(8, Reg::R1, Reg::R0, 8 * RowWord::Sum as i16);
        self.asm.alu(Alu::Add, Reg::R1, Reg::R3);
        self.asm.store(8, Reg::R0, 8 * RowWord::Sum as i16, Reg::R1);
        self.asm.load(8, Reg::R1, Reg::R0, 8 * RowWord::Max as i16);
        self.asm.jump_if(When::AtLeast, Reg::R1, Reg::R3, longest);
        self.asm.store(8, Reg::R0, 8 * RowWord::Max as i16, Reg::R3);
        self.asm.place(longest);
        self.bin(Reg::R0, ROW_BINS_AT);
    }

    /// One more in the counter of the length in R3, of those at `base`.
    fn bin(&mut self, base: Reg, at: usize) {
        self.asm.mov(Reg::R4, Reg::R3);
        self.asm.movi(Reg::R1, 0);
        // Without jumps: the verifier would follow each of their 64 ways, wherever lengths are counted.
        for power in (0..6).rev() {
            self.asm.mov(Reg::R5, Reg::R4);
            self.asm.alui(Alu::ShiftRight, Reg::R5, 1 << power);
            self.asm.movi(Reg::R2, 0);
            self.asm.alu(Alu::Sub, Reg::R2, Reg::R5);
            self.asm.alu(Alu::Or, Reg::R2, Reg::R5);
            self.asm.alui(Alu::ShiftRight, Reg::R2, 63);
            self.asm.alui(Alu::ShiftLeft, Reg::R2, power);
            self.asm.alu(Alu::ShiftRight, Reg::R4, Reg::R2);
            self.asm.alu(Alu::Add, Reg::R1, Reg::R2);
        }
        let (least, inside) = (self.asm.label(), self.asm.label());
        self.asm.mov(Reg::R2, Reg::R3);
        self.asm.jump_ifi(When::Equal, Reg::R1, 0, least);
        self.asm.mov(Reg::R5, Reg::R1);
        self.asm.alui(Alu::Sub, Reg::R5, 1);
        self.asm.alu(Alu::ShiftRight, Reg::R2, Reg::R5);
        self.asm.alui(Alu::And, Reg::R2, 1);
        self.asm.place(least);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, 1);
        self.asm.alu(Alu::Add, Reg::R1, Reg::R2);
        self.asm.jump_ifi(When::Below, Reg::R1, BINS as i32, inside);
        self.asm.movi(Reg::R1, BINS as i32 - 1);
        self.asm.place(inside);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, 2);
        self.asm.alu(Alu::Add, Reg::R1, base);
        self.asm.load(4, Reg::R2, Reg::R1, 8 * at as i16);
        self.asm.alui(Alu::Add, Reg::R2, 1);
        self.asm.store(4, Reg::R1, 8 * at as i16, Reg::R2);
    }

    /// Adds to a word of the row that R0 points to.
    fn add(&mut self, word: RowWord, more: i32) {
        self.asm.load(8, Reg::R1, Reg::R0, 8 * word as i16);
        self.asm.alui(Alu::Add, Reg::R1, more);
        self.asm.store(8, Reg::R0, 8 * word as i16, Reg::R1);
    }

    /// R0 = the row of this record for the reason in R3, which is made where there is none; `lost` if none is left.
    fn row(&mut self, lost: Label) {
        let (known, full, end) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.index(Reg::R1);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, 48);
        self.asm.alu(Alu::Or, Reg::R1, Reg::R3);
        self.asm.store(8, Reg::Fp, stack::OWN_KEY, Reg::R1);
        self.lookup(self.maps.keys, stack::OWN_KEY);
        self.asm.jump_ifi(When::Differs, Reg::R0, 0, known);
        self.shared(full);
        self.asm.movi(Reg::R1, 1);
        self.asm.fetch_add(Reg::R0, shared(Shared::Rows), Reg::R1);
        self.asm.jump_ifi(When::AtLeast, Reg::R1, MOST_ROWS as i32, full);
        self.asm.store(4, Reg::Fp, stack::VALUE, Reg::R1);
        self.lookup(self.maps.rows, stack::VALUE);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, full);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::OWN_KEY);
        self.asm.mov(Reg::R2, Reg::R1);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, 16);
        self.asm.alui(Alu::ShiftRight, Reg::R1, 16);
        self.asm.store(8, Reg::R0, 8 * RowWord::Key as i16, Reg::R1);
        self.asm.alui(Alu::ShiftRight, Reg::R2, 48);
        self.asm.store(8, Reg::R0, 8 * RowWord::Owner as i16, Reg::R2);
        self.new_or_known_row(self.maps.keys, self.maps.rows, known, full, end);
        self.asm.place(full);
        self.count(Word::RowsLost, Reg::R1);
        self.asm.jump(lost);
        self.asm.place(end);
    }
}
