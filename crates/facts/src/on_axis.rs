//! The events of a recording as they were traced, each at its time on the one axis of all its traces.

use super::ledger::line::TimeLine;
use super::ledger::model::Flow;
use crate::Input;
use base::Clock;
use std::ops::ControlFlow;
use trace::replay::Listener;
use trace::{Event, Reading, Request, Totals};

/// Where a trace's own times lie on the axis.
pub(crate) enum Axis<'a> {
    /// The axis is its own: it begins with its first event.
    Own,
    /// Where its alignment or its wall clock puts it, by its place among the traces of the line.
    Of(TimeLine<'a>, usize),
}

impl<'a> Axis<'a> {
    /// The axis of the trace at `place` of `input`, whose ledger is `flow`, and the clock by which that read it.
    pub(crate) fn of(input: &'a Input, flow: &'a Flow, place: usize) -> (Self, Option<Clock>) {
        let (line, part) = (TimeLine::new(input, &flow.parts), &flow.parts[place]);
        let fitted = part.clock_fitted_to.as_ref().map(|_| part.clock.clone());
        (if line.is_apart(place) { Self::Own } else { Self::Of(line, place) }, fitted)
    }

    fn at_ns(&self, time_ns: u64, origin_ns: u64) -> u64 {
        let own_ns = time_ns.saturating_sub(origin_ns);
        match self {
            Self::Own => own_ns,
            // A line has a place for all of a trace or for none of it; `is_apart` has asked.
            Self::Of(line, place) => line.outermost(*place, time_ns).map_or(own_ns, |(_, at_ns)| at_ns),
        }
    }
}

/// Tells what `request` wants of the events of trace `place`, until `hear` breaks; `fitted` as in [`Reading`]. `progress` hears how
/// far it is.
pub(crate) fn events(
    input: &Input,
    place: usize,
    (request, fitted): (&Request, Option<Clock>),
    axis: &Axis<'_>,
    progress: impl FnMut(u64, u64),
    hear: impl FnMut(&Event<'_>, u64) -> ControlFlow<()>,
) -> Totals {
    let mut teller = Teller { axis, hear, progress, origin_ns: 0, enough: false };
    trace::replay(input.parts[place].trace.as_ref(), &Reading { request, fitted }, &mut teller)
}

struct Teller<'a, F, P> {
    axis: &'a Axis<'a>,
    hear: F,
    progress: P,
    origin_ns: u64,
    enough: bool,
}

impl<F: FnMut(&Event<'_>, u64) -> ControlFlow<()>, P: FnMut(u64, u64)> Listener for Teller<'_, F, P> {
    fn start(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
    }

    fn event(&mut self, event: &Event<'_>) {
        // A replay asks whether it is enough once in a while, not behind each event.
        if !self.enough {
            let at_ns = self.axis.at_ns(event.time_ns, self.origin_ns);
            self.enough = (self.hear)(event, at_ns).is_break();
        }
    }

    fn progress(&mut self, done: u64, all: u64) {
        (self.progress)(done, all);
    }

    fn enough(&self) -> bool {
        self.enough
    }
}
