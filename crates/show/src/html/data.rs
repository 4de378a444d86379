//! The data behind the page, as one JSON object on it: what a script, or another program, reads.
//!
//! ```text
//! { "report":   what `report --json` prints,
//!   "timeline": span, states, lanes, markers, notes,
//!   "pyramid":  [ { "t0_ns", "t1_ns", "width", "tile": base64 } ]   coarse to fine,
//!   "chains":   [ the most telling ones, with their slices ],
//!   "aggregates": sums over all chains }
//! ```
//! Times are integers, ns since the recording's first event. Large objects are gzip in base64, which a browser unpacks
//! with `DecompressionStream`; the compressor's header carries no time, so equal input gives equal bytes.

use super::Drawing;
use super::chains::{Chosen, Shown};
use super::pyramid::{self, Level};
use crate::json::timeline::{ChainInside, ChainRow, Picks, Slices, Timeline};
use crate::json::{self, Answered};
use base::Span;
use base::timeline::Overview;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Objects up to this length stand on the page as they are, readable by people.
const READABLE_BYTES: usize = 64 << 10;

/// The page's data, before it is decided how much of it fits.
pub(super) struct Data {
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
    pub(super) fn new(answered: &Answered<'_>, drawing: Option<&Drawing>, beside: bool) -> io::Result<Self> {
        let overview = drawing.map(|drawing| &drawing.overview);
        let lanes = |of: &Overview| if beside { of.lanes.len() } else { of.vcpus.len() };
        let chains =
            |Drawing { chains, .. }: &Drawing| chains.chains.iter().map(|shown| chain(chains, shown)).collect();
        let mut report = Vec::new();
        json::write(&mut report, "report", &[*answered])?;
        Ok(Self {
            report: String::from_utf8_lossy(&report).trim_end().to_owned(),
            timeline: overview.map_or(Value::Null, |of| json!(Timeline::of_overview(of, lanes(of)))),
            levels: overview.map_or_else(Vec::new, |of| pyramid::levels(of, lanes(of))),
            chains: drawing.map_or_else(Vec::new, chains),
            aggregates: drawing.map_or(Value::Null, |drawing| json!(drawing.aggregates)),
        })
    }

    /// Leaves out what costs most and tells least; says what that was, or nothing if nothing is left.
    pub(super) fn shrink(&mut self) -> Option<&'static str> {
        if self.levels.len() > 1 {
            self.levels.pop();
            return Some("the finest zoom levels of the timeline");
        }
        if !self.chains.is_empty() {
            self.chains.clear();
            return Some("individual chains with their steps");
        }
        self.levels.pop().map(|_| "the timeline's data")
    }

    pub(super) fn element(&self) -> io::Result<String> {
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

/// A chain with its slices, and its neighbours by cost among those on the page.
fn chain(chosen: &Chosen, shown: &Shown) -> Value {
    let Shown { place, inside } = shown;
    let chain = &inside.chain;
    let touches = |span: Span| span.from_ns < chain.span.to_ns && span.to_ns > chain.span.from_ns;
    let slices = inside.slices.iter().filter(|(slice, _)| touches(slice.span));
    let slices = slices.map(|(slice, detail)| (*slice, detail.as_str()));
    let picks = chosen.reasons.iter().find(|reason| reason.reason == chain.reason).map(|reason| {
        let at = reason.by_cost.iter().position(|other| other == place);
        let beside = |step: isize| reason.by_cost.get(at?.checked_add_signed(step)?).copied();
        let (median, p99, worst) = (Some(reason.median), Some(reason.p99), Some(reason.worst));
        Picks { median, p99, worst, next: beside(1), previous: beside(-1) }
    });
    let (chain, slices) = (ChainRow::of(*place, chain), Slices::of(slices, inside.left_out));
    json!(ChainInside { chain, slices, picks: picks.unwrap_or_default() })
}
