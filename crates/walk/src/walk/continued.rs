//! A walk that goes on from where it was, over what has come to a recording that grows.
//!
//! Memory grows with the threads met; when they are too many, or time was passed over, the walk starts anew and what a thread
//! does is unknown until its next event.

use super::replay::gaps;
use super::{Sink, Walk, witnesses};
use crate::events::roles::ROLES;
use crate::events::vendor;
use crate::thread::MOST_THREADS;
use base::Span;
use trace::replay::Listener;
use trace::{Event, Reading, Request, Trace};

/// A walk of which more will come.
pub struct Continued<S: Sink> {
    walk: Option<Walk<S>>,
}

#[derive(Clone, Copy)]
pub struct Come<'t> {
    /// Holds all events of the span, and perhaps others.
    pub trace: &'t dyn Trace,
    /// On the trace's own clock; spans come in order.
    pub span: Span,
    /// So much before it was passed over.
    pub skipped_ns: u64,
}

/// A walk that has seen nothing.
impl<S: Sink> Default for Continued<S> {
    fn default() -> Self {
        Self { walk: None }
    }
}

impl<S: Sink> Continued<S> {
    /// Goes on with what has come. `sink` makes the sink for it out of the one so far, of which there is none where the walk
    /// starts anew; `hear` gets each event of the span before the walk does.
    pub fn go_on(
        &mut self,
        come: Come<'_>,
        request: &Request,
        sink: impl FnOnce(Option<S>) -> S,
        hear: &mut dyn FnMut(&Event<'_>),
    ) -> &mut Walk<S>
    where
        S: Default,
    {
        let Come { trace, span, skipped_ns } = come;
        // More threads than are told apart are forgotten, and met again.
        let known = self.walk.take().filter(|walk| skipped_ns == 0 && walk.threads.len() < MOST_THREADS);
        let mut walk = match known {
            Some(mut walk) => {
                walk.sink = sink(Some(std::mem::take(&mut walk.sink)));
                walk
            }
            None => begun(sink(None), trace, span.from_ns),
        };
        // Told anew of each span: a CPU that is missing in one may be there in the next.
        for (cpu, from_ns, until_ns) in gaps(trace.facts(), None) {
            let (from_ns, until_ns) = (from_ns.max(span.from_ns), until_ns.min(span.to_ns));
            if from_ns < until_ns {
                walk.uncovered(cpu, from_ns, until_ns);
            }
        }
        let mut feed = Feed { walk: &mut walk, span, hear };
        trace::replay(trace, &Reading { request, fitted: None }, &mut feed);
        walk.losses.clear();
        self.walk.insert(walk)
    }
}

fn begun<S: Sink>(sink: S, trace: &dyn Trace, from_ns: u64) -> Walk<S> {
    let mut walk = Walk::new(sink);
    walk.isa = vendor::of(trace);
    // Names alone say who runs vCPUs until KVM does, which it may never do.
    walk.by_name = true;
    let has = |name: &str| trace.facts().event_types.iter().any(|event| event.name == name);
    walk.seen.wakeup = has("kvm_vcpu_wakeup");
    walk.seen.switches = has("sched_switch");
    walk.start(from_ns);
    walk
}

/// Feeds the walk with what lies in the span.
struct Feed<'w, S: Sink> {
    walk: &'w mut Walk<S>,
    span: Span,
    hear: &'w mut dyn FnMut(&Event<'_>),
}

impl<S: Sink> Listener for Feed<'_, S> {
    fn event(&mut self, event: &Event<'_>) {
        // A loss is told at its beginning, which may lie before the first page that is looked at.
        let at_ns = if event.is_loss() { event.until_ns } else { event.time_ns };
        if !(self.span.from_ns..self.span.to_ns).contains(&at_ns) {
            return;
        }
        if !event.is_loss() {
            (self.hear)(event);
        }
        let role = ROLES.get(usize::from(event.kind)).filter(|_| !event.is_loss());
        if role.is_some_and(|role| witnesses::is_of_vcpu(*role)) {
            self.walk.by_name = false;
        }
        if event.is_loss() || role.is_some() {
            self.walk.event(event);
        }
    }
}
