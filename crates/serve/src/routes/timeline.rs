//! Lanes, tiles, slices and chains of one recording.

use super::asked::{Asked, Named, lane, window};
use super::lanes::{MOST_LANES, MOST_SUMMED, groups, lanes};
use super::{Answer, Served, at_work, json};
use crate::chains::{self, MOST, Wanted};
use crate::error::Refused;
use crate::page::with_type;
use axum::extract::State;
use axum::response::Response;
use base::Span;
use base::timeline::{Drawn, LaneId, Search, Slice, Timeline, tile};
use serde::Deserialize;
use serde_json::json;
use show::json::timeline::{
    ChainInside, ChainRow, LaneSlices, SliceOfLane, Slices as ShownSlices, Timeline as Described,
};

/// The most pixels of a tile: more than any screen has.
const WIDEST: u32 = 8_192;

/// The most bytes of a tile.
const MOST_BYTES: usize = 64 << 20;

/// Answers with what `answer` makes of the timeline of the recording called `id`.
async fn of(
    State(shared): Served,
    id: String,
    answer: impl FnOnce(&Drawn) -> Result<Response, Refused> + Send + 'static,
) -> Answer {
    at_work(move || answer(shared.open(&id)?.drawn())).await
}

pub(super) async fn timeline(shared: Served, Named(id): Named<String>) -> Answer {
    of(shared, id, |drawn| json(&Described::of_drawn(drawn))).await
}

#[derive(Deserialize)]
pub(super) struct Tile {
    lanes: Option<String>,
    means: Option<String>,
    t0: Option<u64>,
    t1: Option<u64>,
    w: u32,
}

pub(super) async fn tile(shared: Served, Named(id): Named<String>, Asked(asked): Asked<Tile>) -> Answer {
    of(shared, id, move |drawn| {
        let timeline = &drawn.timeline;
        if asked.w == 0 || asked.w > WIDEST {
            return Err(Refused::wrong(format!("w = {} pixels; a tile has 1 to {}", asked.w, WIDEST)));
        }
        if timeline.states().len() > tile::MOST_STATES {
            let (states, most) = (timeline.states().len(), tile::MOST_STATES);
            return Err(Refused::unanswered(format!("the timeline has {states} states; a tile holds {most}")));
        }
        let means = groups(timeline, asked.means.as_deref())?;
        // Who asks for groups alone wants no lane by itself.
        let lanes = match &asked.lanes {
            None if !means.is_empty() => Vec::new(),
            asked => lanes(timeline, asked.as_deref(), MOST_LANES)?,
        };
        if tile::length(lanes.len() + means.len(), timeline.states().len(), asked.w) > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            return Err(Refused::wrong(format!("a tile has at most {most} MiB; ask for fewer lanes or pixels")));
        }
        let window = window(timeline, asked.t0, asked.t1)?;
        let bytes = tile::with_means(timeline, &lanes, &means, window, asked.w);
        Ok(with_type(bytes, "application/octet-stream"))
    })
    .await
}

/// A window of one lane, or of several.
#[derive(Deserialize)]
pub(super) struct Slices {
    lane: Option<u32>,
    lanes: Option<String>,
    t0: Option<u64>,
    t1: Option<u64>,
    limit: Option<usize>,
}

/// Whose answer is wanted: that of one lane alone, or a list with an answer of each.
enum Of {
    One(LaneId),
    Each(Vec<LaneId>),
}

impl Slices {
    fn of(&self, timeline: &impl Timeline, most: usize) -> Result<Of, Refused> {
        match (self.lane, &self.lanes) {
            (Some(number), None) => Ok(Of::One(lane(timeline, number)?)),
            (None, Some(list)) => Ok(Of::Each(lanes(timeline, Some(list), most)?)),
            _ => Err(Refused::wrong("write lane=0 for one lane or lanes=0-3 for several")),
        }
    }
}

pub(super) async fn states(shared: Served, Named(id): Named<String>, Asked(asked): Asked<Slices>) -> Answer {
    of(shared, id, move |drawn| {
        let timeline = &drawn.timeline;
        let window = window(timeline, asked.t0, asked.t1)?;
        let time_ns = |lane| timeline.coverage(lane, window, 1).time_ns;
        match asked.of(timeline, MOST_SUMMED)? {
            Of::One(lane) => json(&json!({ "time_ns": time_ns(lane) })),
            Of::Each(lanes) => {
                let each = |lane: &LaneId| json!({ "lane": lane.0, "time_ns": time_ns(*lane) });
                json(&json!({ "lanes": lanes.iter().map(each).collect::<Vec<_>>() }))
            }
        }
    })
    .await
}

pub(super) async fn slices(shared: Served, Named(id): Named<String>, Asked(asked): Asked<Slices>) -> Answer {
    of(shared, id, move |drawn| {
        let window = window(&drawn.timeline, asked.t0, asked.t1)?;
        let limit = asked.limit.unwrap_or(1_000);
        match asked.of(&drawn.timeline, MOST_LANES)? {
            Of::One(lane) => json(&slices_and_wakes(drawn, lane, window, limit)),
            Of::Each(lanes) => {
                // What one lane may have at most, all of them together have.
                let limit = limit.min(MOST / lanes.len().max(1));
                let each =
                    |lane: &LaneId| LaneSlices { lane: lane.0, slices: slices_and_wakes(drawn, *lane, window, limit) };
                json(&json!({ "lanes": lanes.iter().map(each).collect::<Vec<_>>() }))
            }
        }
    })
    .await
}

