//! Lanes, tiles, slices and chains of one recording.

use super::asked::{Asked, Named, lane, window};
use super::{Answer, Served, at_work, json};
use crate::chains::{self, MOST, Wanted};
use crate::error::Refused;
use crate::page::with_type;
use crate::tile;
use axum::extract::State;
use axum::response::Response;
use base::Span;
use base::timeline::{Counter, Drawn, LaneId, Marker, State as Described, Timeline};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Answers with what `answer` makes of the timeline of the recording called `id`.
async fn of(
    State(shared): Served,
    id: String,
    answer: impl FnOnce(&Drawn) -> Result<Response, Refused> + Send + 'static,
) -> Answer {
    at_work(move || answer(shared.open(&id)?.drawn()?)).await
}

pub async fn timeline(shared: Served, Named(id): Named<String>) -> Answer {
    of(shared, id, |drawn| json(&described(drawn))).await
}

fn described(drawn: &Drawn) -> Value {
    let timeline = &drawn.timeline;
    let span = timeline.span();
    let state = |state: &Described| json!({ "name": state.name, "title": state.title });
    let lane = |place: usize| {
        let (lane, id) = (&timeline.lanes()[place], LaneId(place as u32));
        let slices = timeline.slices(id, span, 0).left_out;
        let chains = drawn.chains.iter().filter(|chain| chain.lane == id).count();
        json!({ "id": place, "kind": lane.kind.name(), "group": lane.group, "title": lane.title, "tid": lane.tid,
                "slices": slices, "chains": chains })
    };
    let marker = |marker: &Marker| json!({ "lane": marker.lane.map(|lane| lane.0), "at_ns": marker.at_ns, "label": marker.label });
    let counter =
        |counter: &Counter| json!({ "title": counter.title, "unit": counter.unit, "samples": counter.samples });
    json!({
        "span": { "from_ns": span.from_ns, "to_ns": span.to_ns },
        "states": timeline.states().iter().map(state).collect::<Vec<_>>(),
        "lanes": (0..timeline.lanes().len()).map(lane).collect::<Vec<_>>(),
        "markers": timeline.markers().iter().map(marker).collect::<Vec<_>>(),
        "counters": timeline.counters().iter().map(counter).collect::<Vec<_>>(),
        "notes": drawn.notes,
    })
}

#[derive(Deserialize)]
pub struct Tile {
    lanes: Option<String>,
    t0: Option<u64>,
    t1: Option<u64>,
    w: u32,
}

pub async fn tile(shared: Served, Named(id): Named<String>, Asked(asked): Asked<Tile>) -> Answer {
    of(shared, id, move |drawn| {
        let timeline = &drawn.timeline;
        if asked.w == 0 || asked.w > tile::WIDEST {
            return Err(Refused::wrong(format!("w = {} pixels; a tile has 1 to {}", asked.w, tile::WIDEST)));
        }
        if timeline.states().len() > tile::MOST_STATES {
            let (states, most) = (timeline.states().len(), tile::MOST_STATES);
            return Err(Refused::unanswered(format!("the timeline has {states} states; a tile holds {most}")));
        }
        let lanes = wanted_lanes(timeline, asked.lanes.as_deref())?;
        if tile::length(lanes.len(), timeline.states().len(), asked.w) > tile::MOST_BYTES {
            let most = tile::MOST_BYTES >> 20;
            return Err(Refused::wrong(format!("a tile has at most {most} MiB; ask for fewer lanes or pixels")));
        }
        let window = window(timeline, asked.t0, asked.t1)?;
        Ok(with_type(tile::tile(timeline, &lanes, window, asked.w), "application/octet-stream"))
    })
    .await
}

