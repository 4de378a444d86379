//! Which events of a trace show who runs vCPUs?
//!
//! Entries and exits do, and where they fire nothing else is needed. Where none fires, as under kvm_pvm (docs/record.md),
//! what KVM does for the guest of the running thread is all that there is. Those events are nearly as many as exits, so
//! they are asked for only then.

use crate::facts::events::roles::{self, ROWS, Role};
use trace::{Reading, Request, Trace, Wanted};

/// The request for all events that matter in `trace`, without the ignored ones.
pub fn request(trace: &dyn Trace, ignore: &[String]) -> Request {
    let has = |name: &str| trace.facts().event_types.iter().any(|event| event.name == name);
    let mut request = roles::request(ignore, has);
    for (row, wanted) in ROWS.iter().zip(&mut request.events).filter(|(row, _)| row.role == Role::Served) {
        if !row.names.iter().any(|name| has(name)) || fires(trace, ignore) {
            wanted.names.clear();
        }
    }
    request
}

/// True if an entry or an exit fires somewhere in the trace. Lanes are read in turn, a batch of each, up to the first one.
fn fires(trace: &dyn Trace, ignore: &[String]) -> bool {
    let rows = ROWS.iter().filter(|row| matches!(row.role, Role::Entry | Role::Exit));
    let names = rows.flat_map(|row| row.names).map(|name| (*name).to_owned());
    let wanted = Wanted { names: names.filter(|name| !ignore.contains(name)).collect(), fields: Vec::new() };
    let event_types = &trace.facts().event_types;
    if !event_types.iter().any(|event| wanted.matches(event)) {
        return false;
    }
    let request = Request { events: vec![wanted] };
    let reading = Reading { request: &request, fitted: None };
    let mut lanes: Vec<_> =
        trace.lanes(&reading).into_iter().map(|lane| lane.source.batches(event_types.len())).collect();
    let mut found = false;
    while !found && !lanes.is_empty() {
        lanes.retain_mut(|lane| {
            let batch = if found { None } else { lane.next() };
            found |= batch.as_ref().is_some_and(|batch| batch.rows.iter().any(|row| row.kind != trace::batch::LOST));
            batch.is_some()
        });
    }
    found
}
