//! The stages behind the entry, which only a guest's own trace tells.
//!
//! ```text
//! below   kvm_inj_virq v | kvm_entry .............................. next injection, or the guest's halt
//! above                      |--guest--> handler of v .. hrtimer_expire_entry --thread--> the woken task runs
//! ```
//! In:  the alignment of a guest's trace. Out: sums of its vCPUs below. The handler of an interrupt begins before another one can
//! be injected and before the guest halts, so the first one of its vector there is its handler, whatever error the clocks have.
//! Vectors are those of group irq_vectors; `irq_handler_entry` has none.

use crate::ledger::model::Vcpu;
use align::guest_side::{Expiry, GuestCpu};
use align::interrupts::{Handler, stretches};
use align::{Alignment, Cpu, Placed};
use base::Span;
use std::collections::BTreeMap;
use walk::stages::TimerStage;
use walk::stages::sums::Vector;

/// Adds what `guest` tells of the `vcpus` below to their sums, of the interrupts with which they entered in `window` of the
/// clock below.
pub(crate) fn add(guest: &Alignment, vcpus: &mut [Vcpu], window: Span) {
    for cpu in &guest.cpus {
        if let Some(vcpu) = vcpus.iter_mut().find(|vcpu| vcpu.tid == cpu.vcpu.tid) {
            add_cpu(guest, cpu, vcpu, window);
        }
    }
}

fn add_cpu(guest: &Alignment, cpu: &Cpu, vcpu: &mut Vcpu, window: Span) {
    let Some(map) = &cpu.map else { return };
    let mut by_vector: BTreeMap<u8, Vec<(&Handler, Placed)>> = BTreeMap::new();
    for handler in &cpu.own.handlers {
        by_vector.entry(handler.vector).or_default().extend(map.place(handler.at).map(|placed| (handler, placed)));
    }
    let mut handlers: BTreeMap<u8, _> =
        by_vector.into_iter().map(|(vector, handlers)| (vector, handlers.into_iter().peekable())).collect();
    let ns = |units: u64| guest.axis.length_ns(units as f64) as u64;
    for stretch in stretches(&cpu.vcpu) {
        let Some(handlers) = handlers.get_mut(&stretch.kind) else { continue };
        while handlers.next_if(|(_, placed)| placed.high < stretch.from).is_some() {}
        let Some((handler, placed)) = handlers.next_if(|(_, placed)| placed.low <= stretch.to) else { continue };
        if !(window.from_ns..window.to_ns).contains(&guest.axis.shown_ns(stretch.from)) {
            continue;
        }
        let sums = vcpu.sums.interrupts.at(Vector(stretch.kind));
        sums.add_guest(ns(placed.value.saturating_sub(stretch.from)), ns(placed.error()));
        if sums.timer(TimerStage::Deliver).count() == 0 {
            continue;
        }
        let Some(Expiry { at, ran }) = expiry(&cpu.own, handler) else { continue };
        if let Some(placed) = map.place(at) {
            sums.add_timer(TimerStage::Guest, ns(placed.value.saturating_sub(stretch.from)));
        }
        if let Some(ran) = ran {
            sums.add_timer(TimerStage::Thread, guest.own_axis.length_ns(ran.saturating_sub(at) as f64) as u64);
        }
    }
    vcpu.sums.settle();
}

/// The timer that expired in `handler`: the first one that woke a task, else the first, before the next handler.
fn expiry(own: &GuestCpu, handler: &Handler) -> Option<Expiry> {
    let next = own.handlers.partition_point(|other| other.at <= handler.at);
    let until = own.handlers.get(next).map_or(u64::MAX, |next| next.at);
    let first = own.expiries.partition_point(|expiry| expiry.at < handler.at);
    let inside = || own.expiries[first..].iter().take_while(|expiry| expiry.at < until);
    let woke = inside().find(|expiry| expiry.ran.is_some());
    woke.or(inside().next()).copied()
}
