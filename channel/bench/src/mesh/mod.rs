//! What do several machines carry between each other: by a ring for each ordered pair, or through a switch?
//!
//! ```text
//! every machine   one turn: a batch to each other, a batch from each other       number = receiver | sender | count
//! switch          one turn: a batch from each machine, to the rings of those that it is for; what finds no room is dropped
//! end             machines say what they sent --> the switch empties its rings --> machines empty theirs
//! ```
//! What each does is in [`machine`] and [`switch`], what both do in [`worker`].

mod machine;
mod switch;
mod worker;

use super::Plan;
use super::machines::{Machine, by_pairs, starves, through};
use super::peer::Link;
use super::rings::shape;
use super::side::{Span, now};
use base::channel::{PAIRS, Run, SLICE_NS, Setup};
use channel::{Shape, Ticks};
use lab::Error;
use labs::bench::launch::ns_per_tick;
use machine::Met;
use std::time::Duration;
use switch::Switched;

/// Between the last word to the machines and the first frame: there may be many of them.
const HEAD_START: Duration = Duration::from_millis(10);
/// In a frame's number: who gets it, who sent it, and below them which one it is.
const RECEIVER_AT: u32 = 56;

/// Measures one setup.
///
/// # Errors
/// [`Error::Absent`] for what several machines do not do; otherwise if a process or a ring cannot be made.
pub(crate) fn carry(plan: &Plan, setup: &Setup) -> Result<Run, Error> {
    if takes_turns(plan, setup) && plan.fifo {
        return Err(starves());
    }
    let is_switched = setup.path == "switch";
    if (!is_switched && setup.path != "ring") || setup.window != "none" || setup.policy != "poll" {
        let what = "several machines are measured over path ring or switch, without a window, by policy poll";
        return Err(Error::Absent(what.to_owned()));
    }
    let shape = shape(plan, setup)?;
    let vms = setup.vms as usize;
    let grants = if is_switched { 2 } else { 2 * (vms - 1) };
    let mut machines = Vec::with_capacity(vms);
    for number in 0..setup.vms {
        let work = |socket, link: &mut Link| machine::mingle(plan, setup, number, socket, grants, link);
        machines.push(Machine::start(work)?);
    }
    let mut switch = None;
    if is_switched {
        let work = |socket, link: &mut Link| switch::forward(plan, setup, shape, socket, link);
        let started = Machine::start(work)?;
        through(&machines, &started, shape)?;
        switch = Some(started);
    } else {
        by_pairs(&machines, shape)?;
    }

    machines.iter_mut().chain(&mut switch).try_for_each(|machine| machine.peer.ready())?;
    let per_ns = 1.0 / ns_per_tick();
    let ticks = Ticks::new(per_ns);
    let from = now() + ticks.of_ns((HEAD_START + plan.warm_up).as_nanos() as u64);
    let span = Span { from, until: from + ticks.of_ns(plan.length.as_nanos() as u64), per_ns };
    machines.iter_mut().chain(&mut switch).try_for_each(|machine| machine.peer.go(span))?;

    // They say nothing before that.
    std::thread::sleep(HEAD_START + plan.warm_up + plan.length);
    // For each machine: what it sent to each other, in their order.
    let sent: Vec<Vec<u64>> = machines.iter_mut().map(|machine| machine.peer.hear()).collect::<Result<_, _>>()?;
    let all: u64 = sent.iter().flatten().sum();
    let switched: Option<Switched> = switch.map(|switch| switch.peer.end(all)).transpose()?;
    let to = |number: usize| match &switched {
        Some(switched) => switched.delivered.get(number).copied().unwrap_or(0),
        None => sent.iter().map(|sent| sent.get(number).copied().unwrap_or(0)).sum(),
    };
    let met: Vec<Met> = machines
        .into_iter()
        .enumerate()
        .map(|(number, machine)| machine.peer.end(to(number)))
        .collect::<Result<_, _>>()?;
    Ok(together(plan, setup, shape, all, met, switched))
}

/// Whether machines share CPUs, the switch counted.
fn takes_turns(plan: &Plan, setup: &Setup) -> bool {
    plan.machines.take_turns(setup.vms + u32::from(setup.path == "switch"))
}

fn together(plan: &Plan, setup: &Setup, shape: Shape, sent: u64, met: Vec<Met>, switched: Option<Switched>) -> Run {
    let sum = |of: fn(&Met) -> u64| met.iter().map(of).sum::<u64>();
    let dropped = switched.as_ref().map_or(0, |switched| switched.dropped);
    let seen = || met.iter().map(|met| &met.seen).chain(switched.as_ref().map(|switched| &switched.seen));
    let slices = seen().map(|seen| seen.dirty.len()).min().unwrap_or(0);
    let clean: Vec<usize> = (0..slices).filter(|&slice| seen().all(|seen| !seen.dirty[slice])).collect();
    let in_slice = |slice: usize| met.iter().map(|met| u64::from(met.seen.frames[slice])).sum::<u64>();
    let clean_packets = clean.iter().map(|&slice| in_slice(slice)).sum();
    let mut sides: std::collections::VecDeque<_> = seen().map(|seen| seen.side.clone()).collect();
    let (arrived, duplicated) = (sum(|met| met.arrived), sum(|met| met.duplicated));
    let copies = if switched.is_some() { 2 } else { 1 };
    Run {
        setup: setup.clone(),
        slots: shape.slots(),
        moved_bytes: copies * shape.bytes_moved(setup.size_bytes as usize, setup.batch) as u32,
        slice_ns: SLICE_NS,
        emulated: false,
        counted: false,
        setup_ns: None,
        setup_parts: Vec::new(),
        ring_bytes: shape.region_bytes() as u64,
        ns: plan.length.as_nanos() as u64,
        packets: sum(|met| met.in_time),
        slices: slices as u64,
        clean_slices: clean.len() as u64,
        clean_packets,
        // Numbers name sender and receiver, so that they are looked at in any case.
        verified: true,
        lost: (sent + duplicated).saturating_sub(arrived + dropped),
        duplicated,
        reordered: sum(|met| met.reordered),
        torn: sum(|met| met.torn),
        dropped,
        window_ns: 0.0,
        kicks: 0,
        pair: if takes_turns(plan, setup) { PAIRS[0].to_owned() } else { plan.machines.pair.clone() },
        producer: sides.pop_front().unwrap_or_default(),
        consumer: sides.pop_front().unwrap_or_default(),
        others: sides.into(),
    }
}
