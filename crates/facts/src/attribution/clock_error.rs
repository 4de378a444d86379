//! How far a sample may lie from where it was looked for.

use crate::budget::exact;
use base::Span;

/// How much earlier and how much later than it was looked for a sample may have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockError {
    /// Not more than this earlier.
    pub low_ns: u64,
    /// Not more than this later.
    pub high_ns: u64,
}

impl ClockError {
    pub(super) fn both(ns: u64) -> Self {
        Self { low_ns: ns, high_ns: ns }
    }

    /// That of a time that two clocks lead to, one after the other.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { low_ns: self.low_ns.saturating_add(other.low_ns), high_ns: self.high_ns.saturating_add(other.high_ns) }
    }

    pub(super) fn widest(self, other: Self) -> Self {
        Self { low_ns: self.low_ns.max(other.low_ns), high_ns: self.high_ns.max(other.high_ns) }
    }

    /// Where a sample may lie that was looked for in `span`.
    pub(super) fn widened(self, span: Span) -> Span {
        Span { from_ns: span.from_ns.saturating_sub(self.low_ns), to_ns: span.to_ns.saturating_add(self.high_ns) }
    }

    pub fn phrase(self) -> String {
        match self {
            Self { low_ns, high_ns } if low_ns == high_ns => format!("clocks are off by up to {}", exact(high_ns)),
            Self { low_ns, high_ns } => format!("clocks are off by {} early to {} late", exact(low_ns), exact(high_ns)),
        }
    }

    /// The larger of both sides.
    pub fn most_ns(self) -> u64 {
        self.low_ns.max(self.high_ns)
    }
}
