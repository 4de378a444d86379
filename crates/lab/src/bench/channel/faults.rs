//! What does an honest side do when its peer breaks each of the rules?
//!
//! ```text
//! this process    the peer: writes any byte of the ring, by script     --> what was injected
//! a forked one    the honest side: the crate's public API, nothing else --> what it counted, what it handed out
//! ```
//! The honest side has a process of its own, so that a crash or a hang of it is something that was seen, and does not end the bench.
//! Rules: docs/channel.md, "Twelve rules against a hostile peer".

use super::Plan;
use super::peer::{Link, Outcome, Peer};
use super::rings::{refused, settle};
use crate::Error;
use base::channel::{Fault, Faults, RECEIVER, SENDER};
use channel::hostile::{Bytes, CONSUMER_WANTS, HEAD, TAIL};
use channel::{
    Bell, Consumer, FrameBuf, Header, Lengths, Mprotect, Open, PeerFault, Policy, Producer, Region, Ring, Shape, Ticks,
    Waiting, Window,
};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// An honest side that has not ended by then hangs: each of its waits is shorter than a hundredth of this.
const HANGS_AFTER: Duration = Duration::from_secs(10);
/// How long the honest side waits for a peer that is silent.
const PATIENCE: Duration = Duration::from_millis(10);
/// Slots of a ring here: few, so that each index counts.
const SLOTS: u32 = 8;
/// A slot has two cache lines, less its descriptor.
const FRAME_BYTES: usize = 120;
/// The longest time that a length is changed for.
const FLIPS_FOR: Duration = Duration::from_millis(300);
/// And until it was accepted and refused so often.
const FLIPS_SEEN: u64 = 50;
/// Wishes for kicks, and kicks that nobody sent.
const WISHES: u64 = 1_000;
const SPURIOUS: u64 = 50;

/// What an honest side says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Honest {
    /// Faults that it counted.
    seen: u64,
    /// Frames that it handed out and must not have, or not so, or did not and should have.
    wrong: u64,
}

impl Honest {
    fn of(seen: u64, wrong: bool) -> Honest {
        Honest { seen, wrong: u64::from(wrong) }
    }

    /// It saw what it was to see, handed nothing out, and stays closed.
    fn closed(consumer: &mut Consumer<Open>, is: impl Fn(PeerFault) -> bool) -> Honest {
        let mut out = buffer();
        let first = consumer.pop_batch(&mut out, 32);
        let wrong = !out.is_empty() || consumer.pop_batch(&mut out, 32) != first;
        Honest::of(u64::from(first.is_err_and(is)), wrong)
    }
}

/// Of several injections of one rule.
struct Script {
    rule: u8,
    what: &'static str,
    injected: u64,
    seen: u64,
    /// Nothing is counted, because..
    uncounted: Option<&'static str>,
    why: Vec<String>,
}

impl Script {
    fn of(rule: u8, what: &'static str) -> Script {
        Script { rule, what, injected: 0, seen: 0, uncounted: None, why: Vec::new() }
    }

    fn uncounted(self, why: &'static str) -> Script {
        Script { uncounted: Some(why), ..self }
    }

    /// `times` faults go to an honest side that does `work`; `act` is done where it waits for that.
    fn inject(
        &mut self,
        times: u64,
        work: impl FnOnce(&mut Link) -> Result<Honest, String>,
        act: impl FnOnce(&mut Peer),
    ) -> Result<(), Error> {
        let mut peer = Peer::start(work)?;
        act(&mut peer);
        self.injected += times;
        match peer.outcome::<Honest>(HANGS_AFTER) {
            Outcome::Answered(Honest { seen, wrong }) => {
                self.seen += seen;
                if wrong > 0 {
                    self.why.push(format!("{wrong} frames were handed out wrongly"));
                }
            }
            Outcome::Failed(why) => self.why.push(format!("the honest side failed: {why}")),
            Outcome::Crashed(signal) => self.why.push(format!("the honest side was ended by signal {signal}")),
            Outcome::Hung => self.why.push(format!("the honest side hung for {} s", HANGS_AFTER.as_secs())),
        }
        Ok(())
    }

