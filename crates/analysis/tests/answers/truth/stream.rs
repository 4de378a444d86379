//! A trace's events in memory, so that streams can be made of them that no recorder gave us: started in the middle,
//! with events lost, cut off after any event.

use kvmscope_analysis::facts::events::roles;
use std::path::Path;
use trace::batch::Batch;
use trace::batch::STORED;
use trace::lane::{Lane, Source};
use trace::{Facts, Reading, Trace};

/// Events of a trace in the roles of the state machine.
pub(super) struct Stream {
    facts: Facts,
    lanes: Vec<Vec<Batch>>,
}

impl Stream {
    /// Reads a trace without the events of the `ignored` names.
    pub(super) fn read(path: &Path, ignored: &[&str]) -> Self {
        let trace = trace::open(path).unwrap();
        let facts = trace.facts().clone();
        let ignored: Vec<String> = ignored.iter().map(|name| (*name).to_owned()).collect();
        let request = roles::request(&ignored, |_| true);
        let reading = Reading { request: &request, fitted: trace::calibrate::fit(trace.as_ref()) };
        let batches = |lane: Lane<'_>| lane.source.batches(facts.event_types.len()).collect();
        let lanes = trace.lanes(&reading).into_iter().map(batches).collect();
        Self { facts, lanes }
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.iter().flatten().map(Batch::len).sum()
    }

    /// The stream without its first `count` events, as if the recorder had started later.
    pub(super) fn started_after(&self, count: usize) -> Self {
        self.edited(|index, _, _| index >= count)
    }

    /// The stream without `count` events from `first` on, with a mark of their loss before the next.
    pub(super) fn with_gap(&self, first: usize, count: usize) -> Self {
        self.edited(|index, time_ns, batch| {
            if index == first + count {
                batch.lost(time_ns, 0, count as u64, 0);
            }
            !(first..first + count).contains(&index)
        })
    }

    /// Copies those events of a trace of one CPU that `keep` wants; it gets an event's position and time, and may add
    /// to the batch before it.
    fn edited(&self, mut keep: impl FnMut(usize, u64, &mut Batch) -> bool) -> Self {
        assert_eq!(self.lanes.len(), 1, "positions count along one CPU's events");
        let mut index = 0;
        let edit = |batch: &Batch| {
            let mut edited = without_events(batch);
            for at in 0..batch.len() {
                if keep(index, batch.rows[at].time_ns, &mut edited) {
                    copy_event(batch, at, &mut edited);
                }
                index += 1;
            }
            edited
        };
        Self { facts: self.facts.clone(), lanes: vec![self.lanes[0].iter().map(edit).collect()] }
    }
}

fn copy_event(from: &Batch, at: usize, to: &mut Batch) {
    let row = from.rows[at];
    if row.layout == STORED {
        let start = row.start as usize;
        let next = from.rows[at + 1..].iter().find(|next| next.layout == STORED);
        let end = next.map_or(from.values.len(), |next| next.start as usize);
        to.begin(row.time_ns, row.kind, row.cpu, row.tid, from.values[start]);
        from.values[start + 1..end].iter().for_each(|value| to.value(*value));
    } else {
        to.rows.push(row);
    }
    to.saw_time(row.time_ns);
}

/// A batch for events of `batch`, which it has none of yet.
fn without_events(batch: &Batch) -> Batch {
    let (bytes, records) = (batch.bytes.clone(), batch.records.clone());
    Batch { bytes, records, layouts: batch.layouts.clone(), tally: batch.tally.clone(), ..Batch::default() }
}

fn copy(batch: &Batch) -> Batch {
    let mut copied = without_events(batch);
    (0..batch.len()).for_each(|at| copy_event(batch, at, &mut copied));
    copied.span_ns = batch.span_ns;
    copied
}

impl Trace for Stream {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn lanes<'t>(&'t self, _: &'t Reading<'t>) -> Vec<Lane<'t>> {
        let lane = |batches: &'t Vec<Batch>| Lane {
            name: String::new(),
            cpu: None,
            bytes: 0,
            source: Source::Sequence(Box::new(batches.iter().map(copy))),
        };
        self.lanes.iter().map(lane).collect()
    }
}
