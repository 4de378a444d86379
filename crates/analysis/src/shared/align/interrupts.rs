//! Which handler in a guest's own trace belongs to which interrupt that the machine below injected?
//!
//! In:  injections of a vCPU, and the entries of handlers in the guest's trace, each with its vector. Out: causal bounds.
//!
//! ```text
//! below   inject v | entry ...... exit | .. HLT .. inject w   the handler of v begins between that entry
//! above              handler of v ......                      and the guest's halt or the next injection
//! ```
//! A handler begins with interrupts disabled, so the next interrupt cannot be injected before its first event, nor can
//! the guest halt; one that could not be delivered is injected again, and that is the one that counts. Where a map is known, a handler belongs to
//! the only injection of its vector whose stretch it can lie in. Where none is, a seed is looked for: so many handlers in
//! a row that fit a row of injections at one place only, in vectors, in times, and in the windows in which the guest ran.
//! One place further on either side they must have been tried and not fit: a timer that ticks evenly, in a guest that
//! never leaves the CPU, fits everywhere, and then nothing is said. Vectors whose handlers are more than
//! their injections reach the guest by other ways too (APICv, AVIC) and are left out.
//! Sources: `kvm_inj_virq` in arch/x86/kvm/trace.h; entries of group irq_vectors in arch/x86/include/asm/trace/irq_vectors.h
//! come first in their handlers (arch/x86/kernel/apic/apic.c), Linux 6.12.

use super::below::VcpuBelow;
use super::inside::Inside;
use super::lines::{Bound, Lines};

/// Handlers in a row that a seed begins with, and how many it may grow to.
const SEED: usize = 24;
const LONGEST_SEED: usize = 1_536;

/// Seeds that are tried, from different places of the guest's trace.
const SEEDS: usize = 8;

/// Rounds in which a map reaches from its seed to the ends of the traces: each extends it several times.
const ROUNDS: usize = 12;

/// An interrupt that KVM put into an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injection {
    /// When.
    pub at: u64,
    /// Which.
    pub vector: u8,
}

/// A handler of the guest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handler {
    /// When it began, on the guest's clock.
    pub at: u64,
    /// Of which vector.
    pub vector: u8,
}

/// Where a handler must begin: from an entry to the guest's halt or the next injection.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    vector: u8,
    from: u64,
    to: u64,
}

/// Between which times below a time of the guest's lies, by what is known already.
pub type Known<'a> = &'a dyn Fn(u64) -> Option<(u64, u64)>;

/// Bounds of handlers that fit one injection only, by what is `known`, or by a seed.
pub fn bounds(
    (vcpu, inside): (&VcpuBelow, &Inside),
    handlers: &[Handler],
    known: Option<Known<'_>>,
    slopes: (f64, f64),
) -> Vec<Bound> {
    let mut stretches = stretches(vcpu);
    let count = |vectors: &mut dyn Iterator<Item = u8>, wanted: u8| vectors.filter(|one| *one == wanted).count();
    let injected = |vector: u8| count(&mut stretches.iter().map(|stretch| stretch.vector), vector);
    let mut usable = [false; 256];
    for vector in 0..=u8::MAX {
        let handled = count(&mut handlers.iter().map(|handler| handler.vector), vector);
        usable[usize::from(vector)] = handled > 0 && handled <= injected(vector);
    }
    let handlers: Vec<Handler> = handlers.iter().filter(|one| usable[usize::from(one.vector)]).copied().collect();
    stretches.retain(|stretch| usable[usize::from(stretch.vector)]);
    match known {
        Some(known) => fitting(&stretches, &handlers, known),
        None => Seeds { stretches: &stretches, inside, slopes }.grown(&handlers).unwrap_or_default(),
    }
}

