//! What does the KVM below offer to this machine's kernel?
//!
//! CPUID base + 1, eax: arch/x86/include/uapi/asm/kvm_para.h, Linux 6.12.

use crate::model::Seen;
use base::figure::Standing;
use host::Virtualization;

/// Clock page at MSR 0x4b564d01: KVM_FEATURE_CLOCKSOURCE2.
const CLOCK: u32 = 3;
const ASYNC_PF: u32 = 4;
const STEAL_TIME: u32 = 5;
const PV_EOI: u32 = 6;
const UNHALT: u32 = 7;
const TLB_FLUSH: u32 = 9;
const SEND_IPI: u32 = 11;
const POLL_CONTROL: u32 = 12;
const SCHED_YIELD: u32 = 13;
const ASYNC_PF_INT: u32 = 14;
const EXT_DEST_ID: u32 = 15;
const CLOCK_STABLE: u32 = 24;
/// The one bit of edx: KVM_HINTS_REALTIME.
const REALTIME: u32 = 0;

/// A bit of KVM's word; no row where no KVM is below, or CPUID was not taken on bare metal.
fn bit(facts: &Virtualization, bit: u32) -> Option<Seen> {
    let words = facts.below.kvm?;
    let leaf = words.base + 1;
    let set = words.features >> bit & 1 == 1;
    let state = if set { Standing::On } else { Standing::Absent };
    Some(Seen::new(state, format!("CPUID {leaf:#x} eax bit {bit} is {}", u32::from(set))))
}

pub(super) fn clock(facts: &Virtualization) -> Option<Seen> {
    bit(facts, CLOCK)
}

/// Clock that needs no comparison between CPUs.
pub(super) fn clock_stable(facts: &Virtualization) -> Option<Seen> {
    bit(facts, CLOCK_STABLE)
}

pub(super) fn steal_time(facts: &Virtualization) -> Option<Seen> {
    bit(facts, STEAL_TIME)
}

/// End of interrupt through memory.
pub(super) fn eoi(facts: &Virtualization) -> Option<Seen> {
    bit(facts, PV_EOI)
}

/// Deferred TLB flushes.
pub(super) fn tlb_flush(facts: &Virtualization) -> Option<Seen> {
    bit(facts, TLB_FLUSH)
}

pub(super) fn ipi(facts: &Virtualization) -> Option<Seen> {
    bit(facts, SEND_IPI)
}

pub(super) fn async_pf(facts: &Virtualization) -> Option<Seen> {
    bit(facts, ASYNC_PF)
}

/// The guest may switch off halt polling.
pub(super) fn poll_control(facts: &Virtualization) -> Option<Seen> {
    bit(facts, POLL_CONTROL)
}

/// Locks wait in the level below.
pub(super) fn unhalt(facts: &Virtualization) -> Option<Seen> {
    bit(facts, UNHALT)
}

/// Yield to a certain vCPU.
pub(super) fn sched_yield(facts: &Virtualization) -> Option<Seen> {
    bit(facts, SCHED_YIELD)
}

/// Asynchronous page faults end with an interrupt.
pub(super) fn async_pf_int(facts: &Virtualization) -> Option<Seen> {
    bit(facts, ASYNC_PF_INT)
}

/// More APIC ids in messages.
pub(super) fn ext_dest_id(facts: &Virtualization) -> Option<Seen> {
    bit(facts, EXT_DEST_ID)
}

/// vCPUs are never pre-empted for long.
pub(super) fn realtime(facts: &Virtualization) -> Option<Seen> {
    let words = facts.below.kvm?;
    let set = words.hints >> REALTIME & 1 == 1;
    let state = if set { Standing::On } else { Standing::Absent };
    Some(Seen::new(state, format!("CPUID {:#x} edx bit {REALTIME} is {}", words.base + 1, u32::from(set))))
}
