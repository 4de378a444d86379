//! Do several machines that send under full load keep to a flow table that changes all the time?
//!
//! ```text
//! vSwitch (this process)   a change each 1/N s, by the clock; reads what each machine acknowledged      --> lag
//! every machine            reads the table, acknowledges its epoch, sends by it, judges what arrives by it
//! at the end               each machine holds what it delivered against the log of all changes          --> misdelivered
//! ```
//! The log is all of history, with the time of each change: what may be delivered follows from it without the table.

use super::Plan;
use super::machines::{Granted, Machine, Turns, by_pairs, cpu_of, starves};
use super::peer::{Cues, Link};
use super::rings::{refused, settle};
use super::side::{Span, now};
use base::Histogram;
use base::channel::{FlowRun, MACHINE, SWITCH};
use channel::grant::{self, Grant};
use channel::{Access, Acknowledged, Acknowledger, FlowView, Flows, FrameBuf, Lengths, Shape, Ticks};
use lab::Error;
use lab::random::Random;
use labs::bench::launch::ns_per_tick;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Keys that machines send by.
const KEYS: u64 = 64;
/// A frame may be late by so many epochs: 5 ms at 10,000 changes per second.
const GRACE: u64 = 50;
/// Places of the table, of which keys take a quarter.
const PLACES: usize = 256;
/// Slots of a ring here; frames that wait in it grow old.
const SLOTS: u32 = 512;
/// A key, and what makes a frame of it.
const FRAME_BYTES: usize = 64;
/// Frames that go at once.
const BATCH: usize = 32;
/// Between the last word to the machines and the first change.
const HEAD_START: Duration = Duration::from_millis(10);
/// The last changes have so long to be acknowledged.
const SETTLES_WITHIN: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// How often, per second.
    pub per_s: u64,
    /// Among how many machines: one run each.
    pub vms: Vec<u32>,
    pub length: Duration,
}

/// A change: of which key, the epoch that it began, where the key's frames go from then on, and when that was surely published.
type Change = (u64, u64, Option<u16>, u64);

/// What a machine answers.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Moved {
    sent: u64,
    stale: u64,
    delivered: u64,
    dropped: u64,
    misdelivered: u64,
}

/// Frames that were delivered alike: their key, the epoch that they were sent by, when the receiver began to look at the table, and how
/// many they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Delivered {
    key: u64,
    sent: u32,
    looked: u64,
    frames: u64,
}

