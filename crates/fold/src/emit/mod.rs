// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//! Programs of BPF that carry out the rules in the kernel: each is written when it is loaded, for the fields that this kernel has.
//!
//! ```text
//! find     whose event is it: the thread on this CPU, or the one that an event names    (`find`)
//! deliver  busy? -> queue; else older ones of the queue, this event, newer ones         (`deliver`)
//! rules    conditions and actions, one after the other                                  (`actions`)
//! ```
//! An interrupt may come at any instruction, and its own event then finds the record busy: it queues with its own time. So whoever has the record
//! takes `busy` first and then the clock; what is queued with an earlier time is carried out before, the rest after.

mod actions;
mod busy;
mod deliver;
mod find;
mod takers;

use crate::asm::{Alu, Asm, Helper, Label, Reg, When};
use crate::event::{ARGUMENT_BITS, CASE_BITS, Kind, MOST_ARGUMENT, leaves, over, task};
use crate::layout::{FAILED, Shared, Word};

/// Descriptors of the maps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maps {
    pub records: i32,
    pub rows: i32,
    /// Record and reason to row.
    pub keys: i32,
    /// Thread to record.
    pub tids: i32,
    /// A bit for each thread that has a record.
    pub bits: i32,
    pub shared: i32,
    /// Whose record the thread on a CPU has.
    pub cpus: i32,
    /// How busy VMs are,
    pub vms: i32,
    /// and the number of each process.
    pub vm_keys: i32,
    /// Who took a CPU from whom,
    pub takers: i32,
    /// and the row of each pair.
    pub taker_keys: i32,
    /// Events as they come, of each CPU, and how many are kept.
    pub ring: Option<(i32, u32)>,
    /// Where time, thread and CPU are read in place of the kernel's own: for tests.
    pub given: Option<i32>,
}

/// Where a field of an event lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub offset: i16,
    pub bytes: u8,
}

/// What a program hears of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hears {
    /// Number of the vCPU.
    Entry(Option<Field>),
    /// Reason, instruction set.
    Exit(Field, Option<Field>),
    /// Reason, error.
    UserspaceExit(Field, Option<Field>),
    /// Whether it loads.
    Fpu(Field),
    /// Who leaves, how, what it is called (16 bytes), who comes.
    Switch { prev: Field, state: Field, comm: Option<Field>, next: Field },
    /// Who is woken.
    Waking(Field),
    /// Something that the host does on the CPU of a thread: one of [`over`].
    Host(u64),
    /// How long the NMI took.
    Nmi(Field),
}

/// Places on the stack.
mod stack {
    pub(super) const OWN_WORD: i16 = -8;
    pub(super) const OWN_TIME: i16 = -16;
    pub(super) const TURNS: i16 = -32;
    pub(super) const KEY: i16 = -40;
    pub(super) const VALUE: i16 = -48;
    pub(super) const LEAVES: i16 = -56;
    pub(super) const NEXT: i16 = -64;
    pub(super) const PID_TGID: i16 = -72;
    pub(super) const TID: i16 = -80;
    pub(super) const RING_WORD: i16 = -88;
    pub(super) const PREV_BIT: i16 = -96;
    pub(super) const NEXT_BIT: i16 = -104;
    pub(super) const OWN_KEY: i16 = -120;
    pub(super) const CONTEXT: i16 = -128;
    pub(super) const CPU: i16 = -136;
    pub(super) const WAITER: i16 = -144;
    pub(super) const LENGTH: i16 = -152;
}

/// A program that is being written. R7 is the record, R8 the time, R9 the word of the event, R6 first the context and then the slot of the CPU.
struct Emitter<'m> {
    asm: Asm,
    maps: &'m Maps,
    out: Label,
}

/// The program that hears of that; `None` if it cannot be written.
pub(crate) fn program(hears: Hears, maps: &Maps) -> Option<Vec<[u8; 8]>> {
    let mut asm = Asm::default();
    let out = asm.label();
    let mut emitter = Emitter { asm, maps, out };
    emitter.asm.mov(Reg::R6, Reg::R1);
    let own = emitter.hears(hears);
    emitter.deliver(own);
    let Emitter { mut asm, out, .. } = emitter;
    asm.place(out);
    asm.exit();
    asm.finish()
}

