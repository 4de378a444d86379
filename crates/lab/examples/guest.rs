//! Runs a test guest: `cargo run --release -p kvmscope-lab --example guest PROGRAM ROUNDS`
//!
//! Prints what userspace saw of it; fails if the guest did not come to its end. `make bench` takes its CPU time with
//! and without a recorder, to tell what recording costs a guest.

use kvmscope_lab::guest::{Ended, Guest, open, programs};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let names = programs::PROGRAMS.iter().map(|program| program.name).collect::<Vec<_>>().join(", ");
    let usage = format!("usage: guest PROGRAM ROUNDS; programs: {names}");
    let program = arguments.next().and_then(|name| programs::named(&name)).ok_or(usage.as_str())?;
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).ok_or(usage.as_str())?;
    let outcome = Guest::new(&open(Path::new("/dev/kvm"))?)?.run(program, rounds, LIMIT)?;
    if outcome.ended != Ended::Whole {
        return Err(format!("the guest did not come to its end: {:?}", outcome.ended).into());
    }
    println!("{rounds} rounds of {}: {:?}", program.name, outcome.exits);
    Ok(())
}
