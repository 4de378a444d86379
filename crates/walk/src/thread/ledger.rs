//! Pieces of a thread's time, without gaps, each given away once its state is known.
//!
//! ```text
//! kvm_entry -------- kvm_exit ------ next positional event ------ kvm_entry
//!    |  Guest(?)         |  Handling(?)     |  both get their level     |
//!    '------------------- open ------------'------- given at once ------'
//! ```

use super::Surroundings;
use crate::state::{State, TracedLevel};
use crate::walk::Sink;

/// A piece of time whose level may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Guest,
    Handling,
    Plain(State),
}

impl Label {
    fn is_off(self) -> bool {
        matches!(self, Label::Plain(state) if state.is_off())
    }
}

/// What a thread has spent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sums {
    /// Off the CPU, in one of the four states that no cost contains.
    pub off_ns: u64,
    /// In the guest of L0 itself.
    pub(crate) guest1_ns: u64,
    /// In the VMM.
    pub user_ns: u64,
}

/// The pieces of one thread.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    /// Start of the piece that is not over.
    pub since_ns: u64,
    /// What was spent in pieces that are given away, and off the CPU or in the VMM also in others.
    pub sums: Sums,
    /// Level of guest and handling pieces, once known.
    pub settled: Option<TracedLevel>,
    open: Vec<(Label, u64, u64)>,
}

/// Most open pieces: between two entries lie a few, and thousands of them only where exits are not recorded.
const MOST_OPEN: usize = 4096;

impl Ledger {
    /// A ledger that begins at `origin_ns`.
    pub(super) fn new(origin_ns: u64) -> Self {
        Self { since_ns: origin_ns, sums: Sums::default(), settled: None, open: Vec::new() }
    }

    /// Ends the piece that is not over at `to_ns`, as `label`.
    #[inline]
    pub(super) fn end(&mut self, label: Label, to_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        let from_ns = self.since_ns;
        if to_ns == from_ns {
            return;
        }
        self.since_ns = to_ns;
        if let Label::Plain(state) = label {
            if state.is_off() {
                self.sums.off_ns += to_ns - from_ns;
            } else if state == State::Userspace {
                self.sums.user_ns += to_ns - from_ns;
            }
        }
        match (label, self.settled) {
            (Label::Plain(_), None) if self.open.is_empty() => {
                self.give(label, TracedLevel::Lost, (from_ns, to_ns), cx)
            }
            (_, Some(level)) if self.open.is_empty() => self.give(label, level, (from_ns, to_ns), cx),
            _ => {
                self.open.push((label, from_ns, to_ns));
                if self.open.len() == MOST_OPEN {
                    self.settle(TracedLevel::Lost, cx);
                }
            }
        }
    }

    /// Gives all open pieces away, at this level.
    #[inline]
    pub(super) fn settle(&mut self, level: TracedLevel, cx: &mut Surroundings<'_, impl Sink>) {
        self.settled = Some(level);
        for place in 0..self.open.len() {
            let (label, from_ns, to_ns) = self.open[place];
            self.give(label, level, (from_ns, to_ns), cx);
        }
        self.open.clear();
    }

    /// True if nothing waits for its level.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.open.is_empty()
    }

    #[inline(always)]
    fn give(
        &mut self,
        label: Label,
        level: TracedLevel,
        (from_ns, to_ns): (u64, u64),
        cx: &mut Surroundings<'_, impl Sink>,
    ) {
        match label {
            Label::Guest => {
                if level == TracedLevel::L1 {
                    self.sums.guest1_ns += to_ns - from_ns;
                }
                cx.sink.interval(cx.me, State::Guest(level), from_ns, to_ns);
            }
            Label::Handling => cx.sink.interval(cx.me, State::Handling(level), from_ns, to_ns),
            Label::Plain(state) => cx.sink.interval(cx.me, state, from_ns, to_ns),
        }
    }

    /// The guest never ran: the hardware had refused the entry.
    pub(super) fn never_ran(&mut self) {
        self.open.iter_mut().filter(|piece| piece.0 == Label::Guest).for_each(|piece| piece.0 = Label::Handling);
    }

    /// Handling from `from_ns` to the first time off the CPU was polling; or sleep, if the thread slept and nothing told when it left its CPU.
    pub(super) fn halted_since(&mut self, from_ns: u64, slept: bool) {
        let left = self.open.iter().any(|(label, _, to)| *to > from_ns && label.is_off());
        let state = if slept && !left { State::Halted } else { State::HaltPoll };
        let mut began_inside = None;
        let mut off_ns = 0;
        for (place, (label, from, to)) in self.open.iter_mut().enumerate().filter(|(_, piece)| piece.2 > from_ns) {
            match label {
                _ if label.is_off() => break,
                Label::Handling if *from >= from_ns => {
                    *label = Label::Plain(state);
                    off_ns += *to - *from;
                }
                // Pieces touch, so this is the first of them, and the only one.
                Label::Handling => {
                    off_ns += *to - from_ns;
                    began_inside = Some((place, std::mem::replace(to, from_ns)));
                }
                _ => {}
            }
        }
        if let Some((place, to_ns)) = began_inside {
            self.open.insert(place + 1, (Label::Plain(state), from_ns, to_ns));
        }
        if state.is_off() {
            self.sums.off_ns += off_ns;
        }
    }

    /// Nothing tells which of the open handling was polling.
    pub(super) fn handled_or_polled(&mut self) {
        let handling = self.open.iter_mut().filter(|piece| piece.0 == Label::Handling);
        handling.for_each(|piece| piece.0 = Label::Plain(State::Unknown));
    }
}