    fn fault(self) -> Fault {
        let Script { rule, what, injected, seen, uncounted, mut why } = self;
        let survived = why.is_empty();
        why.extend(uncounted.map(str::to_owned));
        Fault {
            rule,
            what: what.to_owned(),
            injected,
            seen: uncounted.is_none().then_some(seen),
            survived: Some(survived),
            why: why.join("; "),
        }
    }
}

/// Breaks each rule.
///
/// # Errors
/// If a process or a ring cannot be made.
pub fn faults(plan: &Plan, ticks: Ticks) -> Result<Faults, Error> {
    settle(plan, plan.cpus.0, SENDER)?;
    let by_type = Fault {
        rule: 12,
        what: "nothing: no byte of a region can make a reference".to_owned(),
        injected: 0,
        seen: None,
        survived: None,
        why: "this holds by the types of the crate, and a test of its source looks".to_owned(),
    };
    let rules = vec![
        indices()?,
        own_index()?,
        flipped(plan)?,
        lengths()?,
        header_words()?,
        private()?,
        silence(ticks)?,
        generations(ticks)?,
        leftovers()?,
        kicks(ticks)?,
        windows()?,
        by_type,
    ];
    Ok(Faults { rules })
}

fn header() -> Result<Header, Error> {
    let shape = Shape::for_frames(SLOTS, FRAME_BYTES as u32, Lengths::InSlot);
    let shape = shape.map_err(|error| Error::Died(error.to_string()))?;
    Ok(Header { shape, generation: 1, producer: 0, consumer: 1 })
}

fn ring() -> Result<(Ring, Bytes), Error> {
    let ring = Ring::shared(header()?).map_err(refused)?;
    let bytes = Bytes::of(ring.region());
    Ok((ring, bytes))
}

fn producer(ring: &Ring) -> Producer<Open> {
    Producer::new(ring, Open::over(ring.halves()))
}

fn consumer(ring: &Ring) -> Consumer<Open> {
    Consumer::new(ring, Open::over(ring.halves()))
}

fn buffer() -> FrameBuf {
    FrameBuf::new(32, FRAME_BYTES)
}

fn said(fault: PeerFault) -> String {
    fault.to_string()
}

fn met(link: &mut Link) -> Result<(), String> {
    link.meet().ok_or_else(|| "the peer has ended".to_owned())
}

/// Rule 1.
fn indices() -> Result<Fault, Error> {
    let is_index = |fault| matches!(fault, PeerFault::Index { .. });
    let mut script = Script::of(1, "heads and tails beyond the ring, and backwards");
    for head in [1 << 63, u64::from(SLOTS) + 1, u64::MAX] {
        let (ring, bytes) = ring()?;
        bytes.set(HEAD, head);
        script.inject(1, |_| Ok(Honest::closed(&mut consumer(&ring), is_index)), |_| {})?;
    }
    for tail in [1 << 63, 3, u64::MAX] {
        let (ring, bytes) = ring()?;
        let work = |link: &mut Link| {
            let mut producer = producer(&ring);
            let sent = producer.push_batch(&[b"a", b"b"]).map_err(said)?.frames;
            met(link)?;
            // More than fit, so that it has to look how many.
            let pushed = producer.push_batch(&[b"c"; SLOTS as usize]);
            Ok(Honest::of(u64::from(pushed.is_err_and(is_index)), sent != 2))
        };
        script.inject(1, work, |peer| {
            peer.meet(|| bytes.set(TAIL, tail));
        })?;
    }
    let (ring, bytes) = ring()?;
    let work = |link: &mut Link| {
        let (mut producer, mut consumer) = (producer(&ring), consumer(&ring));
        producer.push_batch(&[b"a", b"b", b"c"]).map_err(said)?;
        let popped = consumer.pop_batch(&mut buffer(), 1).map_err(said)?;
        met(link)?;
        let Honest { seen, wrong } = Honest::closed(&mut consumer, is_index);
        Ok(Honest { seen, wrong: wrong + u64::from(popped != 1) })
    };
    script.inject(1, work, |peer| {
        peer.meet(|| bytes.set(HEAD, 2));
    })?;
    Ok(script.fault())
}

