//! Lanes, slices and chains as JSON: the same from a server, which keeps a timeline, and on a page, which has an overview.

use base::Span;
use base::timeline::{
    Chain, Drawn, Lane, LaneId, LaneSums, Marker, Overview, Slice, State, Timeline as _, WakeUp, Waker,
};
use serde::Serialize;

/// What all lanes share, and each of them.
#[derive(Debug, Serialize)]
pub struct Timeline<'a> {
    span: Span,
    states: &'a [State],
    lanes: Vec<LaneRow<'a>>,
    markers: &'a [Marker],
    notes: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
struct LaneRow<'a> {
    id: u32,
    #[serde(flatten)]
    lane: &'a Lane,
    slices: u64,
    chains: u64,
}

impl<'a> Timeline<'a> {
    /// All lanes of a timeline that is kept.
    pub fn of_drawn(drawn: &'a Drawn) -> Self {
        let (timeline, span) = (&drawn.timeline, drawn.timeline.span());
        let mut chains = vec![0; timeline.lanes().len()];
        for chain in &drawn.chains {
            if let Some(count) = chains.get_mut(chain.lane.0 as usize) {
                *count += 1;
            }
        }
        let lane = |(id, (lane, chains)): (u32, (&'a Lane, u64))| LaneRow {
            id,
            lane,
            slices: timeline.slices(LaneId(id), span, 0).left_out,
            chains,
        };
        Self {
            span,
            states: timeline.states(),
            lanes: (0..).zip(timeline.lanes().iter().zip(chains)).map(lane).collect(),
            markers: timeline.markers(),
            notes: drawn.notes.iter().map(String::as_str).collect(),
        }
    }

    /// The first `lanes` lanes of a timeline that was added up.
    pub(crate) fn of_overview(overview: &'a Overview, lanes: usize) -> Self {
        let lane = |(id, of): (u32, &'a LaneSums)| LaneRow {
            id,
            lane: &of.lane,
            slices: of.sums.slices().into(),
            chains: of.chains,
        };
        Self {
            span: overview.span(),
            states: &overview.states,
            lanes: (0..).zip(overview.lanes.iter().take(lanes)).map(lane).collect(),
            markers: &overview.markers,
            notes: overview.notes.iter().chain(&overview.bounds).map(String::as_str).collect(),
        }
    }
}

/// Some slices of a lane.
#[derive(Debug, Serialize)]
pub struct Slices<'a> {
    slices: Vec<SliceRow<'a>>,
    left_out: u64,
    /// Where nobody asks for them there are none, which says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    wakes: Option<Vec<WakeRow<'a>>>,
}

/// When the lane's thread was woken, and by whom if that is known.
#[derive(Debug, Serialize)]
struct WakeRow<'a> {
    woken_ns: u64,
    ran_ns: u64,
    cpu: Option<u32>,
    by: Option<WakerRow<'a>>,
}

#[derive(Debug, Serialize)]
struct WakerRow<'a> {
    kind: &'static str,
    name: &'a str,
    lane: Option<u32>,
}

impl<'a> WakeRow<'a> {
    fn of(wake: WakeUp, wakers: &'a [Waker]) -> Self {
        let by = match wakers.get(wake.by as usize) {
            Some(Waker::Task { name, lane }) => Some(WakerRow { kind: "task", name, lane: lane.map(|lane| lane.0) }),
            Some(Waker::Interrupt(name)) => Some(WakerRow { kind: "interrupt", name, lane: None }),
            Some(Waker::Unknown) | None => None,
        };
        Self { woken_ns: wake.woken_ns, ran_ns: wake.ran_ns, cpu: wake.cpu, by }
    }
}

#[derive(Debug, Serialize)]
struct SliceRow<'a> {
    index: u32,
    from_ns: u64,
    to_ns: u64,
    state: u8,
    detail: &'a str,
}

impl<'a> SliceRow<'a> {
    fn of(slice: Slice, detail: &'a str) -> Self {
        let Slice { id, span, state } = slice;
        Self { index: id.index, from_ns: span.from_ns, to_ns: span.to_ns, state: state.0, detail }
    }
}

impl<'a> Slices<'a> {
    /// Slices, each with what is known of it, and how many more there are.
    pub fn of(slices: impl Iterator<Item = (Slice, &'a str)>, left_out: u64) -> Self {
        Self { slices: slices.map(|(slice, detail)| SliceRow::of(slice, detail)).collect(), left_out, wakes: None }
    }

    /// Where the last of them ends.
    pub fn end_ns(&self) -> Option<u64> {
        self.slices.last().map(|slice| slice.to_ns)
    }

    /// The same with the wake-ups of the lane, which `wakers` made.
    pub fn with_wakes(self, wakes: impl Iterator<Item = WakeUp>, wakers: &'a [Waker]) -> Self {
        Self { wakes: Some(wakes.map(|wake| WakeRow::of(wake, wakers)).collect()), ..self }
    }
}

#[derive(Debug, Serialize)]
pub struct LaneSlices<'a> {
    pub lane: u32,
    #[serde(flatten)]
    pub slices: Slices<'a>,
}

#[derive(Debug, Serialize)]
pub struct SliceOfLane<'a> {
    lane: u32,
    #[serde(flatten)]
    slice: SliceRow<'a>,
}

impl<'a> SliceOfLane<'a> {
    pub fn of(slice: Slice, detail: &'a str) -> Self {
        Self { lane: slice.id.lane.0, slice: SliceRow::of(slice, detail) }
    }
}

#[derive(Debug, Serialize)]
pub struct ChainRow<'a> {
    id: u64,
    #[serde(flatten)]
    chain: &'a Chain,
    /// The most frequent reason of its exits, all of them counted.
    most: Option<(&'a str, u64)>,
}

impl<'a> ChainRow<'a> {
    /// A chain by its id, which is its place among all chains of the recording by lane and time.
    pub fn of(id: u64, chain: &'a Chain) -> Self {
        Self { id, chain, most: chain.most_frequent() }
    }
}

/// Ids of undisturbed chains of one reason that stand for the others, by cost.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Picks {
    /// Half of them cost no more.
    pub median: Option<u64>,
    /// 99 % of them cost no more.
    pub p99: Option<u64>,
    /// None of them costs more.
    pub worst: Option<u64>,
    /// The next more expensive one.
    pub next: Option<u64>,
    /// The next cheaper one.
    pub previous: Option<u64>,
}

/// A chain with its slices, and which others to look at.
#[derive(Debug, Serialize)]
pub struct ChainInside<'a> {
    #[serde(flatten)]
    pub chain: ChainRow<'a>,
    #[serde(flatten)]
    pub slices: Slices<'a>,
    pub picks: Picks,
}