/// Changes a table under load, with the lags as a distribution in ns.
///
/// # Errors
/// [`Error::Absent`] if machines that never give way would share a CPU; otherwise if a process, a ring or the table cannot be made, or a
/// machine breaks the rules of a ring.
pub fn run(plan: &Plan, changes: &Changes, vms: u32) -> Result<(FlowRun, Histogram), Error> {
    let shape = Shape::for_frames(SLOTS, FRAME_BYTES as u32, Lengths::InSlot);
    let shape = shape.map_err(|error| Error::Died(error.to_string()))?;
    // The vSwitch needs a CPU as well.
    let shared = plan.machines.take_turns(vms + 1);
    if shared && plan.fifo {
        return Err(starves());
    }
    let mut machines = Vec::new();
    for number in 0..vms {
        let work = |socket, link: &mut Link| mingle(plan, vms, number, shared, socket, link);
        machines.push(Machine::start(work)?);
    }
    let mut flows = Flows::new(PLACES, GRACE).map_err(refused)?;
    machines.iter().try_for_each(|machine| machine.grant(Grant::Flows, 0, flows.region()))?;
    by_pairs(&machines, shape)?;
    let acknowledged =
        |machine: &Machine| Acknowledged::of(machine.granted(Grant::Acknowledged, Access::Read)?).map_err(refused);
    let mut seen: Vec<Acknowledged> = machines.iter().map(acknowledged).collect::<Result<_, _>>()?;
    settle(plan, cpu_of(&plan.machines.cpus, vms), SWITCH)?;
    machines.iter_mut().try_for_each(|machine| machine.peer.ready())?;
    let ticks = Ticks::new(1.0 / ns_per_tick());
    let from = now() + ticks.of_ns(HEAD_START.as_nanos() as u64);
    let span = Span { from, until: from + ticks.of_ns(changes.length.as_nanos() as u64), per_ns: ticks.per_ns() };
    machines.iter_mut().try_for_each(|machine| machine.peer.go(span))?;

    let mut log = Log::new(u64::from(plan.launch) + 1, vms as u16);
    let lags = log.write(&mut flows, &mut seen, span, changes.per_s, shared)?;
    machines.iter_mut().try_for_each(|machine| machine.peer.tell(&log.changes))?;
    let moved: Vec<Moved> = machines.into_iter().map(|machine| machine.peer.end(0)).collect::<Result<_, _>>()?;

    let sum = |of: fn(&Moved) -> u64| moved.iter().map(of).sum();
    let made = log.changes.len() as u64;
    let behind = |seen: &Acknowledged| made.saturating_sub(seen.last());
    let mut all = Histogram::new();
    lags.iter().for_each(|lags| all.merge(lags));
    let run = FlowRun {
        vms,
        asked_per_s: changes.per_s,
        ns: changes.length.as_nanos() as u64,
        changes: made,
        revocations: log.revocations,
        grace: GRACE,
        sent: sum(|moved| moved.sent),
        stale_sent: sum(|moved| moved.stale),
        delivered: sum(|moved| moved.delivered),
        dropped: sum(|moved| moved.dropped),
        misdelivered: sum(|moved| moved.misdelivered),
        lag_p99_ns: lags.iter().map(|lags| lags.quantile(0.99).unwrap_or(0)).collect(),
        unacknowledged: seen.iter().map(behind).sum(),
        acknowledgement_faults: seen.iter_mut().filter_map(|seen| seen.look(flows.epoch()).err()).count() as u64,
        shared_cpus: shared,
    };
    Ok((run, all))
}

/// All changes, in their order: each begins an epoch, the first one epoch 1.
struct Log {
    changes: Vec<Change>,
    revocations: u64,
    random: Random,
    ports: u16,
    now: Vec<Option<u16>>,
}

impl Log {
    fn new(seed: u64, ports: u16) -> Log {
        let now = vec![None; KEYS as usize];
        Log { changes: Vec::new(), revocations: 0, random: Random::of(seed), ports, now }
    }

    /// A key, and another port than it has: or none.
    fn draw(&mut self) -> (u64, Option<u16>) {
        let key = self.random.below(KEYS);
        let others: Vec<Option<u16>> =
            (0..self.ports).map(Some).chain([None]).filter(|port| *port != self.now[key as usize]).collect();
        (key, others[self.random.below(others.len() as u64) as usize])
    }

    /// Changes the table by the clock until the time is over, and looks all the while at what was acknowledged: for each machine, how long
    /// after each change that was seen.
    fn write(
        &mut self,
        flows: &mut Flows,
        seen: &mut [Acknowledged],
        span: Span,
        per_s: u64,
        shared: bool,
    ) -> Result<Vec<Histogram>, Error> {
        let every = span.per_ns * 1e9 / per_s.max(1) as f64;
        let settles = (SETTLES_WITHIN.as_nanos() as f64 * span.per_ns) as u64;
        let mut lags = vec![Histogram::new(); seen.len()];
        let mut turns = Turns::new(shared);
        loop {
            let at = now();
            let due = (at.min(span.until).saturating_sub(span.from) as f64 / every) as usize;
            let mut moved = false;
            // What comes too late would change the table of machines that have nothing to send any more.
            if self.changes.len() < due && at < span.until {
                let (key, port) = self.draw();
                let epoch = match port {
                    Some(port) => flows.allow(key, port).map_err(|full| Error::Died(full.to_string()))?,
                    None => flows.revoke(key),
                };
                // What had a port lost it.
                self.revocations += u64::from(self.now[key as usize].is_some());
                self.now[key as usize] = port;
                // After it was published: who looked before may not have seen it.
                self.changes.push((key, epoch, port, now()));
                moved = true;
            }
            for (seen, lags) in seen.iter_mut().zip(&mut lags) {
                let last = seen.last();
                let Ok(epoch) = seen.look(flows.epoch()) else { continue };
                if epoch > last {
                    let at = now();
                    for (.., published) in &self.changes[last as usize..epoch as usize] {
                        lags.record((at.saturating_sub(*published) as f64 / span.per_ns) as u64);
                    }
                    moved = true;
                }
            }
            let is_settled = seen.iter().all(|seen| seen.last() == flows.epoch());
            if at >= span.until && (is_settled || at > span.until + settles) {
                return Ok(lags);
            }
            turns.after(moved);
        }
    }
}

