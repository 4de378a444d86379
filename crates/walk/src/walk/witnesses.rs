//! Which events of a trace show who runs vCPUs?
//!
//! Entries and exits do, and where they fire nothing else is needed. Where none fires, as under kvm_pvm (docs/use/record.md),
//! what KVM does for the guest of the running thread is all that there is. Those events are nearly as many as exits, so
//! they are asked for only then.

use crate::events::roles::{self, ROWS, Role};
use trace::{Reading, Request, Trace, Wanted};

/// What the events of a trace can tell.
pub(super) struct Witnesses {
    /// The request for all events that matter in it, without the ignored ones.
    pub request: Request,
    pub exits_fire: bool,
    /// No event of KVM's fires: names of threads alone say who runs vCPUs.
    pub is_silent: bool,
}

/// Those of `trace`, if the events `ignore` were not in it.
pub(super) fn of(trace: &dyn Trace, ignore: &[String]) -> Witnesses {
    let has = |name: &str| trace.facts().event_types.iter().any(|event| event.name == name);
    let mut request = roles::request(ignore, has);
    let exits_fire = fires(trace, Role::Exit, ignore);
    let runs_are_told = exits_fire || fires(trace, Role::Entry, ignore);
    for (row, wanted) in ROWS.iter().zip(&mut request.events).filter(|(row, _)| row.role == Role::Served) {
        if runs_are_told || !row.names.iter().any(|name| has(name)) {
            wanted.names.clear();
        }
    }
    let is_silent = !runs_are_told && !SERVING.iter().any(|role| fires(trace, *role, ignore));
    Witnesses { request, exits_fire, is_silent }
}

/// True for an event that only a thread with a vCPU has.
pub(super) fn is_of_vcpu(role: Role) -> bool {
    matches!(role, Role::Entry | Role::Exit) || SERVING.contains(&role)
}

/// What KVM does for the guest of the running thread.
const SERVING: [Role; 5] = [Role::Served, Role::Emulate, Role::InjectException, Role::PageFault, Role::UserspaceExit];

/// True if an event of `role` fires somewhere in the trace. Lanes are read in turn, a batch of each, up to the first one.
fn fires(trace: &dyn Trace, role: Role, ignore: &[String]) -> bool {
    let names = ROWS.iter().filter(|row| row.role == role).flat_map(|row| row.names).map(|name| (*name).to_owned());
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
