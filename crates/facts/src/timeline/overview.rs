//! The timeline of a page that nobody can ask further: every lane added up at the zooms that it will have, nothing kept.
//!
//! ```text
//! Passing --pieces--> a Condensed per lane: exact sums per column and pixel, coarser where lanes or states become many
//!         --chains--> who asked for them
//! ```
//! Memory is that of the pixels: some 16 MB of tile, and a few times that while it is added up. Lanes, their order, states and
//! slices are those of [`draw`](super::draw).

use super::building::{Adding, Building};
use super::inside::{Inside, Looking};
use super::keeper::{Bounds, Pace, kept};
use super::lanes::Look;
use super::passing::{Passing, Take, Whose, span};
use super::source::{cpu_lane, guest_cpu_lane, vcpu_lane, worker_lane};
use super::{loss_markers, migrated, missing_switches, workers};
use crate::ledger::aligned;
use crate::ledger::begin;
use crate::ledger::line::TimeLine;
use crate::ledger::model::{Flow, PartFlow};
use crate::{Given, Input};
use base::Span;
use base::number::{duration, thousands};
use base::timeline::{ChainRequest, ChainSlices, ChainSums, LaneKind, Marker, Overview, VcpuLane};
use rustc_hash::{FxHashMap, FxHashSet};
use walk::thread::Chain;

