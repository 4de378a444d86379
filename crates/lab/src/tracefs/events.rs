//! Which events a plan asks for, and which of them the kernel lets us have.

use super::instance::{Instance, Tracefs};
use super::plan::Plan;
use crate::Error;

/// The events of the plan that this kernel has.
pub(super) fn wanted(tracefs: &Tracefs, plan: &Plan) -> Result<Vec<(String, String)>, Error> {
    let events = tracefs.path("events");
    let mut names = Vec::new();
    for selection in &plan.events {
        for name in selection.names(&events)? {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Ok(names)
}

/// Switches events on, and returns those that the kernel let us have.
pub(super) fn enable(instance: &Instance, names: &[(String, String)]) -> Result<Vec<(String, String)>, Error> {
    let mut enabled = Vec::new();
    let mut refused = None;
    for (system, name) in names {
        match instance.set(&format!("events/{system}/{name}/enable"), "1") {
            Ok(()) => enabled.push((system.clone(), name.clone())),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match refused {
        Some(error) if enabled.is_empty() => Err(error),
        _ if enabled.is_empty() => Err(Error::Absent("this kernel has none of the events to record".to_owned())),
        _ => Ok(enabled),
    }
}