/// A machine: sends by the table as it has read it, judges what arrives by the table as it is when it looks.
fn mingle(
    plan: &Plan,
    vms: u32,
    number: u32,
    shared: bool,
    socket: UnixStream,
    link: &mut Link,
) -> Result<Moved, String> {
    settle(plan, cpu_of(&plan.machines.cpus, number), MACHINE).map_err(|error| error.to_string())?;
    let granted = Granted::attach(&socket, 1 + 2 * (vms as usize - 1))?;
    let Granted { mut to, mut from, flows: Some(mut view) } = granted else {
        return Err("the host granted no flow table".to_owned());
    };
    let mut acknowledger = Acknowledger::new().map_err(|error| error.to_string())?;
    grant::send(&socket, Grant::Acknowledged, number as u16, acknowledger.region().file())
        .map_err(|error| error.to_string())?;
    let (mut delivered, mut moved) = (Vec::new(), Moved::default());
    let mut out = FrameBuf::new(BATCH, from.first().map_or(0, |(_, from)| from.header().shape.frame_bytes()));
    let (mut frames, mut turns) = (vec![[0_u8; FRAME_BYTES]; BATCH], Turns::new(shared));
    let here = number as u16;
    let mut key = u64::from(number);

    let span = link.ready().ok_or("the host has ended")?;
    // Until the last change was acknowledged.
    let until = span.until + (SETTLES_WITHIN.as_nanos() as f64 * span.per_ns) as u64;
    loop {
        let at = now();
        if at >= until {
            break;
        }
        let mut busy = false;
        if refresh(&mut view, &mut acknowledger) && at < span.until {
            key = (key + 1) % KEYS;
            let port = view.route(key).filter(|port| *port != here);
            let ring = port.and_then(|port| to.iter_mut().find(|(with, _)| *with == port));
            if let (Some(port), Some((_, producer))) = (port, ring) {
                frames.iter_mut().for_each(|frame| frame[..8].copy_from_slice(&key.to_le_bytes()));
                producer.decide_by(view.epoch() as u32);
                let pushed = producer.push_batch(&frames).map_err(|fault| fault.to_string())?.frames as u64;
                // Whether the rule was gone by then.
                if pushed > 0 && refresh(&mut view, &mut acknowledger) && view.route(key) != Some(port) {
                    moved.stale += pushed;
                }
                moved.sent += pushed;
                busy = pushed > 0;
            }
        }
        for (_, consumer) in &mut from {
            if consumer.pop_batch(&mut out, BATCH).map_err(|fault| fault.to_string())? == 0 {
                continue;
            }
            busy = true;
            let looked = now();
            let fresh = refresh(&mut view, &mut acknowledger);
            for (frame, &sent) in out.iter().zip(consumer.epochs()) {
                let key = frame.first_chunk().map_or(u64::MAX, |word| u64::from_le_bytes(*word));
                if fresh && view.judge(key, sent, here).delivers() {
                    moved.delivered += 1;
                    deliver(&mut delivered, Delivered { key, sent, looked, frames: 1 });
                } else {
                    moved.dropped += 1;
                }
            }
        }
        turns.after(busy);
    }
    let changes: Vec<Change> = link.told().ok_or("the host does not say what was changed")?;
    moved.misdelivered = History::of(&changes).misdelivered(&delivered, here);
    Ok(moved)
}

/// Reads the table and says so; false if it could not be read, so that nothing may be decided by it.
fn refresh(view: &mut FlowView, acknowledger: &mut Acknowledger) -> bool {
    let fresh = view.refresh().is_ok();
    acknowledger.acknowledge(view);
    fresh
}

