//! Rules 7 and 8: a peer that neither sends nor makes room, one of another generation, and one that is gone.

use super::super::peer::{Link, Peer};
use super::super::rings::refused;
use super::honest::{Honest, PATIENCE, SLOTS, buffer, consumer, met, producer, ring, said, waiting};
use super::script::{HANGS_AFTER, Script};
use base::channel::Fault;
use channel::hostile::HEAD;
use channel::{PeerFault, Policy, Ticks};
use lab::Error;

const POLICIES: [Policy; 3] = [Policy::Poll, Policy::Kick, Policy::Adaptive { spin_ns: 20_000 }];

/// Rule 7: nothing is sent, and no room is made.
pub(super) fn silent(ticks: Ticks) -> Result<Fault, Error> {
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
pub(super) fn other_generation_or_gone(ticks: Ticks) -> Result<Fault, Error> {
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
