// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//! Who had the CPU while a vCPU was ready for it? A task that leaves is charged to all who wait there.

use super::{Emitter, Field, shared, stack};
use crate::asm::{Alu, Label, Reg, When};
use crate::event::{ARGUMENT_BITS, Kind};
use crate::layout::{FIRST, MOST_TAKERS, Shared, SlotWord, TakerWord, WAITERS, Word, off};

const fn slot(word: SlotWord) -> i16 {
    8 * word as i16
}

const fn taker(word: TakerWord) -> i16 {
    8 * word as i16
}

impl Emitter<'_> {
    /// R6 is the slot of this CPU; whose id lies on the stack leaves. `comm` is its name in the event, whose address lies there, too.
    pub(super) fn leaves(&mut self, comm: Option<Field>) {
        let (turn, next, nobody) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.asm.load(8, Reg::R1, Reg::R6, slot(SlotWord::Waiting));
        self.asm.jump_ifi(When::Equal, Reg::R1, 0, nobody);
        self.time(Reg::R8);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::CPU);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, ARGUMENT_BITS as i32);
        self.asm.wide(Reg::R2, (Kind::Leaves as u64) << 56);
        self.asm.alu(Alu::Or, Reg::R1, Reg::R2);
        self.asm.load(4, Reg::R2, Reg::Fp, stack::TID);
        self.asm.alu(Alu::Or, Reg::R1, Reg::R2);
        self.asm.store(8, Reg::Fp, stack::RING_WORD, Reg::R1);
        self.ring();
        self.keep(stack::TURNS, 0);
        self.asm.place(turn);
        self.charge(comm, next);
        self.asm.place(next);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::TURNS);
        self.asm.alui(Alu::Add, Reg::R1, 1);
        self.asm.store(8, Reg::Fp, stack::TURNS, Reg::R1);
        self.asm.jump_ifi(When::Below, Reg::R1, WAITERS as i32, turn);
        self.asm.store(8, Reg::R6, slot(SlotWord::Since), Reg::R8);
        self.comes();
        self.asm.place(nobody);
    }

    /// Who comes is the one that is waited for.
    fn comes(&mut self) {
        self.asm.load(4, Reg::R1, Reg::Fp, stack::NEXT);
        self.asm.store(8, Reg::R6, slot(SlotWord::Task), Reg::R1);
    }

    /// R1 = the address of the waiter whose turn it is.
    fn waiter(&mut self) {
        self.asm.load(8, Reg::R1, Reg::Fp, stack::TURNS);
        self.asm.alui(Alu::And, Reg::R1, WAITERS as i32 - 1);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, 4);
        self.asm.alui(Alu::Add, Reg::R1, i32::from(slot(SlotWord::Waiters)));
        self.asm.alu(Alu::Add, Reg::R1, Reg::R6);
    }

    /// One waiter: how long the task kept it waiting, and whether it goes on.
    fn charge(&mut self, comm: Option<Field>, next: Label) {
        let (same, over, charged, some) = (self.asm.label(), self.asm.label(), self.asm.label(), self.asm.label());
        self.waiter();
        self.asm.load(8, Reg::R2, Reg::R1, 0);
        self.asm.jump_ifi(When::Equal, Reg::R2, 0, next);
        self.asm.store(8, Reg::Fp, stack::WAITER, Reg::R2);
        self.asm.store(4, Reg::Fp, stack::KEY, Reg::R2);
        self.lookup(self.maps.records, stack::KEY);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, next);
        self.asm.mov(Reg::R7, Reg::R0);
        self.waiter();
        self.asm.load(8, Reg::R2, Reg::R1, 8);
        self.get(Reg::R3, Word::WaitFrom);
        self.asm.load(8, Reg::R5, Reg::R6, slot(SlotWord::Since));
        self.asm.jump_if(When::Equal, Reg::R2, Reg::R3, same);
        // It has waited elsewhere since, and when this wait ended is not known.
        self.asm.jump(over);
        self.asm.place(same);
        self.get(Reg::R3, Word::Off);
        let ended = self.asm.label();
        self.asm.jump_ifi(When::Differs, Reg::R3, off::PREEMPTED as i32, ended);
        self.asm.mov(Reg::R5, Reg::R8);
        // Only the first is charged as the one who took the CPU.
        self.asm.load(4, Reg::R2, Reg::Fp, stack::WAITER);
        self.asm.store(8, Reg::R1, 0, Reg::R2);
        self.asm.jump(charged);
        self.asm.place(ended);
        self.get(Reg::R5, Word::WaitTo);
        self.asm.jump_if(When::AtMost, Reg::R5, Reg::R8, over);
        self.asm.mov(Reg::R5, Reg::R8);
        self.asm.place(over);
        self.asm.storei(Reg::R1, 0, 0);
        self.asm.load(8, Reg::R2, Reg::R6, slot(SlotWord::Waiting));
        self.asm.alui(Alu::Sub, Reg::R2, 1);
        self.asm.store(8, Reg::R6, slot(SlotWord::Waiting), Reg::R2);
        self.asm.place(charged);
        // The clock went on between its coming and the end of its wait: that is nobody's.
        self.get(Reg::R1, Word::Tid);
        self.asm.load(4, Reg::R2, Reg::Fp, stack::TID);
        self.asm.jump_if(When::Equal, Reg::R1, Reg::R2, next);
        // R5, until when, becomes how long.
        let (later, none) = (self.asm.label(), self.asm.label());
        self.asm.load(8, Reg::R1, Reg::R6, slot(SlotWord::Since));
        self.asm.jump_if(When::AtMost, Reg::R5, Reg::R1, none);
        self.asm.alu(Alu::Sub, Reg::R5, Reg::R1);
        self.asm.jump(later);
        self.asm.place(none);
        self.asm.movi(Reg::R5, 0);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::WAITER);
        self.asm.wide(Reg::R2, FIRST);
        self.asm.jump_if(When::Below, Reg::R1, Reg::R2, next);
        self.asm.place(later);
        self.asm.store(8, Reg::Fp, stack::LENGTH, Reg::R5);
        self.taker(comm, next);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::WAITER);
        self.asm.alui(Alu::ShiftRight, Reg::R1, 32);
        self.asm.load(8, Reg::R2, Reg::R0, taker(TakerWord::Count));
        self.asm.alu(Alu::Add, Reg::R2, Reg::R1);
        self.asm.store(8, Reg::R0, taker(TakerWord::Count), Reg::R2);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::LENGTH);
        self.asm.load(8, Reg::R2, Reg::R0, taker(TakerWord::Sum));
        self.asm.alu(Alu::Add, Reg::R2, Reg::R1);
        self.asm.store(8, Reg::R0, taker(TakerWord::Sum), Reg::R2);
        self.asm.load(8, Reg::R2, Reg::R0, taker(TakerWord::Max));
        self.asm.jump_if(When::AtLeast, Reg::R2, Reg::R1, some);
        self.asm.store(8, Reg::R0, taker(TakerWord::Max), Reg::R1);
        self.asm.place(some);
    }

    /// R0 = the row of this waiter and the task that leaves.
    fn taker(&mut self, comm: Option<Field>, lost: Label) {
        let (known, full, end) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.asm.load(4, Reg::R1, Reg::Fp, stack::WAITER);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, 32);
        self.asm.load(4, Reg::R2, Reg::Fp, stack::TID);
        self.asm.alu(Alu::Or, Reg::R1, Reg::R2);
        self.asm.store(8, Reg::Fp, stack::OWN_KEY, Reg::R1);
        self.lookup(self.maps.taker_keys, stack::OWN_KEY);
        self.asm.jump_ifi(When::Differs, Reg::R0, 0, known);
        self.shared(full);
        self.asm.movi(Reg::R1, 1);
        self.asm.fetch_add(Reg::R0, shared(Shared::Takers), Reg::R1);
        self.asm.jump_ifi(When::AtLeast, Reg::R1, MOST_TAKERS as i32, full);
        self.asm.store(4, Reg::Fp, stack::VALUE, Reg::R1);
        self.lookup(self.maps.takers, stack::VALUE);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, full);
        if let Some(comm) = comm {
            self.asm.load(8, Reg::R2, Reg::Fp, stack::CONTEXT);
            for (part, word) in [TakerWord::Comm, TakerWord::CommEnd].into_iter().enumerate() {
                self.asm.load(8, Reg::R1, Reg::R2, comm.offset + 8 * part as i16);
                self.asm.store(8, Reg::R0, taker(word), Reg::R1);
            }
        }
        self.asm.load(4, Reg::R1, Reg::Fp, stack::TID);
        self.asm.store(8, Reg::R0, taker(TakerWord::Tid), Reg::R1);
        self.asm.load(4, Reg::R1, Reg::Fp, stack::WAITER);
        self.asm.store(8, Reg::R0, taker(TakerWord::Owner), Reg::R1);
        self.new_or_known_row(self.maps.taker_keys, self.maps.takers, known, full, end);
        self.asm.place(full);
        self.shared(lost);
        self.asm.movi(Reg::R1, 1);
        self.asm.fetch_add(Reg::R0, shared(Shared::TakersLost), Reg::R1);
        self.asm.jump(lost);
        self.asm.place(end);
    }

    /// The record begins to wait for this CPU, whose slot R6 is; where too many do, nobody is charged for it.
    pub(super) fn wait(&mut self) {
        let (turn, next, end) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.set(Word::WaitFrom, Reg::R8);
        self.asm.store(8, Reg::R6, slot(SlotWord::Since), Reg::R8);
        self.comes();
        self.keep(stack::TURNS, 0);
        self.asm.place(turn);
        self.waiter();
        self.asm.load(8, Reg::R2, Reg::R1, 0);
        self.asm.jump_ifi(When::Differs, Reg::R2, 0, next);
        self.index(Reg::R2);
        self.asm.wide(Reg::R3, FIRST);
        self.asm.alu(Alu::Or, Reg::R2, Reg::R3);
        self.asm.store(8, Reg::R1, 0, Reg::R2);
        self.asm.store(8, Reg::R1, 8, Reg::R8);
        self.asm.load(8, Reg::R2, Reg::R6, slot(SlotWord::Waiting));
        self.asm.alui(Alu::Add, Reg::R2, 1);
        self.asm.store(8, Reg::R6, slot(SlotWord::Waiting), Reg::R2);
        self.asm.jump(end);
        self.asm.place(next);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::TURNS);
        self.asm.alui(Alu::Add, Reg::R1, 1);
        self.asm.store(8, Reg::Fp, stack::TURNS, Reg::R1);
        self.asm.jump_ifi(When::Below, Reg::R1, WAITERS as i32, turn);
        self.asm.place(end);
    }
}
