//! What do several machines carry between each other: by a ring for each ordered pair, or through a switch?
//!
//! ```text
//! every machine   one turn: a batch to each other, a batch from each other       number = receiver | sender | count
//! switch          one turn: a batch from each machine, to the rings of those that it is for; what finds no room is dropped
//! end             machines say what they sent --> the switch empties its rings --> machines empty theirs
//! ```

use super::Plan;
use super::frames::{Arrived, Batch, number_of};
use super::machines::{Granted, Machine, Turns, by_pairs, cpu_of, starves, through};
use super::peer::{Cues, Link};
use super::rings::{settle, shape};
use super::side::{Counted, Look, Seen, Span, Watch, now};
use crate::Error;
use crate::bench::launch::ns_per_tick;
use base::channel::{MACHINE, PAIRS, Run, SLICE_NS, SWITCH, Setup};
use channel::{ChannelStats, FrameBuf, Open, Port, Producer, Shape, Switch, Ticks};
use serde::{Deserialize, Serialize};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Between the last word to the machines and the first frame: there may be many of them.
const HEAD_START: Duration = Duration::from_millis(10);
/// Frames on their way have so long to arrive after the last was sent.
const DRAINS_WITHIN_NS: u64 = 3_000_000_000;
/// In a frame's number: who gets it, who sent it, and below them which one it is.
const RECEIVER_AT: u32 = 56;
/// See there.
const SENDER_AT: u32 = 48;

/// What a machine answers.
#[derive(Serialize, Deserialize)]
struct Met {
    seen: Seen,
    in_time: u64,
    arrived: u64,
    duplicated: u64,
    reordered: u64,
    torn: u64,
}

/// What a switch does.
#[derive(Serialize, Deserialize)]
struct Switched {
    seen: Seen,
    /// Frames that went on, by the machine that they went to.
    delivered: Vec<u64>,
    dropped: u64,
}

