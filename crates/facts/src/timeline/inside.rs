//! What happened inside some chains: of a walk that passes all lanes the slices around them are kept.

use super::drawn_chain;
use super::lanes::Look;
use super::passing::{Take, Whose};
use crate::ledger::model::PartFlow;
use base::Span;
use base::timeline::{Chain, ChainRequest, ChainSlices, LaneId, Overview, Slice, SliceId, StateId};
use rustc_hash::FxHashMap;
use walk::thread;

pub(super) struct Inside {
    found: Vec<Found>,
    most: usize,
}

impl Inside {
    /// Nothing found yet of the `wanted` chains; at most `most` slices are kept of a chain, and of what is wanted around it.
    pub(super) fn new(wanted: &[ChainRequest], most: usize) -> Self {
        Self { found: wanted.iter().map(|wanted| Found::new(*wanted)).collect(), most }
    }

    /// Who looks into the chains of `part`, whose first vCPU has that lane.
    pub(super) fn of<'a>(&'a mut self, part: &'a PartFlow, first_lane: u32) -> Looking<'a> {
        let of_lane = |lane: u32| {
            let mut wanted: Vec<usize> =
                (0..self.found.len()).filter(|place| self.found[*place].wanted.lane.0 == lane).collect();
            wanted.sort_by_key(|place| self.found[*place].wanted.window().from_ns);
            Lane { lane: LaneId(lane), wanted, slices: 0, chains: 0, open: None }
        };
        let lanes = part.vcpus.iter().zip(first_lane..).map(|(vcpu, lane)| (vcpu.tid, of_lane(lane)));
        // A lane in which nothing is wanted is not followed.
        let lanes = lanes.filter(|(_, lane)| !lane.wanted.is_empty()).collect();
        Looking { lanes, found: &mut self.found, flow: part, most: self.most }
    }

    /// What was found, with the states that `overview` knows.
    pub(super) fn found(self, overview: &Overview) -> Vec<ChainSlices> {
        let numbers = |lane: LaneId| overview.lanes.get(lane.0 as usize).map_or(&[][..], |lane| &lane.states);
        self.found.into_iter().filter_map(|found| found.inside(&numbers)).collect()
    }
}

struct Found {
    wanted: ChainRequest,
    chain: Option<Chain>,
    slices: Vec<Piece>,
    /// Slices that touch the chain, and its window.
    in_chain: u64,
    in_window: u64,
    kept: u64,
}

impl Found {
    fn new(wanted: ChainRequest) -> Self {
        Self { wanted, chain: None, slices: Vec::new(), in_chain: 0, in_window: 0, kept: 0 }
    }

    fn slice(&mut self, (id, own, look): (SliceId, Span, Look), detail: &str, most: usize) {
        let touches = |span: Span| own.from_ns < span.to_ns && own.to_ns > span.from_ns;
        let most = most as u64;
        let of_chain = touches(self.wanted.span);
        if (of_chain && self.in_chain < most) || (touches(self.wanted.window()) && self.in_window < most) {
            self.slices.push(Piece { id, span: own, look, detail: detail.to_owned() });
            self.kept += u64::from(of_chain);
        }
        self.in_chain += u64::from(of_chain);
        self.in_window += u64::from(touches(self.wanted.window()));
    }

    fn inside<'n>(self, numbers: &impl Fn(LaneId) -> &'n [StateId]) -> Option<ChainSlices> {
        let slice = |Piece { id, span, look, detail }: Piece| {
            let state = *numbers(id.lane).get(look.index())?;
            Some((Slice { id, span, state }, detail))
        };
        let slices = self.slices.into_iter().filter_map(slice).collect();
        Some(ChainSlices { chain: self.chain?, slices, left_out: self.in_chain - self.kept })
    }
}

/// A slice whose state has no number yet.
struct Piece {
    id: SliceId,
    span: Span,
    look: Look,
    detail: String,
}

struct Lane {
    lane: LaneId,
    /// Places of the wanted chains whose window is not over, by its begin.
    wanted: Vec<usize>,
    /// Slices and chains so far.
    slices: u32,
    chains: u32,
    /// The slice that has not ended: when it began, its look, what is known of it.
    open: Option<(u64, Look, String)>,
}

/// Looks into the chains of one trace.
pub(super) struct Looking<'a> {
    lanes: FxHashMap<i32, Lane>,
    found: &'a mut [Found],
    flow: &'a PartFlow,
    most: usize,
}

impl Looking<'_> {
    /// The trace is over.
    pub(super) fn end(self, end_ns: u64) {
        let Self { mut lanes, found, most, .. } = self;
        lanes.values_mut().for_each(|lane| lane.close(end_ns, found, most));
    }
}

impl Lane {
    /// The open slice ends at `to_ns`.
    fn close(&mut self, to_ns: u64, found: &mut [Found], most: usize) {
        let Some((from_ns, look, detail)) = self.open.take() else { return };
        let id = SliceId { lane: self.lane, index: self.slices };
        self.slices += 1;
        if to_ns <= from_ns || self.wanted.is_empty() {
            return;
        }
        let slice = (id, Span { from_ns, to_ns }, look);
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

    fn chain(&mut self, tid: i32, chain: &thread::Chain) {
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
