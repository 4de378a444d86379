//! Which handler in a guest's own trace belongs to which interrupt that the machine below injected?
//!
//! In:  injections of a vCPU, and the entries of handlers in the guest's trace, each with its vector. Out: causal bounds.
//!
//! ```text
//! below   inject v | entry ...... exit | .. HLT .. inject w   the handler of v begins between that entry
//! above              handler of v ......                      and the guest's halt or the next injection
//! ```
//! A handler begins with interrupts disabled, so the next interrupt cannot be injected before its first event, nor can
//! the guest halt; one that could not be delivered is injected again, and that is the one that counts. Which belongs to
//! which, [`unique_runs`] finds by vectors and times. Vectors whose handlers are more than their injections reach
//! the guest by other ways too (APICv, AVIC) and are left out.
//! Sources: `kvm_inj_virq` in arch/x86/kvm/trace.h; entries of group irq_vectors in arch/x86/include/asm/trace/irq_vectors.h
//! come first in their handlers (arch/x86/kernel/apic/apic.c), Linux 6.12.

use super::host_side::HostVcpu;
use super::inside::Inside;
use super::lines::Bound;
use super::unique_runs::{self, Effect, Known, Stretch};

/// An interrupt that KVM put into an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injection {
    pub at: u64,
    pub vector: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handler {
    /// When it began, on the guest's clock.
    pub at: u64,
    pub vector: u8,
}

/// Bounds of handlers that fit one injection only, by what is `known`, or by a seed.
pub(crate) fn bounds(
    (vcpu, inside): (&HostVcpu, &Inside),
    handlers: &[Handler],
    known: Option<Known<'_>>,
    slopes: (f64, f64),
) -> Vec<Bound> {
    let effects = handlers.iter().map(|handler| Effect { at: handler.at, kind: handler.vector }).collect();
    unique_runs::bounds(inside, stretches(vcpu), effects, known, slopes)
}

/// Where the handlers of the injections into the guest itself must begin.
pub fn stretches(vcpu: &HostVcpu) -> Vec<Stretch<u8>> {
    let next = |windows: &[super::host_side::Window], at: u64| {
        windows.get(windows.partition_point(|window| window.from < at)).map(|window| window.from)
    };
    let end = vcpu.windows.last().map_or(0, |last| last.to);
    let mut stretches: Vec<Stretch<u8>> = Vec::new();
    for Injection { at, vector } in vcpu.injections.iter().copied() {
        let (own, nested) = (next(&vcpu.windows, at), next(&vcpu.nested, at));
        if let Some(last) = stretches.last_mut() {
            last.to = last.to.min(at);
        }
        // What is injected into a guest of the guest is not the guest's to handle.
        if let Some(from) = own.filter(|own| nested.is_none_or(|nested| *own < nested)) {
            let halt = vcpu.halts.get(vcpu.halts.partition_point(|halt| *halt < from));
            stretches.push(Stretch { kind: vector, from, to: halt.map_or(end, |halt| end.min(*halt)) });
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::super::host_side::Window;
    use super::*;

    const OFFSET: u64 = 50_000;
    const SLOPES: (f64, f64) = (0.999, 1.001);

    /// Injections after so many units each; the guest never halts, and handles each 3 units after its entry.
    fn ticking(gap: impl Fn(u64) -> u64) -> (HostVcpu, Vec<Handler>) {
        let (mut vcpu, mut handlers, mut at) = (HostVcpu::default(), Vec::new(), 1_000);
        for number in 0..200 {
            let next = at + gap(number);
            vcpu.injections.push(Injection { at, vector: 0xec });
            vcpu.windows.push(Window { from: at + 2, to: next - 1, cpu: 0 });
            handlers.push(Handler { at: at + 5 + OFFSET, vector: 0xec });
            at = next;
        }
        (vcpu, handlers)
    }

    fn found(vcpu: &HostVcpu, handlers: &[Handler]) -> Vec<Bound> {
        bounds((vcpu, &Inside::of(vcpu, 0)), handlers, None, SLOPES)
    }

    #[test]
    fn an_even_tick_says_nothing_and_an_uneven_one_says_where() {
        let (vcpu, handlers) = ticking(|_| 1_000);
        assert!(found(&vcpu, &handlers[20..150]).is_empty(), "one place further on it fits as well");
        let (vcpu, handlers) = ticking(|number| 1_000 + number * number * 7_919 % 9_001);
        let bounds = found(&vcpu, &handlers[20..150]);
        assert!(!bounds.is_empty());
        let obeys =
            |bound: &Bound| if bound.is_lower { bound.y <= bound.x - OFFSET } else { bound.y >= bound.x - OFFSET };
        assert!(bounds.iter().all(obeys));
    }

    #[test]
    fn a_vector_that_comes_by_other_ways_too_is_left_out() {
        let (mut vcpu, handlers) = ticking(|number| 1_000 + number * number * 7_919 % 9_001);
        vcpu.injections.truncate(100);
        assert!(found(&vcpu, &handlers).is_empty());
    }
}
