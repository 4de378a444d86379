//! Counts the events of a trace by kind: `cargo run -p kvmscope-trace --example count FILE`.

use kvmscope_trace::{Event, Listener, Reading, Request, open, replay};
use std::path::Path;

struct Counter(u64);

impl Listener for Counter {
    fn event(&mut self, _: &Event<'_>) {
        self.0 += 1;
    }
}

fn main() -> Result<(), kvmscope_trace::Error> {
    let file = std::env::args().nth(1).expect("usage: count FILE");
    let trace = open(Path::new(&file))?;
    let request = Request::everything(trace.facts());
    let mut counter = Counter(0);
    let totals = replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut counter);
    let mut rows: Vec<_> = trace.facts().event_types.iter().zip(&totals.tally).filter(|(_, n)| **n > 0).collect();
    rows.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    for (event, count) in rows {
        println!("{count:>12} {}", event.name);
    }
    println!("{:>12} in all, {} listened to", totals.events(), counter.0);
    totals.problems.list().iter().for_each(|problem| eprintln!("{}", problem.text));
    Ok(())
}
