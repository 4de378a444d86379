//! The rows of a trace: every event with all its fields, in the order in which they happened.
//!
//! A trace has no index of its events, so the rows before the wanted ones are walked over; nothing behind them is read.
//! How many there are in all is counted beside that, and unknown until it is done.

use base::Clock;
use serde::Serialize;
use std::fmt::Write;
use trace::{Event, Facts, FieldKind, Listener, Reading, Request, Trace};

/// Some rows, and how many there are.
#[derive(Debug, Default, Serialize)]
pub struct Rows {
    /// The rows.
    pub events: Vec<Row>,
    /// How many rows the trace has, losses included; `None` until they are counted.
    pub total: Option<u64>,
}

/// One event.
#[derive(Debug, Serialize)]
pub struct Row {
    time_ns: u64,
    cpu: u32,
    tid: i32,
    name: String,
    fields: String,
}

/// How many rows `trace` has: all its events, and a row for each place where some were lost.
pub fn count(trace: &dyn Trace) -> u64 {
    let mut page = Page { skip: u64::MAX, ..Page::of(trace.facts()) };
    replay(trace, None, &mut page);
    page.seen
}

/// `limit` rows from row `offset` on; with the trace's rows, if it ends before that.
pub fn rows(trace: &dyn Trace, clock: Option<Clock>, offset: u64, limit: usize) -> Rows {
    let mut page = Page { skip: offset, limit, ..Page::of(trace.facts()) };
    replay(trace, clock, &mut page);
    Rows { total: (!page.enough()).then_some(page.seen), events: page.rows }
}

fn replay(trace: &dyn Trace, fitted: Option<Clock>, page: &mut Page<'_>) {
    let request = Request::everything(trace.facts());
    trace::replay(trace, &Reading { request: &request, fitted }, page);
}

struct Page<'f> {
    facts: &'f Facts,
    skip: u64,
    limit: usize,
    seen: u64,
    origin_ns: u64,
    rows: Vec<Row>,
}

impl<'f> Page<'f> {
    fn of(facts: &'f Facts) -> Self {
        Self { facts, skip: 0, limit: 0, seen: 0, origin_ns: 0, rows: Vec::new() }
    }
}

impl Listener for Page<'_> {
    fn start(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
    }

    fn event(&mut self, event: &Event<'_>) {
        let place = self.seen;
        self.seen += 1;
        if place < self.skip || self.rows.len() >= self.limit {
            return;
        }
        let (name, fields) = told(self.facts, event);
        let time_ns = event.time_ns.saturating_sub(self.origin_ns);
        self.rows.push(Row { time_ns, cpu: event.cpu, tid: event.tid, name, fields });
    }

    fn enough(&self) -> bool {
        self.skip != u64::MAX && self.rows.len() >= self.limit
    }
}

/// The event's name and its fields, as trace-cmd's `-R` prints them: `a=1 b=0x..`.
fn told(facts: &Facts, event: &Event<'_>) -> (String, String) {
    let mut fields = String::new();
    if event.is_loss() {
        let _ = write!(fields, "events={} until_ns={}", event.or_zero(0), event.until_ns);
        return ("lost".to_owned(), fields);
    }
    let Some(kind) = facts.event_types.get(usize::from(event.kind)) else { return (String::new(), fields) };
    for (place, field) in kind.fields.iter().enumerate().take(trace::request::MOST_FIELDS) {
        let Some(value) = event.get(place) else { continue };
        let gap = if fields.is_empty() { "" } else { " " };
        let _ = write!(fields, "{gap}{}=", field.name);
        let _ = match field.kind {
            FieldKind::Unsigned => write!(fields, "{value}"),
            FieldKind::Signed => write!(fields, "{}", value as i64),
            FieldKind::Float => write!(fields, "{}", f64::from_bits(value)),
            FieldKind::Text => {
                write!(fields, "{}", String::from_utf8_lossy(event.content(place).unwrap_or_default()))
            }
            FieldKind::Bytes => {
                event.content(place).unwrap_or_default().iter().try_for_each(|b| write!(fields, "{b:02x}"))
            }
        };
    }
    (kind.name.clone(), fields)
}
