//! What a page draws of a flow that a test made up slice by slice.

use base::timeline::{COLUMNS, COLUMNS_BESIDE, Drawn, LaneSums, Overview, Zooms};
use base::timeline::{ChainRanks, ChainRequest, ChainSlices, ChainSums, Condensed, Grid, LaneId, StateId, Timeline};
use kvmscope_show::html::{Drafting, Drawing};

/// The drawing of everything in `drawn`.
pub(crate) fn drawing(drawn: &Drawn) -> Drawing {
    let timeline = &drawn.timeline;
    let (span, states) = (timeline.span(), timeline.states().to_vec());
    let (zooms, vcpus, all) = (Zooms::of(span.to_ns), drawn.vcpus.len(), timeline.lanes().len());
    let lane = |(place, lane): (usize, &base::timeline::Lane)| {
        let id = LaneId(place as u32);
        let (columns, lanes) = if place < vcpus { (COLUMNS, vcpus) } else { (COLUMNS_BESIDE, all) };
        let zoom = zooms.finest_of(states.len(), lanes);
        let mut sums = Condensed::new(Grid::new(span, columns), Grid::new(zooms.window(zoom), zooms.width(zoom)));
        let slices = timeline.slices(id, span, usize::MAX).slices;
        slices.iter().for_each(|slice| sums.push(slice.span.from_ns, slice.state.0));
        sums.end(slices.last().map_or(0, |last| last.span.to_ns));
        let states = (0..states.len() as u8).map(StateId).collect();
        let chains = drawn.chains.iter().filter(|chain| chain.lane == id).count() as u64;
        LaneSums { lane: lane.clone(), sums, states, chains }
    };
    let overview = Overview {
        lanes: timeline.lanes().iter().enumerate().map(lane).collect(),
        states: states.clone(),
        vcpus: drawn.vcpus.clone(),
        markers: timeline.markers().to_vec(),
        notes: drawn.notes.clone(),
        bounds: Vec::new(),
        end_ns: span.to_ns,
    };
    let (mut drafting, mut ranks) = (Drafting::new(span), ChainRanks::default());
    for (place, chain) in drawn.chains.iter().enumerate() {
        let nth = drawn.chains[..place].iter().filter(|before| before.lane == chain.lane).count() as u32;
        let (reason, is_undisturbed) = (chain.reason.as_str(), chain.is_undisturbed());
        let (lane, span, exits, cost_ns) = (chain.lane, chain.span, chain.exits, chain.cost_ns);
        let sums = ChainSums { lane, nth, reason, span, exits, cost_ns, is_undisturbed };
        drafting.chain(&sums);
        ranks.add(&sums);
    }
    let inside = |wanted: &ChainRequest| {
        let chain = drawn.chains.iter().filter(|chain| chain.lane == wanted.lane).nth(wanted.nth as usize).unwrap();
        let slices = timeline.slices(wanted.lane, wanted.window(), usize::MAX).slices.into_iter();
        let slices = slices.map(|slice| (slice, timeline.detail(slice.id).unwrap().1.to_owned())).collect();
        ChainSlices { chain: chain.clone(), slices, left_out: 0 }
    };
    let ranks = ranks.on_lanes(Some, |at_ns| at_ns);
    drafting.finish(&ranks, overview, ranks.wanted().iter().map(inside).collect())
}
