//! Which run of the handler answered which edge?
//!
//! ```text
//! edges      e0      e1 e2 e3      e4 ..          host's counter
//! handler      n0            n1        (lost)     guest's counter, less what it is ahead
//! answered   e0-n0   e1-n1   2 merged   e4 ..     an edge is answered by the first run that began behind it
//! ```
//! A device's edges that come before the handler has run are one interrupt: the oldest of them is the sample, the others are merged.
//! A run without an edge is extra. Where a note was written over or makes no sense, nobody knows which edges it answered: those
//! up to the next note are lost, and none of them gets a length.

use crate::bench::probe::shared::Taken;
use crate::machine::page::Bounds;
use std::collections::VecDeque;

/// An edge and the run of the handler that answered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// When it came, by the host's counter.
    pub edge: u64,
    /// When the handler began, by the guest's.
    pub note: u64,
}

/// Edges and notes, as they come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairing {
    pub answered: Vec<Answered>,
    /// Edges that came before the handler had run for an older one.
    pub merged: u64,
    /// Runs of the handler without an edge.
    pub extra: u64,
    /// Edges of which nobody knows whether they were answered.
    pub lost: u64,
    /// Notes that make no sense: they are not in order, or in the future.
    pub torn: u64,
    pub(super) rung: u64,
    waiting: VecDeque<u64>,
    ahead: Bounds,
    last: Option<u64>,
    is_unsure: bool,
}

impl Pairing {
    /// Nothing yet; the guest's counter is so far ahead.
    pub(super) fn new(ahead: Bounds) -> Self {
        Self {
            answered: Vec::new(),
            merged: 0,
            extra: 0,
            lost: 0,
            torn: 0,
            rung: 0,
            waiting: VecDeque::new(),
            ahead,
            last: None,
            is_unsure: false,
        }
    }

    pub(super) fn edges(&mut self, edges: impl IntoIterator<Item = u64>) {
        let before = self.waiting.len();
        self.waiting.extend(edges);
        self.rung += (self.waiting.len() - before) as u64;
    }

    /// The handler noted something; it is `now` by the host's counter. All edges up to then were told.
    pub(super) fn notes(&mut self, taken: &Taken, now: u64) {
        self.is_unsure |= taken.lost > 0;
        for note in taken.notes.iter().copied() {
            let earliest = note.wrapping_sub(self.ahead.high as u64);
            let latest = note.wrapping_sub(self.ahead.low as u64);
            if self.last.is_some_and(|last| note <= last) || earliest > now {
                self.torn += 1;
                self.is_unsure = true;
                continue;
            }
            self.last = Some(note);
            let edges = self.waiting.partition_point(|edge| *edge <= latest);
            let oldest = self.waiting.drain(..edges).next();
            match (oldest, std::mem::take(&mut self.is_unsure)) {
                (_, true) => self.lost += edges as u64,
                (Some(edge), false) => {
                    self.answered.push(Answered { edge, note });
                    self.merged += edges as u64 - 1;
                }
                (None, false) => self.extra += 1,
            }
        }
    }

    /// Whether edges wait for an answer.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Edges that nothing answered.
    pub fn unanswered(&self) -> u64 {
        self.waiting.len() as u64
    }
}

impl Answered {
    /// How many ticks lie between, where the guest's counter is `ahead` by so many.
    pub fn ticks(self, ahead: i64) -> u64 {
        let began = self.note.wrapping_sub(ahead as u64);
        // Within the error of the clocks the answer may seem to come first.
        if began.wrapping_sub(self.edge) as i64 > 0 { began.wrapping_sub(self.edge) } else { 0 }
    }
}
