//! The data behind the page, as one JSON object on it: what a script, or another program, reads.
//!
//! ```text
//! { "report":   what `report --json` prints,
//!   "timeline": span, states, lanes, markers, counters,
//!   "pyramid":  [ { "t0_ns", "t1_ns", "width", "tile": base64 } ]   coarse to fine,
//!   "chains":   [ the most telling ones, with their slices ],
//!   "aggregates": sums over all chains }
//! ```
//! Times are integers, ns since the recording's first event. Large objects are gzip in base64, which a browser unpacks
//! with `DecompressionStream`; the compressor's header carries no time, so equal input gives equal bytes.

use super::chains::{ByReason, MOST_SLICES, by_reason};
use super::pyramid::{self, Level};
use crate::aggregates::aggregates;
use crate::json::{self, Answered};
use analysis::flow::timeline::Drawn;
use base::timeline::{LaneId, Timeline};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Objects up to this length stand on the page as they are, readable by people.
const READABLE_BYTES: usize = 64 << 10;

/// Besides the median, the 99th percentile and the worst of each reason: this many of the dearest.
const DEAREST: usize = 40;

/// The page's data, before it is decided how much of it fits.
pub struct Data {
    /// As it is printed: parsed and written again, a number could change in its last digit.
    report: String,
    timeline: Value,
    levels: Vec<Level>,
    chains: Vec<Value>,
    aggregates: Value,
}

impl Data {
    /// Everything there is; `beside` tells whether the lanes beside those of the vCPUs belong to it.
    ///
    /// # Errors
    /// If the report cannot be written as JSON.
    pub fn new(answered: &Answered<'_>, drawn: Option<&Drawn>, beside: bool) -> io::Result<Self> {
        let lanes = |drawn: &Drawn| if beside { drawn.timeline.lanes().len() } else { drawn.vcpus.len() };
        let mut report = Vec::new();
        json::write(&mut report, "report", &[*answered])?;
        Ok(Self {
            report: String::from_utf8_lossy(&report).trim_end().to_owned(),
            timeline: drawn.map_or(Value::Null, |drawn| timeline(drawn, lanes(drawn))),
            levels: drawn.map_or_else(Vec::new, |drawn| pyramid::levels(&drawn.timeline, lanes(drawn))),
            chains: drawn.map_or_else(Vec::new, chains),
            aggregates: drawn.map_or(Value::Null, |drawn| json!(aggregates(drawn, None))),
        })
    }

    /// Leaves out what costs most and tells least; says what that was, or nothing if nothing is left.
    pub fn shrink(&mut self) -> Option<&'static str> {
        if self.levels.len() > 1 {
            self.levels.pop();
            return Some("the finest zooms of the timeline");
        }
        if !self.chains.is_empty() {
            self.chains.clear();
            return Some("single chains with their steps");
        }
        self.levels.pop().map(|_| "the timeline's data")
    }

    /// The element that holds the data.
    pub fn element(&self) -> io::Result<String> {
        let level = |level: &Level| {
            json!({"t0_ns": level.window.from_ns, "t1_ns": level.window.to_ns, "width": level.width,
                   "tile": STANDARD.encode(&level.bytes)})
        };
        let pyramid: Vec<Value> = self.levels.iter().map(level).collect();
        let rest = json!({"timeline": self.timeline, "pyramid": pyramid, "chains": self.chains,
                          "aggregates": self.aggregates})
        .to_string();
        let text = format!("{{\"report\":{},{}", self.report, &rest[1..]);
        if text.len() <= READABLE_BYTES {
            // Inside JSON `<` only stands in strings, where an escape says the same and ends no element.
            let text = text.replace('<', "\\u003c");
            return Ok(format!("<script type=\"application/json\" id=\"kvmscope-data\">{text}</script>\n"));
        }
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
        packed.write_all(text.as_bytes())?;
        Ok(format!(
            "<script type=\"application/octet-stream\" id=\"kvmscope-data\" data-encoding=\"gzip\">{}</script>\n",
            STANDARD.encode(packed.finish()?)
        ))
    }
}

