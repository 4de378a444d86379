//! Who took the CPU of a thread that wants it all the time, in windows of a trace?
//!
//! ```text
//! trace    | on .......................... |          | on ...
//! window        | ran | irq | ran | hog |                 |
//! spent           ran + taken, by cause + asleep + unknown = length of the window
//! ```
//! A recorder may have paused between windows, and no event tells: what was seen before a window's own stretch is forgotten, and
//! until a CPU's first event in it nothing is known of its thread, which is an amount of its own.

use super::clocks::OwnClock;
use super::follow::{Hear, Seen, follow};
use super::sums::Part;
use crate::ledger::model::Flow;
use crate::losses::By;
use crate::samples::SampleClock;
use crate::{Given, Input};
use base::Span;
use std::collections::BTreeMap;
use walk::events::host_interrupts::Handlers;

/// A busy CPU has an event at every tick (CONFIG_HZ is 100 at least).
const TICK_NS: u64 = 10_000_000;

/// A thread in a window, by the clock that is named with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    pub tid: i32,
    pub window: Span,
}

/// What became of the time of a thread in a window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    pub ran_ns: u64,
    pub asleep_ns: u64,
    /// What others took, by whom.
    pub taken: BTreeMap<By, Part>,
    /// The trace does not tell.
    pub unknown_ns: u64,
}

/// What the trace at `place` shows of all that was asked for, in its order, and what interrupts are called there; `None` if it shows no
/// switches, or if nothing relates its clock to `clock`.
pub fn spent(
    (input, given, flow): (&Input, &Given, &Flow),
    place: usize,
    (asked, clock): (&[Asked], SampleClock),
    progress: &mut dyn FnMut(u64, u64),
) -> Option<(Vec<Spent>, Handlers)> {
    let part = &flow.parts[place];
    if !part.has_switches {
        return None;
    }
    let clock = OwnClock::new(input, flow, place, clock)?;
    let at = |asked_ns: u64| Some(clock.at(asked_ns)?.at_ns);
    let placed = |(number, asked): (usize, &Asked)| {
        let window = Span { from_ns: at(asked.window.from_ns)?, to_ns: at(asked.window.to_ns)? };
        Some((number, Asked { window, ..*asked }))
    };
    let mut placed: Vec<(usize, Asked)> = asked.iter().enumerate().map(placed).collect::<Option<_>>()?;
    placed.sort_by_key(|(_, asked)| asked.window.from_ns);
    let fitted = part.clock_fitted_to.is_some().then(|| part.clock.clone());
    let mut windows = Windows { asked: placed, next: 0, spent: vec![Spent::default(); asked.len()] };
    let (mut seen, end_ns) = follow(&input.parts[place], &given.traces.ignore_events, fitted, &mut windows, progress);
    // Nothing happened between the last event and the end of the last window, if that is near.
    let ends = asked.iter().filter_map(|asked| at(asked.window.to_ns)).filter(|to_ns| *to_ns <= end_ns + TICK_NS);
    seen.end(ends.fold(end_ns, u64::max), &mut windows);
    let Windows { asked, next, mut spent, .. } = windows;
    // A trace that was cut has nothing of windows behind its end.
    for (number, asked) in asked.iter().skip(next) {
        spent[*number].unknown_ns = asked.window.length_ns();
    }
    Some((spent, part.handlers.clone()))
}

/// Looks at windows one after the other, while a trace is read.
struct Windows {
    /// By their begins, with their places among the answers.
    asked: Vec<(usize, Asked)>,
    /// The first that was not looked at.
    next: usize,
    spent: Vec<Spent>,
}

impl Hear for Windows {
    fn settled(&mut self, seen: &Seen, upto_ns: u64) -> u64 {
        while let Some((number, asked)) = self.asked.get(self.next).filter(|(_, asked)| asked.window.to_ns <= upto_ns) {
            self.spent[*number] = seen.spent(asked.tid, asked.window);
            self.next += 1;
        }
        self.asked.get(self.next).map_or(upto_ns, |(_, asked)| asked.window.from_ns.min(upto_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_is_looked_at_once_it_is_over() {
        let asked = |tid, from_ns: u64| {
            let window = Span { from_ns, to_ns: from_ns + 100 };
            Asked { tid, window }
        };
        // Two threads in each of two windows.
        let asked = [asked(7, 1_000), asked(8, 1_000), asked(7, 5_000), asked(8, 5_000)];
        let spent = vec![Spent::default(); asked.len()];
        let mut windows = Windows { asked: asked.into_iter().enumerate().collect(), next: 0, spent };
        let seen = Seen::default();
        assert_eq!((windows.settled(&seen, 1_099), windows.next), (1_000, 0), "what the window needs is kept");
        assert_eq!((windows.settled(&seen, 4_960), windows.next), (4_960, 2));
        assert_eq!((windows.settled(&seen, 9_000), windows.next), (9_000, 4));
        assert!(windows.spent.iter().all(|spent| spent.unknown_ns == 100), "nothing was seen: {:?}", windows.spent);
    }
}