/// Frames that were delivered alike in one look are one entry.
fn deliver(delivered: &mut Vec<Delivered>, one: Delivered) {
    match delivered.last_mut() {
        Some(last) if (last.key, last.sent, last.looked) == (one.key, one.sent, one.looked) => last.frames += 1,
        _ => delivered.push(one),
    }
}

struct History<'c> {
    changes: &'c [Change],
    /// Of each key: from this epoch on its frames go to this port, or nowhere.
    of_key: HashMap<u64, Vec<(u64, Option<u16>)>>,
}

impl<'c> History<'c> {
    fn of(changes: &'c [Change]) -> History<'c> {
        let mut of_key: HashMap<u64, Vec<(u64, Option<u16>)>> = HashMap::new();
        for &(key, epoch, port, _) in changes {
            of_key.entry(key).or_default().push((epoch, port));
        }
        History { changes, of_key }
    }

    /// Whether a frame that was sent by one epoch may be delivered `here` in another.
    fn allows(&self, key: u64, sent: u64, here: u16, now: u64) -> bool {
        let Some(changes) = self.of_key.get(&key) else { return false };
        let by = changes.partition_point(|&(epoch, _)| epoch <= sent);
        if by == 0 || changes[by - 1].1 != Some(here) {
            return false;
        }
        // The next change took the rule away.
        changes.get(by).is_none_or(|&(epoch, _)| epoch > now || now - epoch <= GRACE)
    }

    /// Frames that were delivered here and must not have been.
    fn misdelivered(&self, delivered: &[Delivered], here: u16) -> u64 {
        let wrong = delivered.iter().filter(|one| {
            // What had surely been published when the receiver looked.
            let known = self.changes.partition_point(|&(.., published)| published < one.looked) as u64;
            let sent = u64::from(one.sent);
            !self.allows(one.key, sent, here, known.max(sent))
        });
        wrong.map(|one| one.frames).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_one_and_the_same_seed_draws_the_same() {
        let draw = |seed| {
            let mut log = Log::new(seed, 2);
            let draws = (0..500).map(|_| {
                let (key, port) = log.draw();
                assert_ne!(log.now[key as usize], port, "it changes something");
                log.now[key as usize] = port;
                (key, port)
            });
            draws.collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(1).iter().any(|(_, port)| port.is_none()), "rules are taken away");
    }

    #[test]
    fn the_log_says_what_was_delivered_wrongly() {
        // Key 7 goes to port 1 by epoch 1, nowhere from epoch 2 on; more than the grace period follows.
        let mut changes: Vec<Change> = vec![(7, 1, Some(1), 1_000), (7, 2, None, 2_000)];
        changes.extend((3..=3 + GRACE).map(|epoch| (9, epoch, Some((epoch % 2) as u16), 1_000 * epoch)));
        let history = History::of(&changes);
        let one = |sent, looked| Delivered { key: 7, sent, looked, frames: 3 };
        let wrong = |one: Delivered, here| history.misdelivered(&[one], here);
        assert_eq!(wrong(one(1, 1_500), 1), 0, "its rule holds");
        assert_eq!(wrong(one(1, 1_500), 2), 3, "it was not for this machine");
        assert_eq!(wrong(one(1, 2_500), 1), 0, "late, within the grace period");
        assert_eq!(wrong(one(1, 1_000 * (GRACE + 3) + 1), 1), 3, "later than that");
        assert_eq!(wrong(one(0, 1_500), 1), 3, "sent before there was a rule");
        assert_eq!(wrong(one(2, 2_500), 1), 3, "sent when the rule was gone");
        assert_eq!(wrong(Delivered { key: 8, ..one(1, 1_500) }, 1), 3, "of a key that never had a rule");
    }

    #[test]
    fn frames_that_are_delivered_alike_are_counted_together() {
        let mut delivered = Vec::new();
        let one = Delivered { key: 1, sent: 2, looked: 3, frames: 1 };
        for one in [one, one, Delivered { sent: 3, ..one }, one] {
            deliver(&mut delivered, one);
        }
        assert_eq!(delivered.iter().map(|one| one.frames).collect::<Vec<_>>(), [2, 1, 1]);
    }
}
