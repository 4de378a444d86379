// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//! An event comes to its record: at once, or through the record's queue while another one is being carried out.

use super::{Emitter, stack};
use crate::asm::{Alu, Label, Reg, When};
use crate::event::Kind;
use crate::layout::{QUEUE, QUEUE_AT, Word};
use crate::rules::RULES;

/// Places of the queue that are used: the last one is for an NMI that comes between looking and taking a place.
const USED: i32 = QUEUE as i32 - 1;

/// Kinds that may find their record busy: those of interrupts. From Linux 7.0 on a program for a raw tracepoint can lose its CPU too; what comes
/// meanwhile makes a gap, for rules of all kinds in all programs are more than the verifier follows.
const QUEUED: [Kind; 2] = [Kind::Host, Kind::Nmi];

impl Emitter<'_> {
    /// R7 is the record, R9 the word of the event, which is of kind `own`. What follows comes behind it.
    pub(super) fn deliver(&mut self, own: Kind) {
        let (queue, whole, after) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.get(Reg::R1, Word::Busy);
        self.asm.jump_ifi(When::Differs, Reg::R1, 0, queue);
        self.seti(Word::Busy, 1);
        self.time(Reg::R8);
        self.count(Word::Seq, Reg::R1);
        self.asm.store(8, Reg::Fp, stack::OWN_WORD, Reg::R9);
        self.asm.store(8, Reg::Fp, stack::OWN_TIME, Reg::R8);
        self.drain(true);
        self.asm.load(8, Reg::R8, Reg::Fp, stack::OWN_TIME);
        self.asm.load(8, Reg::R9, Reg::Fp, stack::OWN_WORD);
        self.noted();
        self.rules_of(own);
        self.drain(false);
        // A queue that was full has made a gap.
        self.get(Reg::R1, Word::QueueLost);
        self.get(Reg::R2, Word::QueueSeen);
        self.asm.jump_if(When::Equal, Reg::R1, Reg::R2, whole);
        self.set(Word::QueueSeen, Reg::R1);
        self.asm.load(8, Reg::R8, Reg::Fp, stack::OWN_TIME);
        self.asm.load(8, Reg::R9, Reg::Fp, stack::OWN_WORD);
        self.asm.alui(Alu::ShiftLeft, Reg::R9, 8);
        self.asm.alui(Alu::ShiftRight, Reg::R9, 8);
        self.head(Kind::Gap);
        self.noted();
        self.rules_of(Kind::Gap);
        self.asm.place(whole);
        self.count(Word::Seq, Reg::R1);
        self.seti(Word::Busy, 0);
        self.asm.jump(after);
        self.asm.place(queue);
        self.queue(own, after);
        self.asm.place(after);
    }

    /// The event goes into the ring and is counted.
    fn noted(&mut self) {
        self.asm.store(8, Reg::Fp, stack::RING_WORD, Reg::R9);
        self.ring();
        self.count(Word::Events, Reg::R1);
        self.forward();
    }

    /// Carries out what is queued: what is not younger than our own event, or all. A loop with a bound, which the verifier wants to see.
    fn drain(&mut self, older: bool) {
        let (turn, end, next, nmi) = (self.asm.label(), self.asm.label(), self.asm.label(), self.asm.label());
        self.keep(stack::TURNS, 0);
        self.asm.place(turn);
        self.get(Reg::R1, Word::QueueHead);
        self.get(Reg::R2, Word::QueueTail);
        self.asm.jump_if(When::Equal, Reg::R1, Reg::R2, end);
        self.asm.mov(Reg::R3, Reg::R1);
        self.place_in_queue(Reg::R3);
        self.asm.load(8, Reg::R8, Reg::R3, 0);
        if older {
            self.asm.load(8, Reg::R2, Reg::Fp, stack::OWN_TIME);
            self.asm.jump_if(When::Above, Reg::R8, Reg::R2, end);
        }
        self.asm.load(8, Reg::R9, Reg::R3, 8);
        self.asm.alui(Alu::Add, Reg::R1, 1);
        self.set(Word::QueueHead, Reg::R1);
        self.noted();
        self.asm.mov(Reg::R1, Reg::R9);
        self.asm.alui(Alu::ShiftRight, Reg::R1, 56);
        self.asm.jump_ifi(When::Equal, Reg::R1, Kind::Nmi as i32, nmi);
        self.rules_of(Kind::Host);
        self.asm.jump(next);
        self.asm.place(nmi);
        self.rules_of(Kind::Nmi);
        self.asm.place(next);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::TURNS);
        self.asm.alui(Alu::Add, Reg::R1, 1);
        self.asm.store(8, Reg::Fp, stack::TURNS, Reg::R1);
        self.asm.jump_ifi(When::Below, Reg::R1, QUEUE as i32, turn);
        self.asm.place(end);
    }

    /// Time does not step back.
    fn forward(&mut self) {
        let forward = self.asm.label();
        self.get(Reg::R1, Word::Since);
        self.asm.jump_if(When::AtLeast, Reg::R8, Reg::R1, forward);
        self.asm.mov(Reg::R8, Reg::R1);
        self.count(Word::Skew, Reg::R1);
        self.asm.place(forward);
    }

    fn rules_of(&mut self, kind: Kind) {
        for rule in RULES.iter().filter(|rule| rule.on == kind) {
            let skip = self.asm.label();
            rule.when.iter().for_each(|guard| self.guard(*guard, skip));
            rule.then.iter().for_each(|action| self.action(*action));
            self.asm.place(skip);
        }
    }

    /// The place of a number in the queue: the place first, then the clock, so that places are in the order of time.
    fn queue(&mut self, own: Kind, after: Label) {
        let room = self.asm.label();
        if QUEUED.contains(&own) {
            self.get(Reg::R2, Word::QueueTail);
            self.get(Reg::R1, Word::QueueHead);
            self.asm.alu(Alu::Sub, Reg::R2, Reg::R1);
            self.asm.jump_ifi(When::Below, Reg::R2, USED, room);
        }
        self.asm.movi(Reg::R1, 1);
        self.asm.fetch_add(Reg::R7, 8 * Word::QueueLost as i16, Reg::R1);
        self.asm.jump(after);
        if !QUEUED.contains(&own) {
            return;
        }
        self.asm.place(room);
        self.asm.movi(Reg::R1, 1);
        self.asm.fetch_add(Reg::R7, 8 * Word::QueueTail as i16, Reg::R1);
        self.asm.store(8, Reg::Fp, stack::OWN_WORD, Reg::R1);
        self.time(Reg::R8);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::OWN_WORD);
        self.place_in_queue(Reg::R1);
        self.asm.store(8, Reg::R1, 0, Reg::R8);
        self.asm.store(8, Reg::R1, 8, Reg::R9);
    }

    /// A number of an event becomes the address of its place.
    fn place_in_queue(&mut self, register: Reg) {
        self.asm.alui(Alu::And, register, QUEUE as i32 - 1);
        self.asm.alui(Alu::ShiftLeft, register, 4);
        self.asm.alui(Alu::Add, register, 8 * QUEUE_AT as i32);
        self.asm.alu(Alu::Add, register, Reg::R7);
    }
}