/// Measures one setup.
///
/// # Errors
/// [`Error::Absent`] for what several machines do not do; otherwise if a process or a ring cannot be made.
pub fn carry(plan: &Plan, setup: &Setup) -> Result<Run, Error> {
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
        let work = |socket, link: &mut Link| mingle(plan, setup, number, socket, grants, link);
        machines.push(Machine::start(work)?);
    }
    let mut switch = None;
    if is_switched {
        let work = |socket, link: &mut Link| forward(plan, setup, shape, socket, link);
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

/// What one machine has to send to another: batches, of which the first frames may be gone already.
struct Outgoing {
    batch: Batch,
    next: u64,
    done: usize,
}

impl Outgoing {
    fn new(setup: &Setup, from: u32, to: u32) -> Outgoing {
        let mut batch = Batch::new(setup.batch as usize, setup.size_bytes as usize);
        let next = u64::from(to) << RECEIVER_AT | u64::from(from) << SENDER_AT;
        batch.number(next);
        Outgoing { batch, next, done: 0 }
    }

    /// Sends what there is room for: how many frames that was.
    fn push(&mut self, producer: &mut Producer<Open>) -> Result<u64, String> {
        let frames = self.batch.frames();
        let pushed = producer.push_batch(&frames[self.done..]).map_err(|fault| fault.to_string())?.frames;
        self.done += pushed;
        if self.done == frames.len() {
            (self.next, self.done) = (self.next + frames.len() as u64, 0);
            self.batch.number(self.next);
        }
        Ok(pushed as u64)
    }
}

/// A machine: sends to all others, and receives from them.
fn mingle(
    plan: &Plan,
    setup: &Setup,
    number: u32,
    socket: UnixStream,
    grants: usize,
    link: &mut Link,
) -> Result<Met, String> {
    let cpu = cpu_of(&plan.machines.cpus, number);
    settle(plan, cpu, MACHINE).map_err(|error| error.to_string())?;
    let mut granted = Granted::attach(&socket, grants)?;
    let others: Vec<u32> = (0..setup.vms).filter(|other| *other != number).collect();
    let mut outgoing: Vec<Outgoing> = others.iter().map(|&to| Outgoing::new(setup, number, to)).collect();
    let mut sent = vec![0_u64; setup.vms as usize];
    let mut arrived = vec![Arrived::default(); setup.vms as usize];
    let frame_bytes = granted.from.first().map_or(0, |(_, from)| from.header().shape.frame_bytes());
    let mut out = FrameBuf::new(setup.batch as usize, frame_bytes);
    let (mut turns, nothing) = (Turns::new(takes_turns(plan, setup)), ChannelStats::default());

    let span = link.ready().ok_or("the host has ended")?;
    let (mut watch, mut since, mut until) = (Watch::new(span), Counted::now(&nothing), None);
    let (mut in_time, mut expected) = (0, None);
    let give_up = span.until + (DRAINS_WITHIN_NS as f64 * span.per_ns) as u64;
    loop {
        let at = now();
        let look = watch.look(at);
        if look == Look::Begins {
            since = Counted::now(&nothing);
            watch.rested(now());
        }
        let ends = look == Look::Ends;
        if ends && until.is_none() {
            until = Some(Counted::now(&nothing));
            link.say(&sent).ok_or("the host has ended")?;
        }
        if ends && expected.is_none() {
            expected = link.sent();
        }
        let frames: u64 = arrived.iter().map(|arrived| arrived.frames).sum();
        if at > give_up || expected.is_some_and(|expected| frames >= expected) {
            break;
        }
        let mut moved = false;
        if !ends {
            for (at, (&to, outgoing)) in others.iter().zip(&mut outgoing).enumerate() {
                // Through a switch there is one ring for all.
                let at = at.min(granted.to.len() - 1);
                let pushed = outgoing.push(&mut granted.to[at].1)?;
                sent[to as usize] += pushed;
                moved |= pushed > 0;
            }
        }
        for (_, from) in &mut granted.from {
            let popped = from.pop_batch(&mut out, setup.batch as usize).map_err(|fault| fault.to_string())? as u64;
            if popped == 0 {
                continue;
            }
            moved = true;
            let at = now();
            for frame in out.iter() {
                take(&mut arrived, number, frame);
            }
            if (span.from..span.until).contains(&at) {
                in_time += popped;
                watch.count(at, popped);
            }
        }
        if moved {
            watch.moved();
        }
        turns.after(moved);
    }
    let sum = |of: fn(&Arrived) -> u64| arrived.iter().map(of).sum();
    Ok(Met {
        in_time,
        arrived: sum(|arrived| arrived.frames),
        duplicated: sum(|arrived| arrived.duplicated),
        reordered: sum(|arrived| arrived.reordered),
        torn: sum(|arrived| arrived.torn),
        seen: watch.seen(cpu, &since, &until.unwrap_or_else(|| Counted::now(&nothing))),
    })
}

/// Counts a frame for the machine that sent it; one that is for another machine was changed on the way, and so was one of nobody.
fn take(arrived: &mut [Arrived], here: u32, frame: &[u8]) {
    let number = number_of(frame).filter(|number| number >> RECEIVER_AT == u64::from(here));
    let sender = number.map_or(usize::MAX, |number| (number >> SENDER_AT) as usize & 0xff);
    match arrived.get_mut(sender) {
        Some(arrived) => arrived.take_numbered(number),
        None => arrived[here as usize].take_numbered(None),
    }
}

/// The switch: forwards by what stands in a frame, until all that was sent has gone somewhere.
fn forward(plan: &Plan, setup: &Setup, shape: Shape, socket: UnixStream, link: &mut Link) -> Result<Switched, String> {
    let cpu = cpu_of(&plan.machines.cpus, setup.vms);
    settle(plan, cpu, SWITCH).map_err(|error| error.to_string())?;
    let vms = setup.vms as usize;
    let granted = Granted::attach(&socket, 2 * vms)?;
    let ports = granted.from.into_iter().zip(granted.to).map(|((_, from), (_, to))| Port { from, to }).collect();
    let mut switch = Switch::new(ports, setup.batch as usize, shape.frame_bytes());
    let (mut turns, nothing) = (Turns::new(takes_turns(plan, setup)), ChannelStats::default());
    let span = link.ready().ok_or("the host has ended")?;
    let (mut watch, mut since, mut until) = (Watch::new(span), Counted::now(&nothing), None);
    let give_up = span.until + (DRAINS_WITHIN_NS as f64 * span.per_ns) as u64;
    let (mut sent, mut before) = (None, 0);
    loop {
        let at = now();
        let look = watch.look(at);
        if look == Look::Begins {
            since = Counted::now(&nothing);
            watch.rested(now());
        }
        let ends = look == Look::Ends;
        if ends && until.is_none() {
            until = Some(Counted::now(&nothing));
        }
        if ends && sent.is_none() {
            sent = link.sent();
        }
        if at > give_up || sent.is_some_and(|sent| before >= sent) {
            break;
        }
        let lost = switch.turn(|_, frame| number_of(frame).map(|number| (number >> RECEIVER_AT) as u16));
        if let Some((port, fault)) = lost.first() {
            return Err(format!("machine {port} broke the rules: {fault}"));
        }
        let forwarded = switch.forwarded();
        let after = forwarded.frames + forwarded.without_room + forwarded.without_rule;
        if after > before {
            watch.moved();
        }
        turns.after(after > before);
        before = after;
    }
    let delivered = (0..vms).map(|port| switch.port(port).map_or(0, |port| port.to.stats().packets)).collect();
    Ok(Switched {
        delivered,
        dropped: switch.forwarded().without_room,
        seen: watch.seen(cpu, &since, &until.unwrap_or_else(|| Counted::now(&nothing))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u64) -> Vec<u8> {
        let mut batch = Batch::new(1, 64);
        batch.number(number);
        batch.frames()[0].clone()
    }

    #[test]
    fn a_frame_counts_for_the_machine_that_sent_it_and_one_for_another_is_torn() {
        let mut arrived = vec![Arrived::default(); 4];
        let number = |to: u64, from: u64, count: u64| to << RECEIVER_AT | from << SENDER_AT | count;
        for (from, count) in [(0, 0), (3, 0), (0, 1), (3, 1), (3, 1)] {
            take(&mut arrived, 1, &frame(number(1, from, count)));
        }
        assert_eq!((arrived[0].frames, arrived[3].frames, arrived[3].duplicated), (2, 3, 1));
        // For machine 2, and of a machine that there is not.
        take(&mut arrived, 1, &frame(number(2, 0, 2)));
        take(&mut arrived, 1, &frame(number(1, 9, 0)));
        assert_eq!((arrived[1].frames, arrived[1].torn, arrived[0].torn), (2, 2, 0));
    }
}