/// Adds up `flow`, which was built from `input` with the same `given`; `hear` is told every chain of the lowest machines.
/// With it come the slices of the `wanted` chains, at most `most` of a chain and of what is wanted around it, in the order in
/// which they are wanted; one that is not there is left out.
pub fn overview(
    input: &Input,
    given: &Given,
    flow: &Flow,
    (wanted, most): (&[ChainRequest], usize),
    hear: &mut dyn FnMut(&ChainSums<'_>),
    progress: &mut dyn FnMut(u64, u64),
) -> (Overview, Vec<ChainSlices>) {
    let mut inside = Inside::new(wanted, most);
    let overview = added_up(input, (given, Pace::default()), flow, (&mut inside, hear), progress);
    let found = inside.found(&overview);
    (overview, found)
}

pub(super) fn added_up(
    input: &Input,
    (given, pace): (&Given, Pace),
    flow: &Flow,
    (inside, hear): (&mut Inside, &mut dyn FnMut(&ChainSums<'_>)),
    progress: &mut dyn FnMut(u64, u64),
) -> Overview {
    let line = TimeLine::new(input, &flow.parts);
    let (lowest, guests) = by_place(flow);
    let guests: Vec<Placed<'_>> = guests.into_iter().filter(|(place, _)| line.lies(*place).is_some()).collect();
    let mut building = Building::new(&lowest);
    let mut found: Vec<Vec<Worker<'_>>> = Vec::new();
    let mut first_lane = 0;
    let (mut notes, mut left_out, mut markers, mut left_unknown_ns) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let whole = (given, Bounds { pace, ..Bounds::default() });
    for (place, part) in &lowest {
        notes.extend(begin::sentence(part));
        notes.extend(missing_switches(part));
        let (workers, note) = drawn_workers((&input.parts[*place], part), given, progress);
        left_out.extend(note);
        let tids: FxHashSet<i32> = workers.iter().map(|(_, tid, _)| *tid).collect();
        let on_line = |at_ns: u64| Some(part.on_axis(at_ns));
        let adding = Adding {
            building: &mut building,
            part: (*place, part),
            inside: false,
            on_line: &on_line,
            hear,
            reasons: FxHashMap::default(),
        };
        let mut both = Both { adding, looking: inside.of(part, first_lane) };
        first_lane += part.vcpus.len() as u32;
        let mut passing = Passing::new(part, &tids, &mut both);
        let (walk, _) = kept(&input.parts[*place], part, whole, Some(&mut passing), progress);
        left_unknown_ns += passing.left_unknown_ns();
        let Both { mut adding, looking } = both;
        adding.end();
        looking.end(part.on_axis(span(part).to_ns));
        markers.extend(loss_markers(&walk.losses, part));
        markers.extend(migrated::markers(input, flow, *place));
        found.push(workers);
    }
    for (place, part) in &guests {
        notes.extend(part.aligned.as_ref().map(aligned::sentence));
        let below = line.lies(*place).map(|(below, _)| &flow.parts[below]);
        let below_ns = below.map_or(0, |below| below.on_axis(below.span.to_ns));
        let on_line = |at_ns: u64| line.outermost(*place, at_ns).map(|(_, at_ns)| at_ns.min(below_ns));
        let none = FxHashSet::default();
        let mut silent = |_: &ChainSums<'_>| {};
        let mut adding = Adding {
            building: &mut building,
            part: (*place, part),
            inside: true,
            on_line: &on_line,
            hear: &mut silent,
            reasons: FxHashMap::default(),
        };
        let mut passing = Passing::new(part, &none, &mut adding);
        kept(&input.parts[*place], part, whole, Some(&mut passing), progress);
        left_unknown_ns += passing.left_unknown_ns();
        adding.end();
    }
    notes.append(&mut left_out);
    let left_unknown = (left_unknown_ns > 0).then(|| {
        format!(
            "CPU lanes: {} just before a vCPU slept for long are shown as unknown; the lanes of the vCPUs have that time.",
            duration(left_unknown_ns as f64)
        )
    });
    let (markers, too_many) = first_markers(markers);
    let bounds = left_unknown.into_iter().chain(too_many).collect();
    let several = lowest.len() > 1;
    let (states, numbers) = building.states(&lowest, &guests);
    let mut drawn = Overview { states, notes, markers, bounds, end_ns: building.end_ns, ..Overview::default() };
    for (place, part) in &lowest {
        for vcpu in &part.vcpus {
            let lane = vcpu_lane(vcpu, LaneKind::Vcpu, &part.machine);
            drawn.lanes.extend(building.take((*place, Whose::Vcpu(vcpu.tid)), lane, &numbers));
            drawn.vcpus.push(VcpuLane { vm: vcpu.vm.clone(), vcpu: vcpu.vcpu, tid: vcpu.tid });
        }
    }
    for ((place, part), workers) in lowest.iter().zip(found) {
        let machine = several.then_some(part.machine.as_str());
        for number in building.cpus(*place) {
            drawn.lanes.extend(building.take((*place, Whose::Cpu(number)), cpu_lane(number, machine), &numbers));
        }
        for worker in workers {
            drawn.lanes.extend(building.take((*place, Whose::Task(worker.1)), worker_lane(worker, machine), &numbers));
        }
    }
    for (place, part) in &guests {
        for vcpu in &part.vcpus {
            let lane = vcpu_lane(vcpu, LaneKind::GuestVcpu, &part.machine);
            drawn.lanes.extend(building.take((*place, Whose::Vcpu(vcpu.tid)), lane, &numbers));
        }
        for number in building.cpus(*place) {
            let lane = guest_cpu_lane(number, &part.machine);
            drawn.lanes.extend(building.take((*place, Whose::Cpu(number)), lane, &numbers));
        }
    }
    drawn
}

/// The time that the overview of `flow` shows.
pub fn whole_span(flow: &Flow) -> Span {
    Span { from_ns: 0, to_ns: longest_ns(&by_place(flow).0) }
}

/// Where the last of the `lowest` traces ends.
pub(super) fn longest_ns(lowest: &[Placed<'_>]) -> u64 {
    lowest.iter().map(|(_, part)| part.on_axis(span(part).to_ns)).max().unwrap_or(0)
}

/// The lowest parts with the lane of their first vCPU: those of vCPUs come before all others.
pub fn lanes_of(flow: &Flow) -> impl Iterator<Item = (usize, &PartFlow, u32)> {
    by_place(flow).0.into_iter().scan(0, |first_lane, (place, part)| {
        let first = std::mem::replace(first_lane, *first_lane + part.vcpus.len() as u32);
        Some((place, part, first))
    })
}

/// Adds up lanes, and looks into some chains.
struct Both<'a, 'b> {
    adding: Adding<'a>,
    looking: Looking<'b>,
}

impl Take for Both<'_, '_> {
    fn piece(&mut self, whose: Whose, at_ns: u64, look: Look, detail: &str) {
        self.looking.piece(whose, at_ns, look, detail);
        self.adding.piece(whose, at_ns, look, detail);
    }

    fn chain(&mut self, tid: i32, chain: &Chain) {
        self.looking.chain(tid, chain);
        self.adding.chain(tid, chain);
    }
}

pub(super) type Placed<'a> = (usize, &'a PartFlow);

/// The parts that are drawn: those of the lowest machines, and aligned ones of guests.
pub(super) fn by_place(flow: &Flow) -> (Vec<Placed<'_>>, Vec<Placed<'_>>) {
    let drawn = flow.parts.iter().enumerate().filter(|(_, part)| part.twin_of.is_none());
    drawn.partition(|(_, part)| part.aligned.is_none())
}

/// A thread on the VMM's side: what it is, its number, its name.
type Worker<'a> = (LaneKind, i32, &'a str);

/// The workers of a part that get a lane, and a note if some do not: then the trace is walked to see which ran longest.
fn drawn_workers<'a>(
    (part, flow): (&walk::Part, &'a PartFlow),
    given: &Given,
    progress: &mut dyn FnMut(u64, u64),
) -> (Vec<Worker<'a>>, Option<String>) {
    let mut workers = crate::workers::of(flow);
    if workers.len() <= workers::MOST {
        workers.sort();
        return (workers, None);
    }
    let tids: FxHashSet<i32> = workers.iter().map(|(_, tid, _)| *tid).collect();
    let mut ran = Ran::default();
    let mut passing = Passing::new(flow, &tids, &mut ran);
    kept(part, flow, (given, Bounds::default()), Some(&mut passing), progress);
    let (longest, left_out) = workers::longest(workers, |tid| ran.by_tid.get(&tid).map(|(ran_ns, _)| *ran_ns));
    let note = workers::note(longest.len(), left_out);
    (longest, note)
}

/// How long each task ran, and since when it runs.
#[derive(Default)]
struct Ran {
    by_tid: FxHashMap<i32, (u64, Option<u64>)>,
}

impl Take for Ran {
    fn piece(&mut self, whose: Whose, at_ns: u64, look: Look, _: &str) {
        let Whose::Task(tid) = whose else { return };
        let (ran_ns, since_ns) = self.by_tid.entry(tid).or_default();
        *ran_ns += since_ns.take().map_or(0, |since_ns| at_ns.saturating_sub(since_ns));
        *since_ns = (look == Look::Running).then_some(at_ns);
    }

    fn chain(&mut self, _: i32, _: &Chain) {}
}

/// Markers that a page has room for; where events were lost is unknown time in the lanes as well.
const MOST_MARKERS: usize = 1_000;

/// The first markers, and a note if there are more.
fn first_markers(mut markers: Vec<Marker>) -> (Vec<Marker>, Option<String>) {
    markers.sort_by_key(|marker| marker.at_ns);
    let all = markers.len();
    markers.truncate(MOST_MARKERS);
    let note = (all > MOST_MARKERS).then(|| {
        format!(
            "Of {} marks of lost events the first {} are drawn; lanes are unknown at all of them.",
            thousands(all as u64),
            thousands(MOST_MARKERS as u64)
        )
    });
    (markers, note)
}
