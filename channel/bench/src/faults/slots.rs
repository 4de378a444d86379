//! Rules 3 to 6, and 9: what a peer writes to lengths, to frames, and to the words that say how large slots are.

use super::super::Plan;
use super::super::peer::Link;
use super::super::rings::{refused, settle};
use super::honest::{FRAME_BYTES, Honest, SLOTS, buffer, consumer, header, met, producer, ring, said};
use super::script::{HANGS_AFTER, Script};
use base::channel::{Fault, RECEIVER};
use channel::hostile::{Bytes, HEAD, TAIL};
use channel::{PeerFault, Region, Ring};
use lab::Error;
use std::time::{Duration, Instant};

/// The longest time that a length is changed for.
const FLIPS_FOR: Duration = Duration::from_millis(300);
/// And until it was accepted and refused so often.
const FLIPS_SEEN: u64 = 50;

/// Rule 3: a length that changes as fast as a CPU can change it.
pub(super) fn length_that_changes(plan: &Plan) -> Result<Fault, Error> {
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
pub(super) fn length_beyond_the_slot() -> Result<Fault, Error> {
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
pub(super) fn size_rewritten() -> Result<Fault, Error> {
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
pub(super) fn overwritten_after_receipt() -> Result<Fault, Error> {
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

/// Rule 9.
pub(super) fn never_written() -> Result<Fault, Error> {
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
