//! The honest side that faults are held against: the ring that it has, how it waits, and what it says of itself.

use super::super::peer::Link;
use super::super::rings::refused;
use channel::hostile::Bytes;
use channel::{
    Bell, Consumer, FrameBuf, Header, Lengths, Open, PeerFault, Policy, Producer, Ring, Shape, Ticks, Waiting,
};
use lab::Error;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long the honest side waits for a peer that is silent.
pub(super) const PATIENCE: Duration = Duration::from_millis(10);
/// Slots of a ring here: few, so that each index counts.
pub(super) const SLOTS: u32 = 8;
/// A slot has two cache lines, less its descriptor.
pub(super) const FRAME_BYTES: usize = 120;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Honest {
    /// Faults that it counted.
    pub(super) seen: u64,
    /// Frames that it handed out and must not have, or not so, or did not and should have.
    pub(super) wrong: u64,
}

impl Honest {
    pub(super) fn of(seen: u64, wrong: bool) -> Honest {
        Honest { seen, wrong: u64::from(wrong) }
    }

    /// It saw what it was to see, handed nothing out, and stays closed.
    pub(super) fn closed(consumer: &mut Consumer<Open>, is: impl Fn(PeerFault) -> bool) -> Honest {
        let mut out = buffer();
        let first = consumer.pop_batch(&mut out, 32);
        let wrong = !out.is_empty() || consumer.pop_batch(&mut out, 32) != first;
        Honest::of(u64::from(first.is_err_and(is)), wrong)
    }
}

pub(super) fn header() -> Result<Header, Error> {
    let shape = Shape::for_frames(SLOTS, FRAME_BYTES as u32, Lengths::InSlot);
    let shape = shape.map_err(|error| Error::Died(error.to_string()))?;
    Ok(Header { shape, generation: 1, producer: 0, consumer: 1 })
}

pub(super) fn ring() -> Result<(Ring, Bytes), Error> {
    let ring = Ring::shared(header()?).map_err(refused)?;
    let bytes = Bytes::of(ring.region());
    Ok((ring, bytes))
}

pub(super) fn producer(ring: &Ring) -> Producer<Open> {
    Producer::new(ring, Open::over(ring.halves()))
}

pub(super) fn consumer(ring: &Ring) -> Consumer<Open> {
    Consumer::new(ring, Open::over(ring.halves()))
}

pub(super) fn buffer() -> FrameBuf {
    FrameBuf::new(32, FRAME_BYTES)
}

pub(super) fn waiting(policy: Policy, ticks: Ticks, peer: Option<channel::Peer>) -> Result<Waiting, String> {
    let bell = || Bell::new().map_err(|error| error.to_string());
    Ok(Waiting::new(policy, ticks, bell()?, bell()?, peer))
}

pub(super) fn said(fault: PeerFault) -> String {
    fault.to_string()
}

pub(super) fn met(link: &mut Link) -> Result<(), String> {
    link.meet().ok_or_else(|| "the peer has ended".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use channel::hostile::HEAD;

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