/// The most reasons of an answer that says nothing else.
const REASONS: usize = 20;

pub(super) async fn reasons(shared: Served, Named(id): Named<String>, Asked(asked): Asked<Slices>) -> Answer {
    of(shared, id, move |drawn| {
        let timeline = &drawn.timeline;
        let window = window(timeline, asked.t0, asked.t1)?;
        let lanes = match asked.of(timeline, MOST_SUMMED)? {
            Of::One(lane) => vec![lane],
            Of::Each(lanes) => lanes,
        };
        let sums = timeline.reasons(&lanes, window);
        let shown = sums.iter().take(asked.limit.unwrap_or(REASONS)).map(
            |sum| json!({ "state": sum.state.0, "detail": sum.detail, "slices": sum.slices, "time_ns": sum.time_ns }),
        );
        let shown: Vec<_> = shown.collect();
        json(&json!({ "left_out": sums.len() - shown.len(), "reasons": shown }))
    })
    .await
}

/// What is searched for in the details of slices and in the titles of states, and from where.
#[derive(Deserialize)]
pub(super) struct Searched {
    q: String,
    lanes: Option<String>,
    t0: Option<u64>,
    t1: Option<u64>,
    at: Option<u64>,
    lane: Option<u32>,
}

pub(super) async fn search(shared: Served, Named(id): Named<String>, Asked(asked): Asked<Searched>) -> Answer {
    of(shared, id, move |drawn| {
        let timeline = &drawn.timeline;
        let word = asked.q.trim().to_lowercase();
        if word.is_empty() {
            return Err(Refused::wrong("q= is empty; write what to search for"));
        }
        let window = window(timeline, asked.t0, asked.t1)?;
        let lanes = lanes(timeline, asked.lanes.as_deref(), MOST_SUMMED)?;
        let at_lane = asked.lane.map(|number| lane(timeline, number)).transpose()?;
        let at_ns = asked.at.unwrap_or(window.from_ns);
        let found = timeline
            .search(&Search { lanes: &lanes, window, at_ns, at_lane }, |text| text.to_lowercase().contains(&word));
        let slice = |id| timeline.detail(id).map(|(slice, detail)| SliceOfLane::of(slice, detail));
        json(&json!({
            "count": found.count,
            "earlier": found.earlier,
            "later": found.later,
            "before": found.before.and_then(slice),
            "after": found.after.and_then(slice),
        }))
    })
    .await
}

fn shown_slices(drawn: &Drawn, lane: LaneId, window: Span, limit: usize) -> ShownSlices<'_> {
    let found = drawn.timeline.slices(lane, window, limit.min(MOST));
    let detail = |slice: &Slice| drawn.timeline.detail(slice.id).map_or("", |(_, detail)| detail);
    ShownSlices::of(found.slices.iter().map(|slice| (*slice, detail(slice))), found.left_out)
}

/// The same with the wake-ups in them; an answer that ends early has none behind its end.
fn slices_and_wakes(drawn: &Drawn, lane: LaneId, window: Span, limit: usize) -> ShownSlices<'_> {
    let shown = shown_slices(drawn, lane, window, limit);
    let window = Span { to_ns: shown.end_ns().map_or(window.from_ns, |end_ns| end_ns.min(window.to_ns)), ..window };
    shown.with_wakes(drawn.wakes.within(lane.0 as usize, window).take(limit.min(MOST)), &drawn.wakers)
}

pub(super) async fn chains(shared: Served, Named(id): Named<String>, Asked(wanted): Asked<Wanted>) -> Answer {
    of(shared, id, move |drawn| json(&chains::find(drawn, &wanted)?)).await
}

#[derive(Deserialize)]
pub(super) struct Part {
    t0: Option<u64>,
    t1: Option<u64>,
}

pub(super) async fn aggregates(shared: Served, Named(id): Named<String>, Asked(asked): Asked<Part>) -> Answer {
    of(shared, id, move |drawn| {
        let narrowed = asked.t0.is_some() || asked.t1.is_some();
        let window = narrowed.then(|| window(&drawn.timeline, asked.t0, asked.t1)).transpose()?;
        json(&show::aggregates::aggregates(drawn, window))
    })
    .await
}

pub(super) async fn chain(shared: Served, Named((id, chain)): Named<(String, usize)>) -> Answer {
    of(shared, id, move |drawn| {
        let Some(found) = drawn.chains.get(chain) else {
            let total = drawn.chains.len();
            return Err(Refused::missing(format!("no chain {chain}; chains in this recording: {total}")));
        };
        let slices = shown_slices(drawn, found.lane, found.span, 10_000);
        let picks = chains::picks(drawn, chain);
        json(&ChainInside { chain: ChainRow::of(chain as u64, found), slices, picks })
    })
    .await
}