/// `0,3,1`; all, where nothing is said.
fn wanted_lanes(timeline: &impl Timeline, asked: Option<&str>) -> Result<Vec<LaneId>, Refused> {
    let lanes: Vec<LaneId> = match asked {
        None => (0..timeline.lanes().len() as u32).map(LaneId).collect(),
        Some(list) => {
            let number = |text: &str| {
                let number = text.parse().map_err(|_| Refused::wrong("write lane numbers, as in lanes=0,1"))?;
                lane(timeline, number)
            };
            list.split(',').take(tile::MOST_LANES + 1).map(number).collect::<Result<_, _>>()?
        }
    };
    if lanes.len() > tile::MOST_LANES {
        return Err(Refused::wrong(format!("a tile has at most {} lanes; ask for fewer by lanes=", tile::MOST_LANES)));
    }
    Ok(lanes)
}

#[derive(Deserialize)]
pub struct Slices {
    lane: u32,
    t0: Option<u64>,
    t1: Option<u64>,
    limit: Option<usize>,
}

pub async fn states(shared: Served, Named(id): Named<String>, Asked(asked): Asked<Slices>) -> Answer {
    of(shared, id, move |drawn| {
        let window = window(&drawn.timeline, asked.t0, asked.t1)?;
        let lane = lane(&drawn.timeline, asked.lane)?;
        json(&json!({ "time_ns": drawn.timeline.coverage(lane, window, 1).time_ns }))
    })
    .await
}

pub async fn slices(shared: Served, Named(id): Named<String>, Asked(asked): Asked<Slices>) -> Answer {
    of(shared, id, move |drawn| {
        let window = window(&drawn.timeline, asked.t0, asked.t1)?;
        let lane = lane(&drawn.timeline, asked.lane)?;
        json(&shown_slices(drawn, lane, window, asked.limit.unwrap_or(1_000)))
    })
    .await
}

#[derive(Serialize)]
struct ShownSlices<'a> {
    slices: Vec<ShownSlice<'a>>,
    left_out: u64,
}

#[derive(Serialize)]
struct ShownSlice<'a> {
    index: u32,
    from_ns: u64,
    to_ns: u64,
    state: u8,
    detail: &'a str,
}

fn shown_slices(drawn: &Drawn, lane: LaneId, window: Span, limit: usize) -> ShownSlices<'_> {
    let found = drawn.timeline.slices(lane, window, limit.min(MOST));
    let slices = found.slices.iter().map(|slice| ShownSlice {
        index: slice.id.index,
        from_ns: slice.span.from_ns,
        to_ns: slice.span.to_ns,
        state: slice.state.0,
        detail: drawn.timeline.detail(slice.id).map_or("", |(_, detail)| detail),
    });
    ShownSlices { slices: slices.collect(), left_out: found.left_out }
}

pub async fn chains(shared: Served, Named(id): Named<String>, Asked(wanted): Asked<Wanted>) -> Answer {
    of(shared, id, move |drawn| json(&chains::find(drawn, &wanted)?)).await
}

#[derive(Deserialize)]
pub struct Part {
    t0: Option<u64>,
    t1: Option<u64>,
}

pub async fn aggregates(shared: Served, Named(id): Named<String>, Asked(asked): Asked<Part>) -> Answer {
    of(shared, id, move |drawn| {
        let narrowed = asked.t0.is_some() || asked.t1.is_some();
        let window = narrowed.then(|| window(&drawn.timeline, asked.t0, asked.t1)).transpose()?;
        json(&show::aggregates::aggregates(drawn, window))
    })
    .await
}

#[derive(Serialize)]
struct OneChain<'a> {
    #[serde(flatten)]
    chain: chains::Shown<'a>,
    #[serde(flatten)]
    slices: ShownSlices<'a>,
    picks: chains::Picks,
}

pub async fn chain(shared: Served, Named((id, chain)): Named<(String, usize)>) -> Answer {
    of(shared, id, move |drawn| {
        let Some(found) = drawn.chains.get(chain) else {
            let total = drawn.chains.len();
            return Err(Refused::missing(format!("no chain {chain}; chains in this recording: {total}")));
        };
        let slices = shown_slices(drawn, found.lane, found.span, 10_000);
        json(&OneChain { chain: chains::shown(drawn, chain), slices, picks: chains::picks(drawn, chain) })
    })
    .await
}
