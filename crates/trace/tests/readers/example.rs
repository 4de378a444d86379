//! The example that the documentation of the crate begins with.

use kvmscope_trace::{Event, Listener, Reading, Request, Wanted};

/// Counts the exits of guests, and the time between the first and the last of them.
#[derive(Default)]
struct Exits {
    count: u64,
    times_ns: Option<(u64, u64)>,
}

impl Listener for Exits {
    fn event(&mut self, event: &Event<'_>) {
        self.count += 1;
        let first_ns = self.times_ns.map_or(event.time_ns, |(first_ns, _)| first_ns);
        self.times_ns = Some((first_ns, event.time_ns));
    }
}

#[test]
fn a_trace_and_a_listener_are_enough_to_begin_with() {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/nested-svm-toy/L0/trace.dat");
    let trace = kvmscope_trace::open(fixture.as_ref()).unwrap();
    let exits = Wanted { names: vec!["kvm_exit".to_owned()], fields: vec![vec!["exit_reason".to_owned()]] };
    let request = Request { events: vec![exits] };
    let mut heard = Exits::default();
    let totals = kvmscope_trace::replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut heard);
    assert!(heard.count > 100 && heard.count < totals.events());
    let (first_ns, last_ns) = heard.times_ns.unwrap();
    let (from_ns, to_ns) = totals.span_ns.unwrap();
    assert!(from_ns <= first_ns && first_ns < last_ns && last_ns <= to_ns);
}
