//! Lanes, tiles, slices and chains of one recording.

use super::asked::{Asked, Named, lane, window};
use super::{Answer, Served, at_work, json};
use crate::chains::{self, MOST, Wanted};
use crate::error::Refused;
use crate::page::with_type;
use axum::extract::State;
use axum::response::Response;
use base::Span;
use base::timeline::{Drawn, LaneId, Slice, Timeline, tile};
use serde::Deserialize;
use serde_json::json;
use show::json::timeline::{ChainInside, ChainRow, Slices as ShownSlices, Timeline as Described};

/// The most pixels of a tile: more than any screen has.
const WIDEST: u32 = 8_192;

/// The most lanes of a tile: vCPUs and CPUs of a large host.
const MOST_LANES: usize = 512;

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

pub async fn timeline(shared: Served, Named(id): Named<String>) -> Answer {
    of(shared, id, |drawn| json(&Described::of_drawn(drawn))).await
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
        if asked.w == 0 || asked.w > WIDEST {
            return Err(Refused::wrong(format!("w = {} pixels; a tile has 1 to {}", asked.w, WIDEST)));
        }
        if timeline.states().len() > tile::MOST_STATES {
            let (states, most) = (timeline.states().len(), tile::MOST_STATES);
            return Err(Refused::unanswered(format!("the timeline has {states} states; a tile holds {most}")));
        }
        let lanes = wanted_lanes(timeline, asked.lanes.as_deref())?;
        if tile::length(lanes.len(), timeline.states().len(), asked.w) > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            return Err(Refused::wrong(format!("a tile has at most {most} MiB; ask for fewer lanes or pixels")));
        }
        let window = window(timeline, asked.t0, asked.t1)?;
        Ok(with_type(tile::of_window(timeline, &lanes, window, asked.w), "application/octet-stream"))
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
            list.split(',').take(MOST_LANES + 1).map(number).collect::<Result<_, _>>()?
        }
    };
    if lanes.len() > MOST_LANES {
        return Err(Refused::wrong(format!("a tile has at most {} lanes; ask for fewer by lanes=", MOST_LANES)));
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

fn shown_slices(drawn: &Drawn, lane: LaneId, window: Span, limit: usize) -> ShownSlices<'_> {
    let found = drawn.timeline.slices(lane, window, limit.min(MOST));
    let detail = |slice: &Slice| drawn.timeline.detail(slice.id).map_or("", |(_, detail)| detail);
    ShownSlices::of(found.slices.iter().map(|slice| (*slice, detail(slice))), found.left_out)
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

pub async fn chain(shared: Served, Named((id, chain)): Named<(String, usize)>) -> Answer {
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