/// Where the handlers of the injections into the guest itself must begin.
fn stretches(vcpu: &VcpuBelow) -> Vec<Stretch> {
    let next = |windows: &[super::below::Window], at: u64| {
        windows.get(windows.partition_point(|window| window.from < at)).map(|window| window.from)
    };
    let end = vcpu.windows.last().map_or(0, |last| last.to);
    let mut stretches: Vec<Stretch> = Vec::new();
    for Injection { at, vector } in vcpu.injections.iter().copied() {
        let (own, nested) = (next(&vcpu.windows, at), next(&vcpu.nested, at));
        if let Some(last) = stretches.last_mut() {
            last.to = last.to.min(at);
        }
        // What is injected into a guest of the guest is not the guest's to handle.
        if let Some(from) = own.filter(|own| nested.is_none_or(|nested| *own < nested)) {
            let halt = vcpu.halts.get(vcpu.halts.partition_point(|halt| *halt < from));
            stretches.push(Stretch { vector, from, to: halt.map_or(end, |halt| end.min(*halt)) });
        }
    }
    stretches
}

/// Bounds of those handlers for which the map leaves one injection only.
fn fitting(stretches: &[Stretch], handlers: &[Handler], known: Known<'_>) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for handler in handlers {
        let Some((low, high)) = known(handler.at) else { continue };
        let first = stretches.partition_point(|stretch| stretch.to < low);
        let near = stretches[first..].iter().take_while(|stretch| stretch.from <= high);
        let mut own = near.filter(|stretch| stretch.vector == handler.vector);
        if let (Some(only), None) = (own.next(), own.next()) {
            bounds.extend(both(handler, only));
        }
    }
    bounds
}

fn both(handler: &Handler, stretch: &Stretch) -> [Bound; 2] {
    let bound = |y: u64, is_lower: bool| Bound { x: handler.at, y, is_lower };
    [bound(stretch.from, true), bound(stretch.to, false)]
}

fn joined(stretches: &[Stretch], handlers: &[Handler]) -> Vec<Bound> {
    handlers.iter().zip(stretches).flat_map(|(handler, stretch)| both(handler, stretch)).collect()
}

/// Where handlers may fit.
struct Seeds<'a> {
    stretches: &'a [Stretch],
    inside: &'a Inside,
    slopes: (f64, f64),
}

impl Seeds<'_> {
    /// From a seed to as much as fits.
    fn grown(&self, handlers: &[Handler]) -> Option<Vec<Bound>> {
        let step = (handlers.len() / SEEDS).max(1);
        let mut bounds = (0..SEEDS).find_map(|seed| self.seeded(handlers.get(seed * step..)?))?;
        for _ in 0..ROUNDS {
            let lines = Lines::one(&bounds, self.slopes)?;
            let more = fitting(self.stretches, handlers, &|x| Some(lines.at(x)));
            if more.len() <= bounds.len() {
                break;
            }
            bounds = more;
        }
        // The line that they leave must hold all that it was not made of: else the clock is no line.
        Lines::one(&bounds, self.slopes).map(|_| bounds)
    }

    /// The only place at which the first handlers fit the injections.
    fn seeded(&self, handlers: &[Handler]) -> Option<Vec<Bound>> {
        let longest = LONGEST_SEED.min(handlers.len());
        let mut length = SEED;
        let mut places: Vec<usize> = (0..self.stretches.len()).collect();
        while length <= longest {
            places.retain(|place| self.fits(*place, &handlers[..length]));
            match places[..] {
                [] => return None,
                [only] => {
                    let tried = only > 0 && only + length < self.stretches.len();
                    return tried.then(|| joined(&self.stretches[only..], &handlers[..length]));
                }
                _ if length == longest => return None,
                _ => length = longest.min(length * 2),
            }
        }
        None
    }

    /// True if a line leads each handler into the stretch of its place, and into a window. Most places are refused by two
    /// times alone.
    fn fits(&self, place: usize, handlers: &[Handler]) -> bool {
        let stretches = &self.stretches[place..];
        if stretches.len() < handlers.len() {
            return false;
        }
        let (first, start) = (handlers[0], stretches[0]);
        let near = handlers.iter().zip(stretches).all(|(handler, stretch)| {
            let passed = handler.at.saturating_sub(first.at) as f64;
            handler.vector == stretch.vector
                && stretch.to.saturating_sub(start.from) as f64 >= passed * self.slopes.0
                && stretch.from.saturating_sub(start.to) as f64 <= passed * self.slopes.1
        });
        let times: Vec<u64> = handlers.iter().map(|handler| handler.at).collect();
        near && self.inside.line(&mut joined(stretches, handlers), &times, self.slopes).is_some()
    }
}
