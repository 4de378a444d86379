//! What happened inside some chains: the trace is walked once more, and the slices around them are kept.

use super::drawn_chain;
use super::keeper::{Bounds, ChainPiece, kept};
use super::lanes::Look;
use super::overview::by_place;
use super::passing::{Passing, Take, Whose};
use crate::facts::ledger::model::{Flow, PartFlow};
use crate::{Input, Options};
use base::Span;
use base::timeline::{Chain, ChainRequest, ChainSlices, LaneId, Overview, Slice, SliceId, StateId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The slices of the `wanted` chains of an overview that was made of the same flow, at most `most` of a chain and of what is
/// wanted around it. In the order in which they are wanted; one that is not there is left out.
pub fn inside(
    input: &Input,
    options: &Options,
    flow: &Flow,
    (overview, wanted, most): (&Overview, &[ChainRequest], usize),
    progress: &mut dyn FnMut(u64, u64),
) -> Vec<ChainSlices> {
    let mut found: Vec<Found> = wanted.iter().map(|wanted| Found::new(*wanted)).collect();
    let mut first_lane = 0;
    for (place, part) in by_place(flow).0 {
        let lanes = first_lane..first_lane + part.vcpus.len() as u32;
        first_lane = lanes.end;
        if wanted.iter().all(|wanted| !lanes.contains(&wanted.lane.0)) {
            continue;
        }
        let of_lane = |lane: u32| {
            let mut places: Vec<usize> = (0..wanted.len()).filter(|place| wanted[*place].lane.0 == lane).collect();
            places.sort_by_key(|place| wanted[*place].window().from_ns);
            let numbers = &overview.lanes[lane as usize].states;
            Lane { lane: LaneId(lane), numbers, wanted: places, slices: 0, chains: 0, open: None }
        };
        let tids = part.vcpus.iter().map(|vcpu| vcpu.tid);
        let mut looking =
            Looking { lanes: tids.zip(lanes.map(of_lane)).collect(), found: &mut found, flow: part, most };
        let none = FxHashSet::default();
        let mut passing = Passing::new(part, &none, &mut looking);
        let bounds = Bounds { vcpus_alone: true, ..Bounds::default() };
        kept(&input.parts[place], part, (options, bounds), Some(&mut passing), progress);
        let end_ns = part.on_axis(super::passing::span(part).to_ns);
        looking.end(end_ns);
    }
    found.into_iter().filter_map(Found::inside).collect()
}

/// What was found of a wanted chain.
struct Found {
    wanted: ChainRequest,
    chain: Option<Chain>,
    slices: Vec<(Slice, String)>,
    /// Slices that touch the chain, and its window.
    in_chain: u64,
    in_window: u64,
    /// Those of the chain that are kept.
    kept: u64,
}

impl Found {
    fn new(wanted: ChainRequest) -> Self {
        Self { wanted, chain: None, slices: Vec::new(), in_chain: 0, in_window: 0, kept: 0 }
    }

    fn slice(&mut self, slice: Slice, detail: &str, most: usize) {
        let touches = |span: Span| slice.span.from_ns < span.to_ns && slice.span.to_ns > span.from_ns;
        let most = most as u64;
        let of_chain = touches(self.wanted.span);
        if (of_chain && self.in_chain < most) || (touches(self.wanted.window()) && self.in_window < most) {
            self.slices.push((slice, detail.to_owned()));
            self.kept += u64::from(of_chain);
        }
        self.in_chain += u64::from(of_chain);
        self.in_window += u64::from(touches(self.wanted.window()));
    }

    fn inside(self) -> Option<ChainSlices> {
        Some(ChainSlices { chain: self.chain?, slices: self.slices, left_out: self.in_chain - self.kept })
    }
}

/// A lane in which chains are wanted.
struct Lane<'a> {
    lane: LaneId,
    numbers: &'a [StateId],
    /// Places of the wanted chains whose window is not over, by its begin.
    wanted: Vec<usize>,
    /// Slices and chains so far.
    slices: u32,
    chains: u32,
    /// The slice that has not ended: when it began, its look, what is known of it.
    open: Option<(u64, Look, String)>,
}

struct Looking<'a> {
    lanes: FxHashMap<i32, Lane<'a>>,
    found: &'a mut [Found],
    flow: &'a PartFlow,
    most: usize,
}

impl Looking<'_> {
    fn end(&mut self, end_ns: u64) {
        let Self { lanes, found, most, .. } = self;
        lanes.values_mut().for_each(|lane| lane.close(end_ns, found, *most));
    }
}

impl Lane<'_> {
    /// The open slice ends at `to_ns`.
    fn close(&mut self, to_ns: u64, found: &mut [Found], most: usize) {
        let Some((from_ns, look, detail)) = self.open.take() else { return };
        let id = SliceId { lane: self.lane, index: self.slices };
        self.slices += 1;
        if to_ns <= from_ns || self.wanted.is_empty() {
            return;
        }
        let slice = Slice { id, span: Span { from_ns, to_ns }, state: self.numbers[look.index()] };
        self.wanted.retain(|place| found[*place].wanted.window().to_ns > from_ns);
        for place in &self.wanted {
            let found = &mut found[*place];
            if found.wanted.window().from_ns >= to_ns {
                break;
            }
            found.slice(slice, &detail, most);
        }
    }
}

impl Take for Looking<'_> {
    fn piece(&mut self, whose: Whose, at_ns: u64, look: Look, detail: &str) {
        let Whose::Vcpu(tid) = whose else { return };
        let at_ns = self.flow.on_axis(at_ns);
        let Some(lane) = self.lanes.get_mut(&tid) else { return };
        match &mut lane.open {
            // Of two states at one instant the later one wins.
            Some((from_ns, open, known)) if at_ns <= *from_ns => {
                *open = look;
                detail.clone_into(known);
            }
            _ => {
                lane.close(at_ns, self.found, self.most);
                lane.open = Some((at_ns, look, detail.to_owned()));
            }
        }
    }

    fn chain(&mut self, tid: i32, chain: &ChainPiece) {
        let Some(lane) = self.lanes.get_mut(&tid) else { return };
        let nth = lane.chains;
        lane.chains += 1;
        let is_it = |found: &&mut Found| found.wanted.lane == lane.lane && found.wanted.nth == nth;
        for found in self.found.iter_mut().filter(is_it) {
            let sequence = chain.sequence.iter().map(|reason| reason.name()).collect();
            found.chain = Some(drawn_chain(chain, lane.lane, self.flow, sequence));
        }
    }
}