/// Rule 2.
fn own_index() -> Result<Fault, Error> {
    let mut script = Script::of(2, "our own head and tail overwritten");
    let (ring, bytes) = ring()?;
    let work = |link: &mut Link| {
        let (mut producer, mut consumer, mut out) = (producer(&ring), consumer(&ring), buffer());
        // Each index is looked at once in eight times that it is published: the ninth is one of these.
        let mut popped = 0;
        for _ in 0..8 {
            producer.push_batch(&[b"a"]).map_err(said)?;
            popped += consumer.pop_batch(&mut out, 32).map_err(said)?;
        }
        met(link)?;
        producer.push_batch(&[b"b"]).map_err(said)?;
        met(link)?;
        popped += consumer.pop_batch(&mut out, 32).map_err(said)?;
        let seen = producer.stats().overwritten + consumer.stats().overwritten;
        Ok(Honest::of(seen, popped != 9))
    };
    script.inject(2, work, |peer| {
        peer.meet(|| bytes.set(HEAD, 5));
        peer.meet(|| bytes.set(TAIL, 77));
    })?;
    Ok(script.fault())
}

/// Rule 3: a length that changes as fast as a CPU can change it.
fn flipped(plan: &Plan) -> Result<Fault, Error> {
    const SHORT: u16 = 10;
    let mut script = Script::of(3, "a length that changes between 10 and 65,535 all the time");
    let (ring, bytes) = ring()?;
    let (reset, begun) = (bytes.clone(), Instant::now());
    let work = |_: &mut Link| {
        settle(plan, plan.cpus.1, RECEIVER).map_err(|error| error.to_string())?;
        let (mut accepted, mut honest, mut out) = (0, Honest::default(), buffer());
        while begun.elapsed() < FLIPS_FOR && (accepted < FLIPS_SEEN || honest.seen < FLIPS_SEEN) {
            reset.set(TAIL, 0);
            reset.set(HEAD, 1);
            match consumer(&ring).pop_batch(&mut out, 32) {
                Err(PeerFault::Length { .. }) => honest.seen += 1,
                Err(fault) => return Err(said(fault)),
                Ok(_) => {
                    accepted += out.len() as u64;
                    honest.wrong += out.iter().filter(|frame| frame.len() != usize::from(SHORT)).count() as u64;
                }
            }
        }
        Ok(honest)
    };
    let mut flips = 0_u64;
    script.inject(0, work, |peer| {
        // On one CPU the other side meets whatever stands when its turn comes: an odd number leaves each of both as often.
        while !peer.is_heard() && begun.elapsed() < HANGS_AFTER {
            for _ in 0..501 {
                bytes.describe(&ring, 0, if flips.is_multiple_of(2) { u16::MAX } else { SHORT }, 1);
                flips += 1;
            }
        }
    })?;
    script.injected = flips;
    let mut fault = script.fault();
    if fault.survived == Some(true) {
        fault.why = "a change is seen only by a look between it and the next one".to_owned();
    }
    Ok(fault)
}

/// Rule 4.
fn lengths() -> Result<Fault, Error> {
    let is_length = |fault| matches!(fault, PeerFault::Length { .. });
    let mut script = Script::of(4, "frames that claim more than their slot has");
    for len in [u16::MAX, FRAME_BYTES as u16 + 1] {
        let (ring, bytes) = ring()?;
        bytes.describe(&ring, 0, len, 1);
        bytes.set(HEAD, 1);
        script.inject(1, |_| Ok(Honest::closed(&mut consumer(&ring), is_length)), |_| {})?;
    }
    Ok(script.fault())
}

