//! Rules 1 and 2: what a peer writes to the two indices of a ring, its own and ours.

use super::super::peer::Link;
use super::honest::{Honest, SLOTS, buffer, consumer, met, producer, ring, said};
use super::script::Script;
use base::channel::Fault;
use channel::PeerFault;
use channel::hostile::{HEAD, TAIL};
use lab::Error;

/// Rule 1.
pub(super) fn outside_the_ring() -> Result<Fault, Error> {
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
pub(super) fn of_ours() -> Result<Fault, Error> {
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
