//! All events of a trace with all their fields, in a form that tests can compare.

use base::Problem;
use kvmscope_trace::batch::LOST;
use kvmscope_trace::{Batch, EventType, FieldKind, FieldType, Lane, Reading, Request, Trace};
use std::path::Path;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Int(i128),
    Float(f64),
    Text(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub time_ns: u64,
    pub name: String,
    pub cpu: u32,
    pub tid: i32,
    pub fields: Vec<(String, Value)>,
}

/// What reading a whole trace gave.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Events of all lanes, sorted by time; events of one lane keep their order.
    pub events: Vec<Seen>,
    /// Loss records: time and number of events.
    pub lost: Vec<(u64, u64)>,
    /// Sum of all tallies.
    pub counted: u64,
    /// Problems of opening and of reading.
    pub problems: Vec<Problem>,
}

impl Seen {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    pub(super) fn int(&self, name: &str) -> i128 {
        match self.get(name) {
            Some(Value::Int(value)) => *value,
            other => panic!("{name} of {self:?} is {other:?}"),
        }
    }

    pub(super) fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(value)) => value,
            other => panic!("{name} of {self:?} is {other:?}"),
        }
    }
}

/// Calls `take` with each batch of a lane.
pub(super) fn each_batch(lane: Lane<'_>, event_types: usize, take: impl FnMut(Batch)) {
    lane.source.batches(event_types).for_each(take);
}

/// The `at`-th event of a batch that was read with [`Request::everything`].
pub(super) fn seen(batch: &Batch, at: usize, types: &[EventType]) -> Seen {
    let kind = &types[usize::from(batch.rows[at].kind)];
    let fields = batch.fields(&batch.rows[at]);
    let read = |(place, field): (usize, &FieldType)| {
        let raw = fields.get(place)?;
        let content = || fields.content(place).unwrap_or_default();
        let value = match field.kind {
            FieldKind::Unsigned => Value::Int(raw.into()),
            FieldKind::Signed => Value::Int((raw as i64).into()),
            FieldKind::Float => Value::Float(f64::from_bits(raw)),
            FieldKind::Text => Value::Text(String::from_utf8_lossy(content()).into_owned()),
            FieldKind::Bytes => Value::Text(format!("{:02x?}", content())),
        };
        Some((field.name.clone(), value))
    };
    let fields = kind.fields.iter().take(64).enumerate().filter_map(read).collect();
    let name = if kind.system.is_empty() { kind.name.clone() } else { format!("{}:{}", kind.system, kind.name) };
    Seen { time_ns: batch.rows[at].time_ns, name, cpu: batch.rows[at].cpu, tid: batch.rows[at].tid, fields }
}

pub(super) fn read(trace: &dyn Trace) -> Whole {
    let facts = trace.facts();
    let request = Request::everything(facts);
    let reading = Reading { request: &request, fitted: None };
    let mut whole = Whole { problems: facts.problems.clone(), ..Whole::default() };
    for lane in trace.lanes(&reading) {
        each_batch(lane, facts.event_types.len(), |batch| {
            for at in 0..batch.len() {
                if batch.rows[at].kind == LOST {
                    let row = &batch.rows[at];
                    whole.lost.push((row.time_ns, batch.fields(row).get(0).unwrap_or(0)));
                } else {
                    whole.events.push(seen(&batch, at, &facts.event_types));
                }
            }
            whole.counted += batch.tally.iter().map(|count| u64::from(*count)).sum::<u64>();
            whole.problems.extend(batch.problems.iter().cloned());
        });
    }
    whole.events.sort_by_key(|event| event.time_ns);
    whole
}

/// Opens and reads everything.
pub(super) fn read_path(path: &Path) -> Whole {
    read(kvmscope_trace::ctf::open(path).unwrap().as_ref())
}
