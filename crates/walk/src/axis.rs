//! In which unit do the events of a trace count time, and how long is one of it?
//!
//! Offsets that KVM writes are ticks of the time-stamp counter, so traces with clock `x86-tsc` are compared in ticks;
//! all others in the nanoseconds of their clock.

use base::{Clock, ClockSource, Span};

/// The unit of one trace's times.
#[derive(Debug, Clone)]
pub struct Axis {
    /// True for ticks of the time-stamp counter.
    pub tsc: bool,
    /// Events were read as ticks already: their file states no scale.
    raw: bool,
    /// How many of the clock's units are one of this axis.
    stretch: f64,
    clock: Clock,
}

impl Axis {
    /// The axis of a trace whose file gives `own`, and whose times are shown with `clock`.
    pub fn new(own: &Clock, clock: &Clock) -> Self {
        Self { tsc: own.name == "x86-tsc", raw: own.source == ClockSource::None, stretch: 1.0, clock: clock.clone() }
    }

    /// The time of an event as it was read without a fitted clock.
    #[inline]
    pub fn of_event(&self, time: u64) -> u64 {
        if self.tsc && !self.raw { self.clock.ticks(time) } else { time }
    }

    /// The time of an event as it is shown, in ns.
    pub fn of_shown(&self, shown_ns: u64) -> u64 {
        if self.tsc || self.raw { self.clock.ticks(shown_ns) } else { shown_ns }
    }

    /// A time of this axis as it is shown, in ns.
    #[inline]
    pub fn shown_ns(&self, units: u64) -> u64 {
        if self.tsc || self.raw { self.clock.ns(units) } else { units }
    }

    /// A window since the trace's first event, which is shown at `origin_ns`, as who knows no scale but the file's shows it:
    /// where that states none, in ticks.
    pub fn unscaled(&self, origin_ns: u64, window: Span) -> Span {
        if !self.raw {
            return window;
        }
        let first = self.clock.ticks(origin_ns);
        let own = |at_ns: u64| match at_ns {
            u64::MAX => u64::MAX,
            at_ns => self.clock.ticks(origin_ns.saturating_add(at_ns)).saturating_sub(first),
        };
        Span { from_ns: own(window.from_ns), to_ns: own(window.to_ns) }
    }

    /// The axis of a counter that makes `ratio` ticks for each tick of this one.
    pub fn scaled(&self, ratio: f64) -> Self {
        Self { stretch: 1.0 / ratio, ..self.clone() }
    }

    pub fn length_ns(&self, units: f64) -> f64 {
        let units = units * self.stretch;
        if self.tsc || self.raw { units * self.clock.mult as f64 / 2f64.powi(self.clock.shift as i32) } else { units }
    }

    /// How far a time may lie from the true one because it was rounded to ns, in units.
    #[inline]
    pub fn rounding(&self) -> u64 {
        if self.tsc && !self.raw { self.clock.ticks(1).max(1) } else { 0 }
    }

    /// True if something tells how long a unit is.
    pub fn has_scale(&self) -> bool {
        self.clock.source != ClockSource::None
    }
}
