//! The end of a channel that receives.

use std::sync::atomic::Ordering;

use crate::fault::PeerFault;
use crate::frames::FrameBuf;
use crate::layout::{Descriptor, Header};
use crate::memory::Ticks;
use crate::producer::current;
use crate::protocol::Receiving;
use crate::ring::Ring;
use crate::stats::{ChannelStats, Meter};
use crate::window::{Raw, Window};

/// Receives frames from a ring through a window. It is the only one that does.
#[derive(Debug)]
pub struct Consumer<W> {
    window: W,
    header: Header,
    indices: Receiving,
    stats: ChannelStats,
    meter: Meter,
    closed: Option<PeerFault>,
    epochs: Vec<u32>,
    kick: bool,
}

impl<W: Window> Consumer<W> {
    /// Of an empty ring, through a window over its halves.
    pub fn new(ring: &Ring, window: W) -> Consumer<W> {
        let header = ring.header();
        let indices = Receiving::new(header.shape.slots());
        let stats = ChannelStats::default();
        Consumer { window, header, indices, stats, meter: Meter(None), closed: None, epochs: Vec::new(), kick: false }
    }

    /// From now on each window is timed.
    pub fn timed(mut self, ticks: Ticks) -> Consumer<W> {
        self.meter = Meter(Some(ticks));
        self
    }

    /// Copies up to `max` frames into `out`, whose earlier ones are gone, and gives their slots back. It never waits. A number of 0
    /// means that nothing was there, or nothing of this connection.
    #[inline]
    pub fn pop_batch(&mut self, out: &mut FrameBuf, max: usize) -> Result<usize, PeerFault> {
        out.clear();
        if let Some(fault) = self.closed {
            return Err(fault);
        }
        self.epochs.clear();
        self.epochs.reserve(max.min(out.most()));
        let Consumer { window, header, indices, epochs, .. } = self;
        let begun = self.meter.begin();
        let popped = window.with(|raw| pop(raw, header, indices, out, epochs, max));
        self.meter.end(begun, &mut self.stats);
        self.stats.overwritten = self.indices.overwritten();
        self.stats.packets += out.len() as u64;
        self.stats.bytes += out.bytes_of_all();
        self.stats.batches += u64::from(!out.is_empty());
        match popped {
            Ok(Popped { outdated, kick }) => {
                self.stats.outdated += outdated;
                self.stats.empty += u64::from(out.is_empty() && outdated == 0);
                self.kick = kick;
                Ok(out.len())
            }
            Err(fault) => Err(self.fault(fault)),
        }
    }

    /// The epoch that each frame of the last batch was sent by.
    pub fn epochs(&self) -> &[u32] {
        &self.epochs
    }

    /// Whether the producer waits for the room that the last batch made.
    pub fn producer_waits(&self) -> bool {
        self.kick
    }

    /// Says that this side will sleep until something comes; false if it must not, because something has.
    pub fn arm(&mut self) -> Result<bool, PeerFault> {
        if let Some(fault) = self.closed {
            return Err(fault);
        }
        let Consumer { window, indices, .. } = self;
        window.with(|raw| indices.arm(&raw)).map_err(|fault| self.fault(fault))
    }

    /// It does not sleep any more.
    pub fn disarm(&mut self) {
        let Consumer { window, indices, .. } = self;
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

struct Popped {
    outdated: u64,
    kick: bool,
}

#[inline]
fn pop(
    raw: Raw<'_>,
    header: &Header,
    indices: &mut Receiving,
    out: &mut FrameBuf,
    epochs: &mut Vec<u32>,
    max: usize,
) -> Result<Popped, PeerFault> {
    current(raw, header)?;
    let filled = indices.filled(&raw, max.min(out.most()) as u64)?;
    let (shape, memory) = (&header.shape, raw.slots());
    let first = indices.next();
    let (mut outdated, mut wrong) = (0, None);
    for number in (0..filled).map(|i| first.wrapping_add(i)) {
        // Read once; what is checked is what is used.
        let descriptor = Descriptor::of(memory.load(shape.descriptor_at(number), Ordering::Relaxed));
        let age = (header.generation as u16).wrapping_sub(descriptor.generation);
        if age != 0 {
            if age < 1 << 15 {
                outdated += 1;
                continue;
            }
            wrong = Some(PeerFault::Generation { seen: u32::from(descriptor.generation) });
            break;
        }
        if usize::from(descriptor.len) > shape.frame_bytes().min(out.frame_bytes()) {
            wrong = Some(PeerFault::Length { slot: number, len: descriptor.len });
            break;
        }
        memory.copy_out(shape.data_at(number), out.push(descriptor.len));
        epochs.push(descriptor.epoch);
    }
    if let Some(fault) = wrong {
        return Err(fault);
    }
    if filled > 0 {
        indices.release(&raw, filled);
    }
    Ok(Popped { outdated, kick: filled > 0 && indices.must_kick(&raw) })
}
