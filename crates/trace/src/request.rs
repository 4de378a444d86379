//! Which events and fields does the caller want?
//!
//! A reader that is asked for ten kinds of events does not pay for the other hundred: it reads their headers, counts
//! them and goes on.

use crate::{EventType, Facts};

/// What a caller wants from a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The kinds of events; an event carries its position in this list as its [`Kind`](crate::Kind).
    pub events: Vec<Wanted>,
}

/// One kind of event and the fields wanted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Names under which tracers know it: `kvm_exit`, `kvm_x86_exit`. `system:name` demands the group as well.
    pub names: Vec<String>,
    /// Per field the names under which it is known: `prev_pid`, `prev_tid`. Values come in this order.
    pub fields: Vec<Vec<String>>,
}

/// Most fields one kind of event can be asked for: the presence mask has 64 bits.
pub const MOST_FIELDS: usize = 64;

impl Request {
    /// Every event and every field the trace describes; kind `i` is `facts.event_types[i]`.
    pub fn everything(facts: &Facts) -> Self {
        let events = facts
            .event_types
            .iter()
            .map(|event| Wanted {
                names: vec![full_name(event)],
                fields: event.fields.iter().take(MOST_FIELDS).map(|field| vec![field.name.clone()]).collect(),
            })
            .collect();
        Self { events }
    }

    /// The kind under which `event` was asked for.
    pub fn kind_of(&self, event: &EventType) -> Option<usize> {
        self.events.iter().position(|wanted| wanted.matches(event))
    }
}

impl Wanted {
    /// True if `event` has one of the names.
    pub fn matches(&self, event: &EventType) -> bool {
        self.names.iter().any(|name| {
            let before = name.strip_suffix(&event.name);
            before.is_some_and(|before| before.is_empty() || before.strip_suffix(':') == Some(&event.system))
        })
    }

    /// For each wanted field the position of the field in `event` that answers it.
    pub fn positions(&self, event: &EventType) -> Vec<Option<usize>> {
        self.fields
            .iter()
            .map(|names| names.iter().find_map(|name| event.fields.iter().position(|field| field.name == *name)))
            .collect()
    }
}

/// `system:name`, or the bare name where there is no group.
fn full_name(event: &EventType) -> String {
    if event.system.is_empty() { event.name.clone() } else { format!("{}:{}", event.system, event.name) }
}
