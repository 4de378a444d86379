//! The rows of a trace: every event with all its fields, in the order in which they happened.
//!
//! A trace has no index of its events, so the rows before the wanted ones are walked over; nothing behind them is read.
//! How many there are in all is counted beside that, and unknown until it is done.

use analysis::Case;
use serde::Serialize;
use std::fmt::Write;
use std::ops::ControlFlow;
use trace::{Event, Facts, FieldKind, Request};

/// Some rows, and how many there are.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Rows {
    pub events: Vec<Row>,
    /// How many rows the trace has, losses included; `None` until they are counted.
    pub total: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Row {
    time_ns: u64,
    cpu: u32,
    tid: i32,
    name: String,
    fields: String,
}

/// How many rows trace `part` has: all its events, and a row for each place where some were lost.
pub(crate) fn count(case: &Case, part: usize) -> u64 {
    let mut seen = 0;
    let request = Request::everything(case.input().parts[part].trace.facts());
    case.events(part, &request, |_, _| {
        seen += 1;
        ControlFlow::Continue(())
    });
    seen
}

/// `limit` rows from row `offset` on; with the trace's rows, if it ends before that.
pub(crate) fn rows(case: &Case, part: usize, offset: u64, limit: usize) -> Rows {
    let facts = case.input().parts[part].trace.facts();
    let (mut seen, mut events) = (0, Vec::new());
    case.events(part, &Request::everything(facts), |event, time_ns| {
        if events.len() >= limit {
            return ControlFlow::Break(());
        }
        if seen >= offset {
            let (name, fields) = told(facts, event);
            events.push(Row { time_ns, cpu: event.cpu, tid: event.tid, name, fields });
        }
        seen += 1;
        ControlFlow::Continue(())
    });
    Rows { total: (events.len() < limit).then_some(seen), events }
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