/// Rule 5.
fn header_words() -> Result<Fault, Error> {
    let script = Script::of(5, "the number and the size of slots rewritten in a ring in use");
    let mut script = script.uncounted("the header is read when a ring is taken, and never again");
    let (ring, bytes) = ring()?;
    let work = |link: &mut Link| {
        let (mut producer, mut consumer, mut out) = (producer(&ring), consumer(&ring), buffer());
        met(link)?;
        let mut honest = Honest::default();
        for lap in 0..5 * SLOTS as u8 {
            producer.push_batch(&[&[lap; 100]]).map_err(said)?;
            consumer.pop_batch(&mut out, 8).map_err(said)?;
            honest.wrong += u64::from(out.iter().collect::<Vec<_>>() != [&[lap; 100]]);
        }
        Ok(honest)
    };
    script.inject(2, work, |peer| {
        peer.meet(|| {
            bytes.set(8, u64::MAX);
            bytes.set(16, 0x1_0000_4000);
        });
    })?;
    Ok(script.fault())
}

/// Rule 6.
fn private() -> Result<Fault, Error> {
    let script = Script::of(6, "all slots overwritten after frames were received");
    let mut script = script.uncounted("what was received is a private copy, which no peer can change");
    let (ring, bytes) = ring()?;
    let work = |link: &mut Link| {
        let mut out = buffer();
        producer(&ring).push_batch(&[b"ether", b"frame"]).map_err(said)?;
        consumer(&ring).pop_batch(&mut out, 32).map_err(said)?;
        met(link)?;
        Ok(Honest::of(0, out.iter().collect::<Vec<_>>() != [b"ether", b"frame"]))
    };
    script.inject(1, work, |peer| {
        peer.meet(|| bytes.fill(bytes.slots(&ring), 0xff));
    })?;
    Ok(script.fault())
}

fn waiting(policy: Policy, ticks: Ticks, peer: Option<channel::Peer>) -> Result<Waiting, String> {
    let bell = || Bell::new().map_err(|error| error.to_string());
    Ok(Waiting::new(policy, ticks, bell()?, bell()?, peer))
}

const POLICIES: [Policy; 3] = [Policy::Poll, Policy::Kick, Policy::Adaptive { spin_ns: 20_000 }];

/// Rule 7: nothing is sent, and no room is made.
fn silence(ticks: Ticks) -> Result<Fault, Error> {
    let mut script = Script::of(7, "a peer that sends nothing, and one that makes no room, for each policy");
    for policy in POLICIES {
        let (ring, _) = ring()?;
        let work = |_: &mut Link| {
            let (mut producer, mut consumer, mut out) = (producer(&ring), consumer(&ring), buffer());
            let is_stalled = |fault| matches!(fault, PeerFault::Stalled { .. });
            let nothing = consumer.pop_some(&mut out, 4, &mut waiting(policy, ticks, None)?, PATIENCE);
            let frames = [b"a"; SLOTS as usize + 1];
            let full = producer.push_all(&frames, &mut waiting(policy, ticks, None)?, PATIENCE);
            let seen = u64::from(nothing.is_err_and(is_stalled)) + u64::from(full.is_err_and(is_stalled));
            // A stalled channel is not a closed one.
            Ok(Honest::of(seen, consumer.pop_batch(&mut out, 32) != Ok(SLOTS as usize)))
        };
        script.inject(2, work, |_| {})?;
    }
    Ok(script.fault())
}