impl Emitter<'_> {
    /// Reads the fields and finds the record; what is heard of most is told.
    fn hears(&mut self, hears: Hears) -> Kind {
        match hears {
            Hears::Entry(vcpu) => {
                match vcpu {
                    Some(vcpu) => self.field(Reg::R9, vcpu),
                    // An argument that is no number.
                    None => self.asm.wide(Reg::R9, MOST_ARGUMENT),
                }
                self.of_current(Kind::Entry, true);
                Kind::Entry
            }
            Hears::Exit(reason, isa) => {
                self.field(Reg::R9, reason);
                self.unsigned(Reg::R9);
                if let Some(isa) = isa {
                    self.field(Reg::R1, isa);
                    self.asm.alui(Alu::And, Reg::R1, 0xff);
                    self.asm.alui(Alu::ShiftLeft, Reg::R1, 32);
                    self.asm.alu(Alu::Or, Reg::R9, Reg::R1);
                }
                self.of_current(Kind::Exit, true);
                Kind::Exit
            }
            Hears::UserspaceExit(reason, error) => {
                self.field(Reg::R9, reason);
                self.unsigned(Reg::R9);
                if let Some(error) = error {
                    // An int: negative where KVM_RUN failed.
                    let worked = self.asm.label();
                    self.field(Reg::R1, error);
                    self.unsigned(Reg::R1);
                    self.asm.wide(Reg::R2, u64::from(FAILED));
                    self.asm.jump_if(When::Below, Reg::R1, Reg::R2, worked);
                    self.asm.wide(Reg::R9, 1 << 32);
                    self.asm.alu(Alu::Sub, Reg::R9, Reg::R1);
                    self.asm.alu(Alu::Or, Reg::R9, Reg::R2);
                    self.asm.place(worked);
                }
                self.of_current(Kind::UserspaceExit, true);
                Kind::UserspaceExit
            }
            Hears::Fpu(loads) => {
                self.field(Reg::R1, loads);
                self.unsigned(Reg::R1);
                self.asm.jump_ifi(When::Equal, Reg::R1, 0, self.out);
                self.asm.movi(Reg::R9, 0);
                self.of_current(Kind::RunBegins, true);
                Kind::RunBegins
            }
            Hears::Switch { prev, state, comm, next } => {
                self.switch(prev, state, comm, next);
                Kind::SwitchIn
            }
            Hears::Waking(woken) => {
                self.waking(woken);
                Kind::Host
            }
            Hears::Host(what) => {
                self.asm.movi(Reg::R9, what as i32);
                self.of_current(Kind::Host, false);
                Kind::Host
            }
            Hears::Nmi(length) => {
                self.field(Reg::R9, length);
                let short = self.asm.label();
                self.asm.wide(Reg::R1, MOST_ARGUMENT);
                self.asm.jump_if(When::AtMost, Reg::R9, Reg::R1, short);
                self.asm.mov(Reg::R9, Reg::R1);
                self.asm.place(short);
                self.of_current(Kind::Nmi, false);
                Kind::Nmi
            }
        }
    }

    /// The event is one of the thread that has this CPU: from R9, its argument, to the record and the whole word.
    fn of_current(&mut self, kind: Kind, meets: bool) {
        self.head(kind);
        self.pid_tgid();
        self.current(meets);
    }

    /// R9, an argument, becomes a word without the number of a record.
    fn head(&mut self, kind: Kind) {
        self.asm.wide(Reg::R1, (kind as u64) << 56);
        self.asm.alu(Alu::Or, Reg::R9, Reg::R1);
    }

    fn switch(&mut self, prev: Field, state: Field, comm: Option<Field>, next: Field) {
        let (ready, stopped, ended, told) = (self.asm.label(), self.asm.label(), self.asm.label(), self.asm.label());
        self.field(Reg::R1, prev);
        self.asm.store(8, Reg::Fp, stack::TID, Reg::R1);
        self.field(Reg::R1, next);
        self.asm.store(8, Reg::Fp, stack::NEXT, Reg::R1);
        self.field(Reg::R1, state);
        self.asm.movi(Reg::R2, leaves::READY as i32);
        self.asm.jump_ifi(When::AnyBit, Reg::R1, task::REPORT as i32, ready);
        self.asm.jump(told);
        self.asm.place(ready);
        self.asm.movi(Reg::R2, leaves::ENDED as i32);
        self.asm.jump_ifi(When::AnyBit, Reg::R1, task::ENDS as i32, ended);
        self.asm.movi(Reg::R2, leaves::STOPPED as i32);
        self.asm.jump_ifi(When::AnyBit, Reg::R1, task::STOPS as i32, stopped);
        self.asm.movi(Reg::R2, leaves::ASLEEP as i32);
        self.asm.place(ended);
        self.asm.place(stopped);
        self.asm.place(told);
        self.asm.store(8, Reg::Fp, stack::LEAVES, Reg::R2);
        self.asm.store(8, Reg::Fp, stack::CONTEXT, Reg::R6);
        // Most switches are of tasks that are no vCPUs, where none waits: they end here, before the clock.
        self.has_record(stack::TID);
        self.asm.store(8, Reg::Fp, stack::PREV_BIT, Reg::R0);
        self.has_record(stack::NEXT);
        self.asm.store(8, Reg::Fp, stack::NEXT_BIT, Reg::R0);
        self.slot();
        self.leaves(comm);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::PREV_BIT);
        self.asm.load(8, Reg::R2, Reg::Fp, stack::NEXT_BIT);
        self.asm.alu(Alu::Or, Reg::R1, Reg::R2);
        self.asm.jump_ifi(When::Equal, Reg::R1, 0, self.out);
        let comes = self.asm.label();
        self.asm.load(8, Reg::R1, Reg::Fp, stack::PREV_BIT);
        self.asm.jump_ifi(When::Equal, Reg::R1, 0, comes);
        self.asm.load(8, Reg::R9, Reg::Fp, stack::CPU);
        self.asm.alui(Alu::ShiftLeft, Reg::R9, CASE_BITS as i32);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::LEAVES);
        self.asm.alu(Alu::Or, Reg::R9, Reg::R1);
        self.head(Kind::SwitchOut);
        self.named(stack::TID, comes);
        self.deliver(Kind::SwitchOut);
        self.asm.place(comes);
        self.asm.movi(Reg::R1, 0);
        self.asm.store(8, Reg::R6, find::CURRENT, Reg::R1);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::NEXT_BIT);
        self.asm.jump_ifi(When::Equal, Reg::R1, 0, self.out);
        self.asm.movi(Reg::R9, 0);
        self.head(Kind::SwitchIn);
        self.named(stack::NEXT, self.out);
        self.asm.load(4, Reg::R1, Reg::Fp, stack::KEY);
        self.asm.store(8, Reg::R6, find::CURRENT, Reg::R1);
    }

    /// Who is woken only hears when, whatever CPU that is; and whoever has this CPU works for the host.
    fn waking(&mut self, woken: Field) {
        let told = self.asm.label();
        self.field(Reg::R1, woken);
        self.asm.store(8, Reg::Fp, stack::TID, Reg::R1);
        self.pid_tgid();
        self.has_record(stack::TID);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, told);
        // A task that wakes itself, in an interrupt on its way to sleep, never slept.
        self.asm.load(4, Reg::R1, Reg::Fp, stack::PID_TGID);
        self.asm.load(4, Reg::R2, Reg::Fp, stack::TID);
        self.asm.jump_if(When::Equal, Reg::R1, Reg::R2, told);
        self.asm.movi(Reg::R9, 0);
        self.head(Kind::Woken);
        self.named(stack::TID, told);
        self.time(Reg::R8);
        self.busy();
        self.set(Word::BusyWoken, Reg::R2);
        self.set(Word::Woken, Reg::R8);
        self.asm.store(8, Reg::Fp, stack::RING_WORD, Reg::R9);
        self.ring();
        self.asm.place(told);
        self.asm.movi(Reg::R9, over::WAKES as i32);
        self.head(Kind::Host);
        self.current(false);
    }

    /// A number on the stack that the verifier follows: old ones follow no number that is stored at once. Spoils R1.
    fn keep(&mut self, place: i16, number: i32) {
        self.asm.movi(Reg::R1, number);
        self.asm.store(8, Reg::Fp, place, Reg::R1);
    }

    fn get(&mut self, to: Reg, word: Word) {
        self.asm.load(8, to, Reg::R7, 8 * word as i16);
    }

    fn set(&mut self, word: Word, from: Reg) {
        self.asm.store(8, Reg::R7, 8 * word as i16, from);
    }

    fn seti(&mut self, word: Word, value: i32) {
        self.asm.storei(Reg::R7, 8 * word as i16, value);
    }

    /// One more; spoils `with`.
    fn count(&mut self, word: Word, with: Reg) {
        self.get(with, word);
        self.asm.alui(Alu::Add, with, 1);
        self.set(word, with);
    }

    /// A field of the event that R6 points to. Those of tracepoints are extended by zeros.
    fn field(&mut self, to: Reg, field: Field) {
        self.asm.load(field.bytes, to, Reg::R6, field.offset);
    }

    /// Only its low 32 bits: arguments of raw tracepoints are 64 bits wide.
    fn unsigned(&mut self, register: Reg) {
        self.asm.alui(Alu::ShiftLeft, register, 32);
        self.asm.alui(Alu::ShiftRight, register, 32);
    }

    /// R0 = the entry of a map whose key lies on the stack; 0 if there is none.
    fn lookup(&mut self, map: i32, key: i16) {
        self.asm.map(Reg::R1, map);
        self.asm.mov(Reg::R2, Reg::Fp);
        self.asm.alui(Alu::Add, Reg::R2, i32::from(key));
        self.asm.call(Helper::MapLookup);
    }

    /// R0 = what all programs share; `otherwise` cannot be, and the verifier wants to know.
    fn shared(&mut self, otherwise: Label) {
        self.asm.storei(Reg::Fp, stack::KEY, 0);
        self.lookup(self.maps.shared, stack::KEY);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, otherwise);
    }

    /// What the kernel's helper returns, or in tests the value that was injected in its place.
    fn helper_or_injected(&mut self, to: Reg, helper: Helper, place: i16) {
        match self.maps.given {
            None => {
                self.asm.call(helper);
                if to != Reg::R0 {
                    self.asm.mov(to, Reg::R0);
                }
            }
            Some(given) => {
                self.asm.storei(Reg::Fp, stack::KEY, 0);
                self.lookup(given, stack::KEY);
                self.asm.jump_ifi(When::Equal, Reg::R0, 0, self.out);
                self.asm.load(8, to, Reg::R0, place);
            }
        }
    }

    fn time(&mut self, to: Reg) {
        self.helper_or_injected(to, Helper::Time, 0);
    }

    /// Puts R8 and the word on the stack into the ring of this CPU, if there is one.
    fn ring(&mut self) {
        let Some((ring, events)) = self.maps.ring else { return };
        let full = self.asm.label();
        self.helper_or_injected(Reg::R0, Helper::Cpu, 16);
        self.asm.store(4, Reg::Fp, stack::KEY, Reg::R0);
        self.lookup(ring, stack::KEY);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, full);
        self.asm.movi(Reg::R1, 1);
        self.asm.fetch_add(Reg::R0, 0, Reg::R1);
        self.asm.alui(Alu::And, Reg::R1, events as i32 - 1);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, 4);
        self.asm.alu(Alu::Add, Reg::R0, Reg::R1);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::RING_WORD);
        self.asm.store(8, Reg::R0, 16, Reg::R8);
        self.asm.store(8, Reg::R0, 24, Reg::R1);
        self.asm.place(full);
    }

    /// `to` = the argument of the event.
    fn argument(&mut self, to: Reg) {
        self.asm.mov(to, Reg::R9);
        self.asm.alui(Alu::ShiftLeft, to, 64 - ARGUMENT_BITS as i32);
        self.asm.alui(Alu::ShiftRight, to, 64 - ARGUMENT_BITS as i32);
    }

    /// `to` = the number of the record.
    fn index(&mut self, to: Reg) {
        self.asm.mov(to, Reg::R9);
        self.asm.alui(Alu::ShiftLeft, to, 8);
        self.asm.alui(Alu::ShiftRight, to, 48);
    }
}

/// Where a shared word lies.
const fn shared(word: Shared) -> i16 {
    8 * word as i16
}
