// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//! Whose event is it?

use super::{Emitter, shared, stack};
use crate::asm::{Alu, Helper, Label, Reg, When};
use crate::event::{ARGUMENT_BITS, Kind};
use crate::layout::{MOST_RECORDS, MOST_VMS, Shared, SlotWord, Word};

/// In the slot of a CPU: number of the record of the thread that was seen there last.
pub(super) const CURRENT: i16 = 8 * SlotWord::Current as i16;

impl Emitter<'_> {
    /// R0 = the row whose number is at VALUE. A new one is entered under the key at OWN_KEY first, and goes to `end`; at `known` R0 is the
    /// number that was found under it. `full` where there is no such row: it follows this.
    pub(super) fn new_or_known_row(&mut self, keys: i32, rows: i32, known: Label, full: Label, end: Label) {
        self.asm.map(Reg::R1, keys);
        self.asm.mov(Reg::R2, Reg::Fp);
        self.asm.alui(Alu::Add, Reg::R2, i32::from(stack::OWN_KEY));
        self.asm.mov(Reg::R3, Reg::Fp);
        self.asm.alui(Alu::Add, Reg::R3, i32::from(stack::VALUE));
        self.asm.movi(Reg::R4, 0);
        self.asm.call(Helper::MapUpdate);
        self.lookup(rows, stack::VALUE);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, full);
        self.asm.jump(end);
        self.asm.place(known);
        self.asm.load(4, Reg::R1, Reg::R0, 0);
        self.asm.store(4, Reg::Fp, stack::VALUE, Reg::R1);
        self.lookup(rows, stack::VALUE);
        self.asm.jump_ifi(When::Differs, Reg::R0, 0, end);
    }

    /// Notes the thread that has this CPU.
    pub(super) fn pid_tgid(&mut self) {
        self.helper_or_injected(Reg::R0, Helper::PidTgid, 8);
        self.asm.store(8, Reg::Fp, stack::PID_TGID, Reg::R0);
    }

    /// R6 = the slot of this CPU.
    pub(super) fn slot(&mut self) {
        self.helper_or_injected(Reg::R0, Helper::Cpu, 16);
        self.asm.store(8, Reg::Fp, stack::CPU, Reg::R0);
        self.asm.store(4, Reg::Fp, stack::KEY, Reg::R0);
        self.lookup(self.maps.cpus, stack::KEY);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, self.out);
        self.asm.mov(Reg::R6, Reg::R0);
    }

    /// R0 is not 0 if the thread whose id lies there has a record.
    pub(super) fn has_record(&mut self, tid: i16) {
        let none = self.asm.label();
        self.asm.load(4, Reg::R1, Reg::Fp, tid);
        self.asm.alui(Alu::ShiftRight, Reg::R1, 6);
        self.asm.store(4, Reg::Fp, stack::KEY, Reg::R1);
        self.lookup(self.maps.bits, stack::KEY);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, none);
        self.asm.load(8, Reg::R0, Reg::R0, 0);
        self.asm.load(4, Reg::R1, Reg::Fp, tid);
        self.asm.alui(Alu::And, Reg::R1, 63);
        self.asm.alu(Alu::ShiftRight, Reg::R0, Reg::R1);
        self.asm.alui(Alu::And, Reg::R0, 1);
        self.asm.place(none);
    }

    /// R7 = the record of the thread whose id lies there, and its number goes into R9 and to the key on the stack.
    pub(super) fn named(&mut self, tid: i16, otherwise: Label) {
        self.lookup(self.maps.tids, tid);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, otherwise);
        self.asm.load(4, Reg::R1, Reg::R0, 0);
        self.numbered(otherwise);
    }

    /// The same of the record whose number is in R1.
    fn numbered(&mut self, otherwise: Label) {
        self.asm.store(4, Reg::Fp, stack::KEY, Reg::R1);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, ARGUMENT_BITS as i32);
        self.asm.alu(Alu::Or, Reg::R9, Reg::R1);
        self.lookup(self.maps.records, stack::KEY);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, otherwise);
        self.asm.mov(Reg::R7, Reg::R0);
    }

    /// R7 = the record of the thread that has this CPU, which gets one if it `meets` KVM here; R6 = the slot of the CPU.
    pub(super) fn current(&mut self, meets: bool) {
        let (slow, meet, found) = (self.asm.label(), self.asm.label(), self.asm.label());
        let unknown = if meets { meet } else { self.out };
        self.asm.load(8, Reg::R1, Reg::Fp, stack::PID_TGID);
        self.asm.store(4, Reg::Fp, stack::TID, Reg::R1);
        if !meets {
            self.has_record(stack::TID);
            self.asm.jump_ifi(When::Equal, Reg::R0, 0, self.out);
        }
        self.slot();
        self.asm.load(8, Reg::R1, Reg::R6, CURRENT);
        self.asm.jump_ifi(When::Equal, Reg::R1, 0, slow);
        self.asm.store(4, Reg::Fp, stack::KEY, Reg::R1);
        self.lookup(self.maps.records, stack::KEY);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, slow);
        self.asm.mov(Reg::R7, Reg::R0);
        self.get(Reg::R1, Word::Tid);
        self.asm.load(4, Reg::R2, Reg::Fp, stack::TID);
        self.asm.jump_if(When::Differs, Reg::R1, Reg::R2, slow);
        self.asm.load(4, Reg::R1, Reg::Fp, stack::KEY);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, ARGUMENT_BITS as i32);
        self.asm.alu(Alu::Or, Reg::R9, Reg::R1);
        self.asm.jump(found);
        self.asm.place(slow);
        self.lookup(self.maps.tids, stack::TID);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, unknown);
        self.asm.load(4, Reg::R1, Reg::R0, 0);
        self.asm.store(8, Reg::R6, CURRENT, Reg::R1);
        self.numbered(self.out);
        if meets {
            self.asm.jump(found);
            self.asm.place(meet);
            self.meet();
        }
        self.asm.place(found);
    }

    /// A record for a thread that has none.
    fn meet(&mut self) {
        let (most, is_first) = (self.asm.label(), self.asm.label());
        self.shared(self.out);
        self.asm.movi(Reg::R1, 1);
        self.asm.fetch_add(Reg::R0, shared(Shared::Records), Reg::R1);
        self.asm.jump_ifi(When::Below, Reg::R1, MOST_RECORDS as i32, most);
        self.asm.movi(Reg::R1, 1);
        self.asm.fetch_add(Reg::R0, shared(Shared::RecordsLost), Reg::R1);
        self.asm.jump(self.out);
        self.asm.place(most);
        self.asm.store(4, Reg::Fp, stack::VALUE, Reg::R1);
        self.asm.store(8, Reg::R6, CURRENT, Reg::R1);
        self.numbered(self.out);
        self.asm.load(8, Reg::R1, Reg::Fp, stack::PID_TGID);
        self.asm.alui(Alu::ShiftRight, Reg::R1, 32);
        self.set(Word::Tgid, Reg::R1);
        self.asm.load(4, Reg::R1, Reg::Fp, stack::TID);
        self.set(Word::Tid, Reg::R1);
        self.time(Reg::R8);
        for word in [Word::Met, Word::Since, Word::Last] {
            self.set(word, Reg::R8);
        }
        // BPF_NOEXIST: whoever looks through /proc may have been faster.
        self.asm.map(Reg::R1, self.maps.tids);
        self.asm.mov(Reg::R2, Reg::Fp);
        self.asm.alui(Alu::Add, Reg::R2, i32::from(stack::TID));
        self.asm.mov(Reg::R3, Reg::Fp);
        self.asm.alui(Alu::Add, Reg::R3, i32::from(stack::VALUE));
        self.asm.movi(Reg::R4, 1);
        self.asm.call(Helper::MapUpdate);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, is_first);
        self.seti(Word::Tid, 0);
        self.asm.jump(self.out);
        self.asm.place(is_first);
        self.belongs();
        self.run(true);
        self.mark();
        // The ring says whose record it is.
        self.index(Reg::R1);
        self.asm.alui(Alu::ShiftLeft, Reg::R1, ARGUMENT_BITS as i32);
        self.asm.wide(Reg::R2, (Kind::Met as u64) << 56);
        self.asm.alu(Alu::Or, Reg::R1, Reg::R2);
        self.asm.load(4, Reg::R2, Reg::Fp, stack::TID);
        self.asm.alu(Alu::Or, Reg::R1, Reg::R2);
        self.asm.store(8, Reg::Fp, stack::RING_WORD, Reg::R1);
        self.ring();
    }

    /// The record is one of the VM of its process, which gets a number if it has none.
    fn belongs(&mut self) {
        let (known, none) = (self.asm.label(), self.asm.label());
        self.get(Reg::R1, Word::Tgid);
        self.asm.store(4, Reg::Fp, stack::WAITER, Reg::R1);
        self.lookup(self.maps.vm_keys, stack::WAITER);
        self.asm.jump_ifi(When::Differs, Reg::R0, 0, known);
        self.shared(none);
        self.asm.movi(Reg::R1, 1);
        self.asm.fetch_add(Reg::R0, shared(Shared::Vms), Reg::R1);
        self.asm.jump_ifi(When::AtLeast, Reg::R1, MOST_VMS as i32, none);
        self.asm.store(4, Reg::Fp, stack::LENGTH, Reg::R1);
        // Two vCPUs of a VM may be met at once: whose number stays is looked up.
        self.asm.map(Reg::R1, self.maps.vm_keys);
        self.asm.mov(Reg::R2, Reg::Fp);
        self.asm.alui(Alu::Add, Reg::R2, i32::from(stack::WAITER));
        self.asm.mov(Reg::R3, Reg::Fp);
        self.asm.alui(Alu::Add, Reg::R3, i32::from(stack::LENGTH));
        self.asm.movi(Reg::R4, 1);
        self.asm.call(Helper::MapUpdate);
        self.lookup(self.maps.vm_keys, stack::WAITER);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, none);
        self.asm.place(known);
        self.asm.load(4, Reg::R1, Reg::R0, 0);
        self.set(Word::Vm, Reg::R1);
        self.asm.place(none);
    }

    /// Sets the bit of a thread.
    fn mark(&mut self) {
        let none = self.asm.label();
        self.asm.load(4, Reg::R1, Reg::Fp, stack::TID);
        self.asm.alui(Alu::ShiftRight, Reg::R1, 6);
        self.asm.store(4, Reg::Fp, stack::KEY, Reg::R1);
        self.lookup(self.maps.bits, stack::KEY);
        self.asm.jump_ifi(When::Equal, Reg::R0, 0, none);
        self.asm.load(4, Reg::R2, Reg::Fp, stack::TID);
        self.asm.alui(Alu::And, Reg::R2, 63);
        self.asm.movi(Reg::R1, 1);
        self.asm.alu(Alu::ShiftLeft, Reg::R1, Reg::R2);
        self.asm.atomic_or(Reg::R0, 0, Reg::R1);
        self.asm.place(none);
    }
}
