//! One time line for all traces of a recording: that of the outermost machine, from its first event on; of several such
//! machines that of the one whose first event was the earliest ([`begin`](super::begin)).
//!
//! ```text
//! L0  |------------[ window )-------|          a window is asked for on this line
//!              |        |
//! L1       |---[ window )--|                   and found on each guest's own clock, by its alignment
//! ```
//! What a user asks for by seconds means the same moments at every level. A guest whose clock could not be aligned keeps
//! its own line.

use super::aligned;
use super::begin::Known;
use super::model::{Flow, PartFlow};
use crate::{Given, Input};
use align::Map;
use base::Span;
use walk::Axis;
use walk::Part;

/// The traces of a recording, and below which other one each lies.
pub struct TimeLine<'a> {
    flows: &'a [PartFlow],
    lower: Vec<Option<usize>>,
    axes: Vec<Axis>,
}

impl<'a> TimeLine<'a> {
    /// The line of `flows`, which are aligned.
    pub fn new(input: &'a Input, flows: &'a [PartFlow]) -> Self {
        let lower = flows.iter().map(|flow| aligned::below(flow, flows, &input.recording)).collect();
        let axis = |(part, flow): (&Part, &PartFlow)| Axis::new(&part.trace.facts().clock, &flow.clock);
        let axes = input.parts.iter().zip(flows).map(axis).collect();
        Self { flows, lower, axes }
    }

    /// The outermost machine below the trace at `place`, and where the trace lies on its line.
    pub fn lies(&self, place: usize) -> Option<(usize, Span)> {
        let ends = self.flows[place].span;
        let (outermost, from_ns) = self.outermost(place, ends.from_ns)?;
        let (_, to_ns) = self.outermost(place, ends.to_ns)?;
        Some((outermost, Span { from_ns, to_ns: to_ns.max(from_ns) }))
    }

    /// The part of the trace at `place` in `window` of the recording's axis, since the trace's own first event; `None` if that
    /// is the window itself.
    pub(crate) fn own_window(&self, place: usize, window: Span) -> Option<Span> {
        if self.lower[place].is_none() {
            return (self.flows[place].begin.at_ns > 0).then(|| self.flows[place].own_window(window));
        }
        let own = self.flows[place].span;
        let at = |asked_ns| self.first_at(place, own, asked_ns).map(|own_ns| own_ns - own.from_ns);
        Some(Span { from_ns: at(window.from_ns)?, to_ns: at(window.to_ns)? })
    }

    /// The first time of the trace's own clock that lies at or after `asked_ns` of the outermost line.
    fn first_at(&self, place: usize, own: Span, asked_ns: u64) -> Option<u64> {
        let (mut low, mut high) = (own.from_ns, own.to_ns.saturating_add(1));
        self.outermost(place, low)?;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.outermost(place, middle)?.1 < asked_ns { low = middle + 1 } else { high = middle }
        }
        Some(low)
    }

    /// A time of the trace at `place`, since its first event, on the recording's axis; the same where nothing relates the two.
    pub fn on_axis(&self, place: usize, since_ns: u64) -> u64 {
        let at_ns = self.flows[place].span.from_ns.saturating_add(since_ns);
        self.outermost(place, at_ns).map_or(since_ns, |(_, axis_ns)| axis_ns)
    }

    /// True if nothing relates the clock of the trace at `place` to the recording's axis: it counts from its own first event.
    pub(crate) fn is_apart(&self, place: usize) -> bool {
        let flow = &self.flows[place];
        match self.lower[place] {
            Some(_) => self.outermost(place, flow.span.from_ns).is_none(),
            None => matches!(flow.begin.known, Known::Unrelated(_)),
        }
    }

    /// The outermost machine and the time on the recording's axis; what lies before the machine's first event is put there.
    pub fn outermost(&self, place: usize, at_ns: u64) -> Option<(usize, u64)> {
        let (mut place, mut at_ns) = (place, at_ns);
        // As many steps as there are machines, whatever a manifest says of their parents.
        for _ in 0..self.flows.len() {
            let Some(lower) = self.lower[place] else {
                return Some((place, self.flows[place].on_axis(at_ns)));
            };
            let alignment = &self.flows[place].aligned.as_ref()?.alignment;
            let map: &Map = alignment.cpus.iter().find_map(|cpu| cpu.map.as_ref())?;
            let placed = map.place(self.axes[place].of_shown(at_ns))?;
            (place, at_ns) = (lower, self.axes[lower].shown_ns(placed.value));
        }
        None
    }
}

/// A window of a recording's axis in its traces, for who cuts their files.
pub struct Windows {
    /// Of each trace, since its first event, as the trace is shown where it is read alone: a scale that another trace lends it
    /// is missing then.
    pub own: Vec<Span>,
    /// True if a trace counts from its own first event, because nothing relates its clock to the others.
    pub apart: bool,
}

/// Where `window` of the axis lies in each trace of `input`. Several traces are read for that, as `report` reads them.
pub fn windows(input: &Input, window: Span, progress: &mut dyn FnMut(u64, u64)) -> Windows {
    if input.parts.len() < 2 {
        return Windows { own: vec![window; input.parts.len()], apart: false };
    }
    let flow = super::build::build(input, &Given::default(), progress);
    let line = TimeLine::new(input, &flow.parts);
    let own = |place: usize| {
        let shown = line.own_window(place, window).unwrap_or(window);
        match trace::calibrate::fit(input.parts[place].trace.as_ref()) {
            Some(_) => shown,
            None => line.axes[place].unscaled(flow.parts[place].span.from_ns, shown),
        }
    };
    let places = 0..flow.parts.len();
    Windows { own: places.clone().map(own).collect(), apart: places.into_iter().any(|place| line.is_apart(place)) }
}

/// Says of each trace of an outermost machine where it begins.
pub(super) fn begin(input: &Input, flows: &mut [PartFlow]) {
    let is_outermost: Vec<bool> =
        flows.iter().map(|flow| aligned::below(flow, flows, &input.recording).is_none()).collect();
    super::begin::place(input, flows, &is_outermost);
}

/// Says of each aligned trace where it lies.
pub fn say(input: &Input, flow: &mut Flow) {
    let line = TimeLine::new(input, &flow.parts);
    let named = |(outermost, span): (usize, Span)| (flow.parts[outermost].machine.clone(), span);
    let lies: Vec<_> = (0..flow.parts.len()).map(|place| line.lies(place).map(named)).collect();
    for (part, lies) in flow.parts.iter_mut().zip(lies) {
        if let Some(aligned) = &mut part.aligned {
            aligned.lies = lies;
        }
    }
}