/// Rule 8.
fn generations(ticks: Ticks) -> Result<Fault, Error> {
    let mut script =
        Script::of(8, "a generation that has not begun, frames of an older one, a revoked ring, a killed peer");
    let (ring_of_future, bytes) = ring()?;
    bytes.describe(&ring_of_future, 0, 10, 2);
    bytes.set(HEAD, 1);
    let is_future = |fault| matches!(fault, PeerFault::Generation { .. });
    script.inject(1, |_| Ok(Honest::closed(&mut consumer(&ring_of_future), is_future)), |_| {})?;

    let (old, bytes) = ring()?;
    let renewed = old.renewed().map_err(refused)?;
    for slot in 0..3 {
        bytes.describe(&old, slot, 10, 1);
    }
    bytes.set(HEAD, 3);
    let work = |_: &mut Link| {
        let (mut consumer, mut out) = (consumer(&renewed), buffer());
        let popped = consumer.pop_batch(&mut out, 32).map_err(said)?;
        Ok(Honest::of(consumer.stats().outdated, popped != 0))
    };
    script.inject(3, work, |_| {})?;

    let (revoked, _) = ring()?;
    revoked.revoke();
    script.inject(1, |_| Ok(Honest::closed(&mut consumer(&revoked), |fault| fault == PeerFault::Gone)), |_| {})?;

    let sleeper = Peer::start(|link| link.meet().ok_or_else(String::new))?;
    let (silent, _) = ring()?;
    let work = |link: &mut Link| {
        let peer = channel::Peer::process(sleeper.pid()).map_err(|error| error.to_string())?;
        let mut waiting = waiting(Policy::Kick, ticks, Some(peer))?;
        met(link)?;
        let gone = consumer(&silent).pop_some(&mut buffer(), 4, &mut waiting, HANGS_AFTER / 2);
        Ok(Honest::of(u64::from(gone == Err(PeerFault::Gone)), gone.is_ok()))
    };
    // SAFETY: our own child, which is waited for when it is dropped.
    let kill = || unsafe { libc::kill(sleeper.pid().cast_signed(), libc::SIGKILL) };
    script.inject(1, work, |peer| {
        peer.meet(|| {
            kill();
        });
    })?;
    Ok(script.fault())
}

/// Rule 9.
fn leftovers() -> Result<Fault, Error> {
    let mut script = Script::of(9, "slots published that were never written, in memory that another program had used");
    let shape = header()?.shape;
    let region = Region::shared("kvmscope-used", shape.region_bytes()).map_err(refused)?;
    let bytes = Bytes::of(&region);
    bytes.fill(0, 0xee);
    let ring = Ring::lay(header()?, region).map_err(refused)?;
    let is_left = (bytes.slots(&ring)..bytes.bytes()).step_by(8).any(|at| bytes.get(at) != 0);
    let work = |link: &mut Link| {
        let (mut producer, mut consumer, mut out) = (producer(&ring), consumer(&ring), buffer());
        met(link)?;
        let popped = consumer.pop_batch(&mut out, 32).map_err(said)?;
        let outdated = consumer.stats().outdated;
        // A short frame in the slot of a long one.
        producer.push_batch(&[&[0x55; 100][..]; SLOTS as usize]).map_err(said)?;
        met(link)?;
        Ok(Honest::of(outdated, popped != 0 || is_left))
    };
    script.inject(u64::from(SLOTS), work, |peer| {
        peer.meet(|| bytes.set(HEAD, u64::from(SLOTS)));
        peer.meet(|| {});
    })?;
    Ok(script.fault())
}

