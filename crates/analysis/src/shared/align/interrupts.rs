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
//! never leaves the CPU, fits everywhere, and then nothing is said. Of a few places side by side what holds for all is. Vectors whose handlers are more than
//! their injections reach the guest by other ways too (APICv, AVIC) and are left out.
//! Sources: `kvm_inj_virq` in arch/x86/kvm/trace.h; entries of group irq_vectors in arch/x86/include/asm/trace/irq_vectors.h
//! come first in their handlers (arch/x86/kernel/apic/apic.c), Linux 6.12.

use super::below::VcpuBelow;
use super::inside::Inside;
use super::lines::{Bound, Lines};

/// Handlers in a row that a seed begins with, and how many it may grow to.
const SEED: usize = 24;
const LONGEST_SEED: usize = 1_536;

/// So few places are looked at closely; with so many left after four times the first length the tick is even, and more of
/// it will not tell them apart.
const FEW: usize = 64;
const MANY: usize = 4_096;

/// Places side by side of which each may be the right one: a handler that comes right after its entry may as well have
/// come at the end of the stretch before. Then what holds for all of them holds.
const NEIGHBOURS: usize = 3;

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
    let (mut injected, mut handled) = ([0u64; 256], [0u64; 256]);
    stretches.iter().for_each(|stretch| injected[usize::from(stretch.vector)] += 1);
    handlers.iter().for_each(|handler| handled[usize::from(handler.vector)] += 1);
    let usable = |vector: u8| handled[usize::from(vector)] <= injected[usize::from(vector)];
    let handlers: Vec<Handler> = handlers.iter().filter(|one| usable(one.vector)).copied().collect();
    stretches.retain(|stretch| usable(stretch.vector) && handled[usize::from(stretch.vector)] > 0);
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
            places.retain(|place| self.is_near(*place, &handlers[..length]));
            if places.len() <= FEW {
                places.retain(|place| self.line(*place, &handlers[..length]).is_some());
            }
            let (Some(first), Some(last)) = (places.first(), places.last()) else { return None };
            let tried = *first > 0 && last + length < self.stretches.len();
            match places.len() {
                1 => return tried.then(|| joined(&self.stretches[*first..], &handlers[..length])),
                left if length == longest => {
                    let neighbours = left <= NEIGHBOURS && last - first < NEIGHBOURS;
                    return (tried && neighbours).then(|| self.either(&places, &handlers[..length]));
                }
                left if length >= 4 * SEED && left > MANY => return None,
                _ => length = longest.min(length * 2),
            }
        }
        None
    }

    /// What holds whichever of some places is the right one.
    fn either(&self, places: &[usize], handlers: &[Handler]) -> Vec<Bound> {
        let lines: Vec<Lines> = places.iter().filter_map(|place| self.line(*place, handlers)).collect();
        let bound = |handler: &Handler| {
            let at = || lines.iter().map(|line| line.at(handler.at));
            let (from, to) = (at().map(|(low, _)| low).min()?, at().map(|(_, high)| high).max()?);
            Some(both(handler, &Stretch { vector: handler.vector, from, to }))
        };
        handlers.iter().filter_map(bound).flatten().collect()
    }

    /// True if the times that passed allow it. Most places are refused by two of them.
    fn is_near(&self, place: usize, handlers: &[Handler]) -> bool {
        let stretches = &self.stretches[place..];
        let (first, start) = (handlers[0], stretches[0]);
        stretches.len() >= handlers.len()
            && handlers.iter().zip(stretches).all(|(handler, stretch)| {
                let passed = handler.at.saturating_sub(first.at) as f64;
                handler.vector == stretch.vector
                    && stretch.to.saturating_sub(start.from) as f64 >= passed * self.slopes.0
                    && stretch.from.saturating_sub(start.to) as f64 <= passed * self.slopes.1
            })
    }

    /// The line that leads each handler into the stretch of its place, and into a window.
    fn line(&self, place: usize, handlers: &[Handler]) -> Option<Lines> {
        let times: Vec<u64> = handlers.iter().map(|handler| handler.at).collect();
        self.inside.line(&mut joined(&self.stretches[place..], handlers), &times, self.slopes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::below::Window;
    use super::*;

    const OFFSET: u64 = 50_000;
    const SLOPES: (f64, f64) = (0.999, 1.001);

    /// Injections after so many units each; the guest never halts, and handles each 3 units after its entry.
    fn ticking(gap: impl Fn(u64) -> u64) -> (VcpuBelow, Vec<Handler>) {
        let (mut vcpu, mut handlers, mut at) = (VcpuBelow::default(), Vec::new(), 1_000);
        for number in 0..200 {
            let next = at + gap(number);
            vcpu.injections.push(Injection { at, vector: 0xec });
            vcpu.windows.push(Window { from: at + 2, to: next - 1, cpu: 0 });
            handlers.push(Handler { at: at + 5 + OFFSET, vector: 0xec });
            at = next;
        }
        (vcpu, handlers)
    }

    fn found(vcpu: &VcpuBelow, handlers: &[Handler]) -> Vec<Bound> {
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
