//! When a sample ended, on the clock of a trace.
//!
//! ```text
//! file's clock --pairs of the manifest--> time-stamp counter or CLOCK_MONOTONIC --alignment, for guests--> trace
//! ```
//! Every time carries how far it may be off; where nothing relates two clocks, nothing is told.

use super::ClockError;
use crate::Input;
use crate::ledger::line::TimeLine;
use crate::ledger::model::{Flow, PartFlow};
use crate::samples::SampleClock;
use align::Map;
use base::recording::WallClock;
use walk::Axis;

/// A time of a trace's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instant {
    pub at_ns: u64,
    pub error: ClockError,
}

/// Whether a trace's clock is CLOCK_MONOTONIC: perf and LTTng call it by its longer name.
pub(crate) fn is_monotonic(clock: &base::Clock) -> bool {
    matches!(clock.name.as_str(), "mono" | "monotonic")
}

/// The times of a file on the clock of the trace of the same machine.
pub(crate) struct OwnClock<'a> {
    clock: SampleClock,
    wall: Option<WallClock>,
    part: &'a PartFlow,
    axis: Axis,
}

impl<'a> OwnClock<'a> {
    /// Of `machine`, whose trace is at `place`; `None` where nothing relates the two.
    pub(crate) fn new(input: &Input, flow: &'a Flow, place: usize, clock: SampleClock) -> Option<Self> {
        let part = &flow.parts[place];
        let axis = Axis::new(&input.parts[place].trace.facts().clock, &part.clock);
        let own = Self { clock, wall: input.recording.wall_clock(&part.machine), part, axis };
        own.at(0).is_some().then_some(own)
    }

    /// A time of the file.
    pub(crate) fn at(&self, file_ns: u64) -> Option<Instant> {
        match self.clock {
            SampleClock::Monotonic => self.of_monotonic(file_ns, ClockError::default()),
            SampleClock::Realtime => {
                let (monotonic_ns, error_ns) = self.wall.as_ref()?.monotonic_of(file_ns);
                self.of_monotonic(monotonic_ns, ClockError::both(error_ns))
            }
            SampleClock::Local => {
                (self.part.clock.name == "local").then_some(Instant { at_ns: file_ns, error: ClockError::default() })
            }
            SampleClock::Trace => Some(Instant { at_ns: file_ns, error: ClockError::default() }),
            SampleClock::None => None,
        }
    }

    fn of_monotonic(&self, monotonic_ns: u64, error: ClockError) -> Option<Instant> {
        if is_monotonic(&self.part.clock) {
            return Some(Instant { at_ns: monotonic_ns.saturating_add_signed(self.part.clock.offset_ns), error });
        }
        if !self.axis.tsc {
            return None;
        }
        let (ticks, width_ns) = self.wall.as_ref()?.tsc_of(monotonic_ns)?;
        Some(Instant { at_ns: self.axis.shown_ns(ticks), error: error.plus(ClockError::both(width_ns)) })
    }
}

/// Where a time by `clock` of the machine whose trace is at `place` lies on the recording's axis; `None` where nothing relates the two.
pub fn on_axis<'a>(
    (input, flow): (&'a Input, &'a Flow),
    place: usize,
    clock: SampleClock,
) -> Option<impl Fn(u64) -> Option<u64> + 'a> {
    let (own, line) = (OwnClock::new(input, flow, place, clock)?, TimeLine::new(input, &flow.parts));
    Some(move |file_ns| Some(line.outermost(place, own.at(file_ns)?.at_ns)?.1))
}

/// The times of a guest's file on the clock of the trace of the machine below.
pub(super) struct GuestClock<'a> {
    own: OwnClock<'a>,
    axis: &'a Axis,
    own_axis: Axis,
    map: &'a Map,
}

impl<'a> GuestClock<'a> {
    /// Of the guest's CPU number `cpu`, or of any where it has none; the guest's own trace lies at `guest`.
    pub(super) fn new(
        input: &Input,
        flow: &'a Flow,
        guest: usize,
        cpu: Option<u32>,
        clock: SampleClock,
    ) -> Option<Self> {
        let alignment = &flow.parts[guest].aligned.as_ref()?.alignment;
        let mut maps = alignment.cpus.iter().filter(|own| cpu.is_none_or(|cpu| own.cpu == cpu));
        let map = maps.find_map(|cpu| cpu.map.as_ref())?;
        let own = OwnClock::new(input, flow, guest, clock)?;
        let own_axis = Axis::new(&input.parts[guest].trace.facts().clock, &flow.parts[guest].clock);
        Some(Self { own, axis: &alignment.axis, own_axis, map })
    }

    /// A time of the file on the clock below.
    pub(super) fn at(&self, file_ns: u64) -> Option<Instant> {
        let own = self.own.at(file_ns)?;
        let placed = self.map.place(self.own_axis.of_shown(own.at_ns))?;
        let length_ns = |units: u64| self.axis.length_ns(units as f64).ceil() as u64;
        let error =
            ClockError { low_ns: length_ns(placed.value - placed.low), high_ns: length_ns(placed.high - placed.value) };
        Some(Instant { at_ns: self.axis.shown_ns(placed.value), error: own.error.plus(error) })
    }
}
