//! What the machine below took from a guest's CPUs, on the clock of the guest's own trace.
//!
//! ```text
//! below, CPU 1     runs ...... | preempted: hog | wake-up | runs     one stop; nothing in the guest's trace tells of it
//! guest, thread    sleeps                                 | runs     its timer was due in it
//! ```
//! A guest that is stopped notices nothing, so its threads have no delay in its own trace. A stop delays a thread that had the CPU, or
//! wanted it by the time it was over; one that slept on was not asked for.

use super::clocks::GuestClock;
use super::follow::Seen;
use crate::Input;
use crate::ledger::model::{Flow, PartFlow};
use crate::losses::{Cause, PartLosses};
use crate::samples::SampleClock;
use base::Span;
use std::collections::BTreeMap;

/// What lies closer together is one stop, and a thread that runs so soon behind one was waited for: the interrupt that wakes it comes
/// with the next entry. Our own limit.
pub(super) const SOON_NS: u64 = 50_000;

/// The losses of a guest's CPUs.
pub(super) struct Below<'p> {
    pub part: &'p PartFlow,
    /// By the guest's number of the CPU, in time order.
    pub stops: BTreeMap<u32, Vec<Stop>>,
}

/// The CPU was away without a pause.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stop {
    pub span: Span,
    pub pieces: Vec<(Span, Cause)>,
}

impl<'p> Below<'p> {
    /// Of the guest whose trace is at `guest`; `None` if it is none, or nothing relates its clock to the one below.
    pub(super) fn of(input: &Input, flow: &'p Flow, losses: &[PartLosses], guest: usize) -> Option<Self> {
        let own = &flow.parts[guest];
        let alignment = &own.aligned.as_ref()?.alignment;
        let below = flow.parts.iter().position(|part| part.machine == alignment.below && part.twin_of.is_none())?;
        let (part, losses) = (&flow.parts[below], losses.get(below)?);
        let mut stops = BTreeMap::new();
        for cpu in &alignment.cpus {
            let place = part.vcpus.iter().position(|vcpu| vcpu.tid == cpu.vcpu.tid);
            let vcpu = place.and_then(|place| losses.vcpus.get(place));
            let clock = GuestClock::new(input, flow, guest, Some(cpu.cpu), SampleClock::Trace);
            let Some((vcpu, clock)) = vcpu.zip(clock) else { continue };
            let on_guest = |since_ns: u64| {
                let wanted_ns = part.span.from_ns.saturating_add(since_ns);
                first_at(own.span, |guest_ns| clock.at(guest_ns).is_some_and(|at| at.at_ns >= wanted_ns))
            };
            let pieces = vcpu.lost.iter().map(|lost| {
                (Span { from_ns: on_guest(lost.span.from_ns), to_ns: on_guest(lost.span.to_ns) }, lost.cause)
            });
            stops.insert(cpu.cpu, Stop::all(pieces));
        }
        (!stops.is_empty()).then_some(Self { part, stops })
    }

    /// The stops that delayed the thread `tid`, and that began in `span`, which is over.
    pub(super) fn delayed<'s>(&'s self, seen: &'s Seen, tid: i32, span: Span) -> impl Iterator<Item = &'s Stop> {
        self.stops.iter().flat_map(move |(cpu, stops)| {
            let first = stops.partition_point(|stop| stop.span.from_ns < span.from_ns);
            let begun = stops[first..].iter().take_while(move |stop| stop.span.from_ns < span.to_ns);
            begun.filter(move |stop| {
                let until = Span { to_ns: stop.span.to_ns.saturating_add(SOON_NS), ..stop.span };
                seen.wants(tid, *cpu, until)
            })
        })
    }

    /// When the first stop that is not over at `upto_ns` begins, of any CPU.
    pub(super) fn open_at(&self, upto_ns: u64) -> u64 {
        let open = |stops: &Vec<Stop>| {
            let place = stops.partition_point(|stop| stop.span.to_ns.saturating_add(SOON_NS) <= upto_ns);
            stops.get(place).map(|stop| stop.span.from_ns)
        };
        self.stops.values().filter_map(open).fold(upto_ns, u64::min)
    }
}

impl Stop {
    /// Those that these pieces, in time order, make up.
    pub(super) fn all(pieces: impl IntoIterator<Item = (Span, Cause)>) -> Vec<Stop> {
        let mut stops: Vec<Stop> = Vec::new();
        for (span, cause) in pieces.into_iter().filter(|(span, _)| span.length_ns() > 0) {
            match stops.last_mut().filter(|stop| span.from_ns <= stop.span.to_ns) {
                Some(stop) => {
                    stop.span.to_ns = stop.span.to_ns.max(span.to_ns);
                    stop.pieces.push((span, cause));
                }
                None => stops.push(Stop { span, pieces: vec![(span, cause)] }),
            }
        }
        stops
    }
}

/// The first time in `span` of which `is_there` holds, as it does from then on; the end of the span where there is none.
fn first_at(span: Span, is_there: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (span.from_ns, span.to_ns);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_there(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// What is left of `pieces` beside `stops`, both in time order: where the machine below had stopped the guest, nobody in the guest took
/// anything.
pub(super) fn beside(pieces: Vec<(Span, Cause)>, stops: &[&Stop]) -> Vec<(Span, Cause)> {
    let mut left = Vec::new();
    for (piece, cause) in pieces {
        let mut at_ns = piece.from_ns;
        for stop in stops.iter().filter(|stop| stop.span.from_ns < piece.to_ns && stop.span.to_ns > piece.from_ns) {
            if stop.span.from_ns > at_ns {
                left.push((Span { from_ns: at_ns, to_ns: stop.span.from_ns }, cause));
            }
            at_ns = at_ns.max(stop.span.to_ns);
        }
        if at_ns < piece.to_ns {
            left.push((Span { from_ns: at_ns, to_ns: piece.to_ns }, cause));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::{By, LostIn};

    fn piece(from_ns: u64, to_ns: u64, tid: i32) -> (Span, Cause) {
        (Span { from_ns, to_ns }, Cause { state: LostIn::Preempted, by: By::Task(tid) })
    }

    #[test]
    fn pieces_that_touch_are_one_stop_and_the_guest_took_nothing_meanwhile() {
        let stops = Stop::all([piece(100, 200, 1), piece(200, 300, 2), piece(300, 300, 3), piece(500, 600, 1)]);
        let spans: Vec<_> = stops.iter().map(|stop| (stop.span.from_ns, stop.span.to_ns, stop.pieces.len())).collect();
        assert_eq!(spans, [(100, 300, 2), (500, 600, 1)]);
        let all: Vec<&Stop> = stops.iter().collect();
        let left = beside(vec![piece(50, 250, 7), piece(350, 700, 8), piece(510, 590, 9)], &all);
        assert_eq!(left, [piece(50, 100, 7), piece(350, 500, 8), piece(600, 700, 8)]);
    }

    #[test]
    fn a_time_below_is_found_on_the_guests_clock() {
        let first = |is_there: fn(u64) -> bool| first_at(Span { from_ns: 1_000, to_ns: 9_000 }, is_there);
        assert_eq!([first(|ns| ns * 2 >= 4_001), first(|_| true), first(|_| false)], [2_001, 1_000, 9_000]);
    }
}