/// Rule 10.
fn kicks(ticks: Ticks) -> Result<Fault, Error> {
    let mut script = Script::of(10, "1,000 wishes for a kick, 50 kicks for nothing, a kick that gets lost");
    let (ring, bytes) = ring()?;
    let wishes = |_: &mut Link| {
        let (mut producer, mut consumer, mut out) = (producer(&ring), consumer(&ring), buffer());
        let mut sending = waiting(Policy::Poll, ticks, None)?.kicking_every(Duration::from_secs(3_600));
        for _ in 0..WISHES {
            bytes.set(CONSUMER_WANTS, 1);
            producer.push_kicking(&[b"a"], &mut sending).map_err(said)?;
            consumer.pop_batch(&mut out, 32).map_err(said)?;
        }
        Ok(Honest::of(producer.stats().kicks_held, producer.stats().kicks > 1))
    };
    script.inject(WISHES, wishes, |_| {})?;

    let (bell, rung) = (Bell::new().map_err(refused)?, Bell::new().map_err(refused)?);
    let file = bell.file().try_clone_to_owned().map_err(|error| Error::refused("an eventfd", error))?;
    let theirs = Bell::received(file);
    let (heard, _) = self::ring()?;
    let work = |link: &mut Link| {
        let (mut producer, mut consumer, mut out) = (producer(&heard), consumer(&heard), buffer());
        let mut receiving = Waiting::new(Policy::Kick, ticks, theirs, rung, None);
        met(link)?;
        let silent = consumer.pop_some(&mut out, 8, &mut receiving, PATIENCE);
        // It arrives though nobody kicks.
        producer.push_batch(&[b"a"]).map_err(said)?;
        let arrived = consumer.pop_some(&mut out, 8, &mut receiving, HANGS_AFTER / 2);
        Ok(Honest::of(0, silent.is_ok() || arrived != Ok(1)))
    };
    script.inject(SPURIOUS + 1, work, |peer| {
        peer.meet(|| bell.ring());
        for _ in 1..SPURIOUS {
            bell.ring();
            std::thread::sleep(PATIENCE / SPURIOUS as u32);
        }
    })?;
    let mut fault = script.fault();
    if fault.survived == Some(true) {
        fault.why = "wishes that came too soon are counted, kicks for nothing and lost ones cost a look".to_owned();
    }
    Ok(fault)
}

/// Rule 11: our own process accesses a ring whose window has closed, and is ended for it.
fn windows() -> Result<Fault, Error> {
    let mut script = Script::of(11, "access of our own after the window closed, and after it closed by an error");
    for fails in [false, true] {
        let (ring, _) = ring()?;
        let peer = Peer::start(|_| {
            no_core_file();
            let mut window = Mprotect::over(ring.halves()).map_err(|error| error.to_string())?;
            let went = window.with(|_| if fails { Err(PeerFault::Gone) } else { Ok(()) });
            let theirs = Open::over(ring.halves());
            let popped = Consumer::new(&ring, theirs).pop_batch(&mut buffer(), 1);
            Ok(format!("{went:?} {popped:?}"))
        })?;
        script.injected += 1;
        match peer.outcome::<String>(HANGS_AFTER) {
            Outcome::Crashed(libc::SIGSEGV) => script.seen += 1,
            other => script.why.push(format!("a closed window did not stop an access: {other:?}")),
        }
    }
    let mut fault = script.fault();
    if fault.survived == Some(true) {
        fault.why = "seen by the processor, which ends the process that breaks it".to_owned();
    }
    Ok(fault)
}

/// That it ends by a signal is wanted, and worth no file.
fn no_core_file() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours, and the kernel reads it.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_is_not_survived_says_why_and_one_that_is_says_what_was_seen() {
        let mut script = Script::of(4, "lengths");
        (script.injected, script.seen) = (3, 2);
        let fault = script.fault();
        assert_eq!((fault.injected, fault.seen, fault.survived, fault.why.as_str()), (3, Some(2), Some(true), ""));
        let mut script = Script::of(5, "words").uncounted("it is not looked at");
        script.why.push("the honest side was ended by signal 7".to_owned());
        let fault = script.fault();
        assert_eq!((fault.seen, fault.survived), (None, Some(false)));
        assert_eq!(fault.why, "the honest side was ended by signal 7; it is not looked at");
    }

    #[test]
    fn frames_of_a_closed_channel_are_wrong_and_so_is_a_fault_that_goes_away() {
        let (ring, bytes) = ring().unwrap();
        bytes.set(HEAD, 99);
        let is_index = |fault| matches!(fault, PeerFault::Index { .. });
        assert_eq!(Honest::closed(&mut consumer(&ring), is_index), Honest { seen: 1, wrong: 0 });
        let (ring, _) = self::ring().unwrap();
        producer(&ring).push_batch(&[b"a"]).unwrap();
        assert_eq!(Honest::closed(&mut consumer(&ring), is_index), Honest { seen: 0, wrong: 1 });
    }
}
