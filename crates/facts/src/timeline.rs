//! Where was every vCPU, every CPU and every thread of the VMM's side at every instant, and which chain was open?
//!
//! ```text
//! lowest machines   --Draft--> lanes of vCPUs, CPUs, vhost workers, emulator threads, iothreads
//! guests' own traces --Draft--> lanes of their vCPUs and CPUs, moved to the line of the lowest machine below
//! ```
//! Built on request only; times count from the first event of the recording's lowest machine, of several from the earliest. What a guest did stands in the
//! lanes of the machine below already; its own trace shows how it looked from inside, so its lanes repeat that time.

mod building;
mod draft;
mod inside;
mod keeper;
mod lanes;
mod migrated;
mod overview;
mod passing;
mod source;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
pub(crate) mod watch;
mod woken;
mod workers;

pub use overview::lanes_of;
pub use overview::{overview, whole_span};

use crate::ledger::aligned;
use crate::ledger::begin;
use crate::ledger::line::TimeLine;
use crate::ledger::model::{Flow, PartFlow};
use crate::{Given, Input};
use base::Span;
use base::timeline::{Chain, Columns, Cut, Drawn, LaneId, LaneKind, Marker, StateId, VcpuLane, WakeUps};
use draft::Draft;
use keeper::Bounds;
use lanes::{LOOKS, Look};
use source::{Source, names, sources};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use walk::events::reasons::Reason;
use walk::thread;

/// One trace that is drawn.
struct Part<'a> {
    flow: &'a PartFlow,
    draft: Draft,
    /// Its tasks by thread.
    names: BTreeMap<i32, String>,
    /// Its place among the parts, if it is a guest's that lies on the line of a machine below; and where that line ends.
    inside: Option<(usize, u64)>,
}

impl Part<'_> {
    /// Where a time of its clock lies on `line`.
    fn on_line(&self, line: &TimeLine<'_>, at_ns: u64) -> Option<u64> {
        match self.inside {
            None => Some(self.flow.on_axis(at_ns)),
            Some((place, end_ns)) => line.outermost(place, at_ns).map(|(_, at_ns)| at_ns.min(end_ns)),
        }
    }
}

/// Draws `flow`, which was built from `input` with the same `given`.
pub fn draw(input: &Input, given: &Given, flow: &Flow, progress: &mut dyn FnMut(u64, u64)) -> Drawn {
    drawn(input, given, flow, Bounds::default(), progress)
}

/// The same as far as the window of `given` reaches, and no more than about `most` slices, the earliest: memory is theirs and
/// does not grow with the recording.
pub fn draw_first(input: &Input, given: &Given, flow: &Flow, most: u64, progress: &mut dyn FnMut(u64, u64)) -> Drawn {
    drawn(input, given, flow, Bounds { window: given.narrow.window, most, ..Bounds::default() }, progress)
}

fn drawn(input: &Input, given: &Given, flow: &Flow, bounds: Bounds, progress: &mut dyn FnMut(u64, u64)) -> Drawn {
    let line = TimeLine::new(input, &flow.parts);
    let (mut notes, mut moved) = (Vec::new(), Vec::new());
    let mut parts: Vec<Part<'_>> = Vec::new();
    let answering = |(_, part): &(usize, &PartFlow)| part.twin_of.is_none();
    let (guests, lowest): (Vec<_>, Vec<_>) =
        flow.parts.iter().enumerate().filter(answering).partition(|(_, part)| part.aligned.is_some());
    for (place, part) in lowest {
        let own = Bounds { window: bounds.window.map(|window| part.own_window(window)), ..bounds };
        let draft = Draft::of(&input.parts[place], part, (given, own), progress);
        notes.extend(begin::sentence(part));
        notes.extend(missing_switches(part));
        moved.extend(migrated::markers(input, flow, place));
        parts.push(Part { flow: part, names: names(part, &draft), draft, inside: None });
    }
    for (place, part) in guests {
        notes.extend(part.aligned.as_ref().map(aligned::sentence));
        let Some((below, _)) = line.lies(place) else { continue };
        // The window is one of the machine below.
        let draft = Draft::of(&input.parts[place], part, (given, Bounds { window: None, ..bounds }), progress);
        let below = &flow.parts[below];
        let inside = Some((place, below.on_axis(below.span.to_ns)));
        parts.push(Part { flow: part, names: names(part, &draft), draft, inside });
    }
    let cuts = parts.iter().filter(|part| part.inside.is_none()).filter_map(|part| part.draft.cut(part.flow));
    let cut = cuts.reduce(|a, b| Cut { at_ns: a.at_ns.min(b.at_ns), left_out: a.left_out + b.left_out });
    let sources: Vec<Source> = sources(&parts, &mut notes);
    let (states, numbers) = states(&parts, &sources);
    let host = flow.host();
    let mut drawn = Drawn {
        host,
        timeline: Columns::new(states),
        chains: Vec::new(),
        wakes: WakeUps::default(),
        wakers: Vec::new(),
        vcpus: Vec::new(),
        notes,
        cut,
    };
    for source in &sources {
        add(&mut drawn, &parts[source.part], source, (&line, &numbers[source.part]));
    }
    woken::add(&mut drawn, &parts, &sources, &line);
    for part in parts.iter().filter(|part| part.inside.is_none()) {
        drawn.timeline.markers.extend(loss_markers(&part.draft.losses, part.flow));
    }
    drawn.timeline.markers.extend(moved);
    drawn.timeline.markers.sort_by_key(|marker| marker.at_ns);
    drawn
}

