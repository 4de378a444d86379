//! The end of a channel that sends.

use std::sync::atomic::Ordering;

use crate::fault::PeerFault;
use crate::layout::{Descriptor, Header};
use crate::memory::Ticks;
use crate::protocol::Sending;
use crate::ring::{GENERATION_AT, Ring};
use crate::stats::{ChannelStats, Meter};
use crate::window::{Raw, Window};

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
    indices: Sending,
    epoch: u32,
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
        Producer { window, header, indices, epoch: 0, stats, meter: Meter(None), closed: None }
    }

    /// From now on each window is timed.
    pub fn timed(mut self, ticks: Ticks) -> Producer<W> {
        self.meter = Meter(Some(ticks));
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
        let Producer { window, header, indices, epoch, .. } = self;
        let begun = self.meter.begin();
        let pushed = window.with(|raw| push(raw, header, *epoch, indices, frames));
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
        self.stats.fault(fault);
        if fault.closes() {
            self.closed = Some(fault);
        }
        fault
    }
}

#[inline]
fn push<F: AsRef<[u8]>>(
    raw: Raw<'_>,
    header: &Header,
    epoch: u32,
    indices: &mut Sending,
    frames: &[F],
) -> Result<(Pushed, u64), PeerFault> {
    current(raw, header)?;
    let room = indices.room(&raw, frames.len() as u64)? as usize;
    let (shape, memory) = (&header.shape, raw.slots());
    let (mut sent, mut bytes) = (0, 0);
    for frame in frames[..room].iter().map(AsRef::as_ref) {
        if frame.len() > shape.frame_bytes() {
            break;
        }
        let number = indices.next().wrapping_add(sent as u64);
        let descriptor = Descriptor { len: frame.len() as u16, generation: header.generation as u16, epoch };
        memory.store(shape.descriptor_at(number), descriptor.word(), Ordering::Relaxed);
        memory.copy_in(shape.data_at(number), frame);
        bytes += frame.len() as u64;
        sent += 1;
    }
    let rest = match sent {
        all if all == frames.len() => Rest::None,
        some if some < room => Rest::TooLong,
        _ => Rest::Full,
    };
    if sent > 0 {
        indices.publish(&raw, sent as u64);
    }
    Ok((Pushed { frames: sent, rest, kick: sent > 0 && indices.must_kick(&raw) }, bytes))
}

/// Whether the ring is still of the connection that this end belongs to.
#[inline]
pub(crate) fn current(raw: Raw<'_>, header: &Header) -> Result<(), PeerFault> {
    let generation = raw.slots().load(GENERATION_AT, Ordering::Relaxed) as u32;
    if generation == header.generation { Ok(()) } else { Err(PeerFault::Gone) }
}
