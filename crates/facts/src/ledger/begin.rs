//! Where traces of outermost machines begin on the one axis of a recording.
//!
//! ```text
//! L0    (x86-tsc)  |--------------|            two hosts share no clock: the pairs of each tell when its first event was by its
//! L0-b  (mono)          |--------------|       CLOCK_REALTIME, and the earliest of all is 0
//! ```
//! Traces of one machine with one clock need no pairs. What nothing relates to the others begins at 0 by itself, and that is said.

use super::model::PartFlow;
use crate::Input;
use base::number::duration;
use base::recording::WallTime;
use base::{Clock, Span};
use walk::Axis;

/// Where a trace begins on the recording's axis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Begin {
    /// How long after the axis does.
    pub at_ns: u64,
    pub known: Known,
}

/// By what the begin of a trace is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Known {
    /// The axis is that of its own clock.
    #[default]
    Own,
    /// By the wall clocks of both machines, each read within that.
    WallClock {
        /// The machine whose first event is 0.
        first: String,
        /// How far both readings may be off together.
        error_ns: u64,
    },
    /// Nothing relates its clock to that of this machine.
    Unrelated(String),
}

/// Traces of one machine and one clock.
struct Group {
    machine: String,
    clock: String,
    first_ns: u64,
    wall: Option<WallTime>,
    places: Vec<usize>,
}

/// Says of each trace of an outermost machine where it begins; guests' traces lie where their alignment puts them.
pub(super) fn place(input: &Input, flows: &mut [PartFlow], is_outermost: &[bool]) {
    let mut groups: Vec<Group> = Vec::new();
    let outermost = (0..flows.len()).filter(|place| is_outermost[*place] && flows[*place].events > 0);
    for place in outermost {
        let (flow, own) = (&flows[place], &input.parts[place].trace.facts().clock);
        let wall = wall_time(input, flow, own);
        let known = groups.iter_mut().find(|group| group.machine == flow.machine && group.clock == own.name);
        match known {
            Some(group) => {
                if flow.span.from_ns < group.first_ns {
                    (group.first_ns, group.wall) = (flow.span.from_ns, wall);
                }
                group.places.push(place);
            }
            None => groups.push(Group {
                machine: flow.machine.clone(),
                clock: own.name.clone(),
                first_ns: flow.span.from_ns,
                wall,
                places: vec![place],
            }),
        }
    }
    let by_wall = groups.iter().filter_map(|group| Some((group.wall?, group)));
    let earliest = by_wall.min_by_key(|(wall, _)| wall.realtime_ns);
    let first = earliest.as_ref().map(|(_, group)| *group).or(groups.first());
    for group in &groups {
        let is_first = first.is_some_and(|first| std::ptr::eq(first, group));
        let (late_ns, known) = match (&earliest, group.wall, first) {
            _ if is_first => (0, Known::Own),
            (Some((earliest, first)), Some(wall), _) => {
                let error_ns = earliest.error_ns.saturating_add(wall.error_ns);
                let first = first.machine.clone();
                (wall.realtime_ns - earliest.realtime_ns, Known::WallClock { first, error_ns })
            }
            (_, _, Some(first)) => (0, Known::Unrelated(first.machine.clone())),
            (_, _, None) => (0, Known::Own),
        };
        for place in &group.places {
            let own_ns = flows[*place].span.from_ns - group.first_ns;
            flows[*place].begin = Begin { at_ns: late_ns.saturating_add(own_ns), known: known.clone() };
        }
    }
}

/// When the first event of a trace was by its machine's wall clock; `own` is the clock that its file states.
fn wall_time(input: &Input, flow: &PartFlow, own: &Clock) -> Option<WallTime> {
    let wall = input.recording.wall_clock(&flow.machine)?;
    match own.name.as_str() {
        // perf and LTTng call the same clock by its longer name.
        "mono" | "monotonic" => {
            let monotonic_ns = flow.span.from_ns.saturating_add_signed(flow.clock.offset_ns.saturating_neg());
            Some(wall.of_monotonic(monotonic_ns))
        }
        "x86-tsc" => {
            let axis = Axis::new(own, &flow.clock);
            wall.of_tsc(axis.of_shown(flow.span.from_ns), axis.has_scale().then(|| axis.length_ns(1.0)))
        }
        _ => None,
    }
}

/// What is to be known of where a trace begins, where it is another machine's than the axis.
pub fn sentence(flow: &PartFlow) -> Option<String> {
    let machine = &flow.machine;
    match &flow.begin.known {
        Known::WallClock { first, error_ns } if first != machine => Some(format!(
            "The trace of {machine} begins {} after that of {first} by the CLOCK_REALTIME of both, read within {}; how far the two \
             clocks were apart is not known (NTP: milliseconds).",
            duration(flow.begin.at_ns as f64),
            duration(*error_ns as f64)
        )),
        Known::Unrelated(first) if first != machine => Some(format!(
            "Nothing relates the clock of {machine} to that of {first}, so each trace counts from its own first event; \
             `kvmscope record` on both machines notes what does."
        )),
        Known::Own | Known::WallClock { .. } | Known::Unrelated(_) => None,
    }
}

impl PartFlow {
    /// A time of the trace's own clock on the recording's axis; 0 for what lies before its first event. Of guests' traces
    /// [`TimeLine`](super::line::TimeLine) knows more.
    pub fn on_axis(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.span.from_ns).saturating_add(self.begin.at_ns)
    }

    /// A window of the recording's axis, since the trace's first event.
    pub(crate) fn own_window(&self, window: Span) -> Span {
        let own = |at_ns: u64| at_ns.saturating_sub(self.begin.at_ns);
        Span { from_ns: own(window.from_ns), to_ns: own(window.to_ns) }
    }
}