/// Says what is missing where the scheduler's switches are.
fn missing_switches(part: &PartFlow) -> Option<String> {
    (!part.has_switches).then(|| {
        format!(
            "{} recorded no sched_switch, so its CPUs and threads are known only where a vCPU ran; record with -e sched.",
            part.machine
        )
    })
}

/// A marker for each loss of the trace of `flow`: CPU, when, how many events, bytes.
fn loss_markers(losses: &[(u32, u64, u64, u64)], flow: &PartFlow) -> impl Iterator<Item = Marker> {
    losses.iter().map(move |(cpu, at_ns, events, _)| Marker {
        lane: None,
        at_ns: flow.on_axis(*at_ns),
        label: if *events > 0 {
            format!("{events} events lost on CPU {cpu}")
        } else {
            format!("events lost on CPU {cpu}")
        },
    })
}

/// A chain of `lane`, in the trace of `flow`; `sequence` has the names of its exits.
fn drawn_chain(chain: &thread::Chain, lane: LaneId, flow: &PartFlow, sequence: Arc<[String]>) -> Chain {
    let span = chain.span();
    Chain {
        lane,
        reason: chain.reason.name(),
        span: Span { from_ns: flow.on_axis(span.from_ns), to_ns: flow.on_axis(span.to_ns) },
        exits: chain.exits,
        sequence,
        beyond: chain.beyond.iter().map(|(reason, count)| (reason.name(), *count)).collect(),
        interrupted: chain.interrupted,
        migrated: chain.migrated,
        cost_ns: chain.cost_ns,
    }
}

/// The states that occur in any lane, and their numbers for each part by [`Look::index`]. Machines of different levels call
/// some of them differently.
fn states(parts: &[Part<'_>], sources: &[Source]) -> (Vec<base::timeline::State>, Vec<[StateId; LOOKS]>) {
    let mut states: Vec<base::timeline::State> = Vec::new();
    let numbers = parts.iter().enumerate().map(|(place, part)| {
        let mut occurs = [false; LOOKS];
        for source in sources.iter().filter(|source| source.part == place) {
            source.pieces(part, &mut |_, look, _| occurs[look.index()] = true);
        }
        // A state that does not occur is never asked for its number.
        let mut numbers = [StateId(0); LOOKS];
        for index in (0..LOOKS).filter(|index| occurs[*index]) {
            let state = Look::named(index, part.flow.level, part.inside.is_some());
            let known = states.iter().position(|known| known.name == state.name);
            let place = known.unwrap_or_else(|| {
                states.push(state);
                states.len() - 1
            });
            numbers[index] = StateId(place as u8);
        }
        numbers
    });
    let numbers = numbers.collect();
    (states, numbers)
}

/// Adds the lane of `source`, and the chains in it.
fn add<'s>(
    drawn: &mut Drawn,
    part: &'s Part<'_>,
    source: &Source,
    (line, numbers): (&TimeLine<'_>, &[StateId; LOOKS]),
) {
    let lane = drawn.timeline.add_lane(source.lane.clone());
    let on_line = |at_ns: u64| part.on_line(line, at_ns);
    source.pieces(part, &mut |at_ns, look, detail| {
        if let Some(at_ns) = on_line(at_ns) {
            drawn.timeline.push(lane, at_ns, numbers[look.index()], detail);
        }
    });
    if let Some(end_ns) = on_line(part.draft.span.to_ns) {
        drawn.timeline.end(lane, end_ns);
    }
    let (LaneKind::Vcpu, Some(tid)) = (source.lane.kind, source.lane.tid) else { return };
    drawn.vcpus.push(VcpuLane { vm: source.lane.group.clone(), vcpu: source.number, tid });
    let mut sequences: HashMap<&[Reason], Arc<[String]>> = HashMap::new();
    let mut chain = |chain: &'s thread::Chain| {
        let names = || chain.sequence.iter().map(|reason| reason.name()).collect();
        let sequence = sequences.entry(chain.sequence.as_slice()).or_insert_with(names).clone();
        drawn_chain(chain, lane, part.flow, sequence)
    };
    drawn.chains.extend(part.draft.thread(tid).into_iter().flat_map(|thread| &thread.chains).map(&mut chain));
}
