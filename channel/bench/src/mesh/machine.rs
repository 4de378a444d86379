//! A machine of several: what it sends to each other one, and what arrives of that.

use super::super::Plan;
use super::super::frames::{Arrived, Batch, number_of};
use super::super::machines::{Granted, cpu_of};
use super::super::peer::Link;
use super::super::rings::settle;
use super::super::side::{Seen, Span, Watch, now};
use super::RECEIVER_AT;
use super::worker::{Worker, work};
use base::channel::{MACHINE, Setup};
use channel::{FrameBuf, Open, Producer};
use serde::{Deserialize, Serialize};
use std::os::unix::net::UnixStream;

/// In a frame's number, below who gets it: who sent it.
const SENDER_AT: u32 = 48;

/// What a machine answers.
#[derive(Serialize, Deserialize)]
pub(super) struct Met {
    pub(super) seen: Seen,
    pub(super) in_time: u64,
    pub(super) arrived: u64,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
    pub(super) torn: u64,
}

/// A machine: sends to all others, and receives from them.
pub(super) fn mingle(
    plan: &Plan,
    setup: &Setup,
    number: u32,
    socket: UnixStream,
    grants: usize,
    link: &mut Link,
) -> Result<Met, String> {
    let cpu = cpu_of(&plan.machines.cpus, number);
    settle(plan, cpu, MACHINE).map_err(|error| error.to_string())?;
    let granted = Granted::attach(&socket, grants)?;
    let others: Vec<u32> = (0..setup.vms).filter(|other| *other != number).collect();
    let outgoing = others.iter().map(|&to| (to, Outgoing::new(setup, number, to))).collect();
    let frame_bytes = granted.from.first().map_or(0, |(_, from)| from.header().shape.frame_bytes());
    let batch = setup.batch as usize;
    let mut mingler = Mingler {
        number,
        granted,
        outgoing,
        out: FrameBuf::new(batch, frame_bytes),
        batch,
        sent: vec![0; setup.vms as usize],
        arrived: vec![Arrived::default(); setup.vms as usize],
        in_time: 0,
    };
    let seen = work(plan, setup, cpu, link, &mut mingler)?;
    let sum = |of: fn(&Arrived) -> u64| mingler.arrived.iter().map(of).sum();
    Ok(Met {
        seen,
        in_time: mingler.in_time,
        arrived: sum(|arrived| arrived.frames),
        duplicated: sum(|arrived| arrived.duplicated),
        reordered: sum(|arrived| arrived.reordered),
        torn: sum(|arrived| arrived.torn),
    })
}

struct Mingler {
    number: u32,
    granted: Granted,
    /// What goes to each other machine, by its number.
    outgoing: Vec<(u32, Outgoing)>,
    out: FrameBuf,
    batch: usize,
    /// Frames to each machine, and from each.
    sent: Vec<u64>,
    arrived: Vec<Arrived>,
    /// Of those that arrived, these did while it was measured.
    in_time: u64,
}

impl Worker for Mingler {
    fn over(&mut self, link: &mut Link) -> Result<(), String> {
        link.say(&self.sent).ok_or_else(|| "the host has ended".to_owned())
    }

    fn done(&self) -> u64 {
        self.arrived.iter().map(|arrived| arrived.frames).sum()
    }

    fn turn(&mut self, is_over: bool, span: Span, watch: &mut Watch) -> Result<bool, String> {
        let mut moved = false;
        if !is_over {
            for (at, (to, outgoing)) in self.outgoing.iter_mut().enumerate() {
                // Through a switch there is one ring for all.
                let at = at.min(self.granted.to.len() - 1);
                let pushed = outgoing.push(&mut self.granted.to[at].1)?;
                self.sent[*to as usize] += pushed;
                moved |= pushed > 0;
            }
        }
        for (_, from) in &mut self.granted.from {
            let popped = from.pop_batch(&mut self.out, self.batch).map_err(|fault| fault.to_string())? as u64;
            if popped == 0 {
                continue;
            }
            moved = true;
            let at = now();
            for frame in self.out.iter() {
                take(&mut self.arrived, self.number, frame);
            }
            if (span.from..span.until).contains(&at) {
                self.in_time += popped;
                watch.count(at, popped);
            }
        }
        Ok(moved)
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

/// Counts a frame for the machine that sent it; one that is for another machine was changed on the way, and so was one of nobody.
fn take(arrived: &mut [Arrived], here: u32, frame: &[u8]) {
    let number = number_of(frame).filter(|number| number >> RECEIVER_AT == u64::from(here));
    let sender = number.map_or(usize::MAX, |number| (number >> SENDER_AT) as usize & 0xff);
    match arrived.get_mut(sender) {
        Some(arrived) => arrived.take_numbered(number),
        None => arrived[here as usize].take_numbered(None),
    }
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
