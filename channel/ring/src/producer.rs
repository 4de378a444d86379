//! The end of a channel that sends.

use std::sync::atomic::Ordering;

use crate::fault::PeerFault;
use crate::layout::{Descriptor, Header, Places};
use crate::memory::Ticks;
use crate::protocol::Sending;
use crate::ring::{GENERATION_AT, Ring};
use crate::stats::{ChannelStats, Meter};
use crate::window::{Raw, Window};

/// Frames that one descriptor stands for.
const MOST_ALIKE: usize = 1 + u8::MAX as usize;

/// What came of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// How many of its frames were sent, from the first on.
    pub frames: usize,
    /// Why not all.
    pub rest: Rest,
    /// The consumer sleeps, and asked to be kicked.
    pub kick: bool,
}

/// Why frames of a batch were not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// All were.
    None,
    /// The ring was full.
    Full,
    /// The next one is longer than a slot.
    TooLong,
}

/// Sends frames into a ring through a window. It is the only one that does.
#[derive(Debug)]
pub struct Producer<W> {
    window: W,
    header: Header,
    places: Places,
    indices: Sending,
    /// Descriptors that were written.
    runs: u64,
    epoch: u32,
    peer_polls: bool,
    stats: ChannelStats,
    meter: Meter,
    closed: Option<PeerFault>,
}

impl<W: Window> Producer<W> {
    /// Of an empty ring, through a window over its halves.
    pub fn new(ring: &Ring, window: W) -> Producer<W> {
        let header = ring.header();
        let indices = Sending::new(header.shape.slots());
        let stats = ChannelStats::default();
        let places = header.shape.places();
        Producer {
            window,
            header,
            places,
            indices,
            runs: 0,
            epoch: 0,
            peer_polls: false,
            stats,
            meter: Meter(None),
            closed: None,
        }
    }

    /// From now on each window is timed.
    pub fn timed(mut self, ticks: Ticks) -> Producer<W> {
        self.meter = Meter(Some(ticks));
        self
    }

    /// The consumer never sleeps: nobody looks after each batch whether it asked to be kicked, which takes a full fence.
    pub fn polled(mut self) -> Producer<W> {
        self.peer_polls = true;
        self
    }

    /// From now on frames are stamped with the epoch of the flow table by which they are sent.
    pub fn decide_by(&mut self, epoch: u32) {
        self.epoch = epoch;
    }

    /// Copies as many frames as there is room for, and publishes them at once. It never waits.
    #[inline]
    pub fn push_batch<F: AsRef<[u8]>>(&mut self, frames: &[F]) -> Result<Pushed, PeerFault> {
        if let Some(fault) = self.closed {
            return Err(fault);
        }
        let begun = self.meter.begin();
        let pushed = self.push(frames);
        self.meter.end(begun, &mut self.stats);
        self.stats.overwritten = self.indices.overwritten();
        match pushed {
            Ok((pushed, bytes)) => {
                self.stats.packets += pushed.frames as u64;
                self.stats.bytes += bytes;
                self.stats.batches += u64::from(pushed.frames > 0);
                self.stats.full += u64::from(pushed.rest == Rest::Full);
                Ok(pushed)
            }
            Err(fault) => Err(self.fault(fault)),
        }
    }

    #[inline]
    fn push<F: AsRef<[u8]>>(&mut self, frames: &[F]) -> Result<(Pushed, u64), PeerFault> {
        let Producer { window, header, places, indices, runs, epoch, peer_polls, .. } = self;
        let (generation, epoch) = (header.generation as u8, *epoch);
        window.with(|raw| {
            current(raw, header)?;
            let room = indices.room(&raw, frames.len() as u64)? as usize;
            let memory = raw.slots();
            let head = indices.next();
            let number = |frame: usize| head.wrapping_add(frame as u64);
            let (mut sent, mut bytes) = (0, 0);
            while sent < room {
                let len = frames[sent].as_ref().len();
                if len > places.frame_bytes {
                    break;
                }
                // Frames of one length share a descriptor, and lie in a row up to the end of the region.
                let most = (room - sent).min(MOST_ALIKE).min(places.before_the_wrap(number(sent)) as usize);
                let alike = frames[sent..sent + most].iter().take_while(|frame| frame.as_ref().len() == len).count();
                let descriptor = Descriptor { len: len as u16, more: (alike - 1) as u8, generation, epoch };
                memory.store(places.descriptor(number(sent), *runs), descriptor.word(), Ordering::Relaxed);
                *runs = runs.wrapping_add(1);
                memory.scatter(places.data(number(sent)), places.slot_bytes, &frames[sent..sent + alike], len);
                bytes += (len * alike) as u64;
                sent += alike;
            }
            let rest = match sent {
                all if all == frames.len() => Rest::None,
                some if some < room => Rest::TooLong,
                _ => Rest::Full,
            };
            if sent > 0 {
                indices.publish(&raw, sent as u64);
            }
            let kick = sent > 0 && !*peer_polls && indices.must_kick(&raw);
            Ok((Pushed { frames: sent, rest, kick }, bytes))
        })
    }

    /// Says that this side will sleep until there is room; false if it must not, because there is some.
    pub fn arm(&mut self) -> Result<bool, PeerFault> {
        if let Some(fault) = self.closed {
            return Err(fault);
        }
        let Producer { window, indices, .. } = self;
        window.with(|raw| indices.arm(&raw)).map_err(|fault| self.fault(fault))
    }

    /// It does not sleep any more.
    pub fn disarm(&mut self) {
        let Producer { window, indices, .. } = self;
        window.with(|raw| indices.disarm(&raw));
    }

    /// What it counted.
    pub fn stats(&self) -> &ChannelStats {
        &self.stats
    }

    /// The window in use.
    pub fn window(&self) -> &W {
        &self.window
    }

    /// Of the ring, as it was checked.
    pub fn header(&self) -> Header {
        self.header
    }

    pub(crate) fn count(&mut self) -> &mut ChannelStats {
        &mut self.stats
    }

    pub(crate) fn fault(&mut self, fault: PeerFault) -> PeerFault {
        // One that closed the channel was counted when it did, whoever hands it on.
        if self.closed.is_some() {
            return fault;
        }
        self.stats.fault(fault);
        if fault.closes() {
            self.closed = Some(fault);
        }
        fault
    }
}

/// Whether the ring is still of the connection that this end belongs to.
#[inline]
pub(crate) fn current(raw: Raw<'_>, header: &Header) -> Result<(), PeerFault> {
    let generation = raw.slots().load(GENERATION_AT, Ordering::Relaxed) as u32;
    if generation == header.generation { Ok(()) } else { Err(PeerFault::Gone) }
}