/// The timeline, of which the first `lanes` are told.
fn timeline(drawn: &Drawn, lanes: usize) -> Value {
    let timeline = &drawn.timeline;
    let span = timeline.span();
    let states: Vec<Value> =
        timeline.states().iter().map(|state| json!({"name": state.name, "title": state.title})).collect();
    let lanes = timeline.lanes().iter().take(lanes).enumerate().map(|(id, lane)| {
        let place = LaneId(id as u32);
        let chains = drawn.chains.iter().filter(|chain| chain.lane == place).count();
        json!({"id": id, "kind": lane.kind.name(), "group": lane.group, "title": lane.title, "tid": lane.tid,
               "slices": timeline.slices(place, span, 0).left_out, "chains": chains})
    });
    let markers = timeline
        .markers()
        .iter()
        .map(|marker| json!({"lane": marker.lane.map(|lane| lane.0), "at_ns": marker.at_ns, "label": marker.label}));
    let counters = timeline
        .counters()
        .iter()
        .map(|counter| json!({"title": counter.title, "unit": counter.unit, "samples": counter.samples}));
    json!({"span": {"from_ns": span.from_ns, "to_ns": span.to_ns}, "states": states,
           "lanes": lanes.collect::<Vec<_>>(), "markers": markers.collect::<Vec<_>>(),
           "counters": counters.collect::<Vec<_>>(), "notes": drawn.notes})
}

/// The chains that stand for the others, in the order of the timeline.
fn chains(drawn: &Drawn) -> Vec<Value> {
    let reasons = by_reason(drawn);
    let mut chosen: BTreeSet<usize> =
        reasons.iter().flat_map(|reason| [0.5, 0.99, 1.0].map(|share| reason.at(share))).collect();
    let mut dearest: Vec<usize> = reasons.iter().flat_map(|reason| reason.by_cost.iter().copied()).collect();
    dearest.sort_by_key(|place| (std::cmp::Reverse(drawn.chains[*place].cost_ns), *place));
    chosen.extend(dearest.into_iter().take(DEAREST));
    chosen.iter().map(|place| chain(drawn, *place, &reasons, &chosen)).collect()
}

/// A chain with its slices, and its neighbours by cost among those on the page.
fn chain(drawn: &Drawn, place: usize, reasons: &[ByReason<'_>], chosen: &BTreeSet<usize>) -> Value {
    let chain = &drawn.chains[place];
    let found = drawn.timeline.slices(chain.lane, chain.span, MOST_SLICES);
    let slices = found.slices.iter().map(|slice| {
        let detail = drawn.timeline.detail(slice.id).map_or("", |(_, detail)| detail);
        json!({"index": slice.id.index, "from_ns": slice.span.from_ns, "to_ns": slice.span.to_ns,
               "state": slice.state.0, "detail": detail})
    });
    let picks = reasons.iter().find(|reason| reason.reason == chain.reason).map(|reason| {
        let here: Vec<usize> = reason.by_cost.iter().copied().filter(|place| chosen.contains(place)).collect();
        let at = here.iter().position(|other| *other == place);
        let beside = |step: isize| at.and_then(|at| here.get(at.checked_add_signed(step)?));
        json!({"median": reason.at(0.5), "p99": reason.at(0.99), "worst": reason.at(1.0),
               "next": beside(1), "previous": beside(-1)})
    });
    json!({"id": place, "lane": chain.lane.0, "reason": chain.reason, "from_ns": chain.span.from_ns,
           "to_ns": chain.span.to_ns, "exits": chain.exits, "cost_ns": chain.cost_ns, "sequence": chain.sequence[..],
           "interrupted": chain.interrupted, "migrated": chain.migrated, "most": chain.most_frequent(),
           "slices": slices.collect::<Vec<_>>(), "left_out": found.left_out, "picks": picks})
}
