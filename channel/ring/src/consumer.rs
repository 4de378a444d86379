//! The end of a channel that receives.

use std::sync::atomic::Ordering;

use crate::fault::PeerFault;
use crate::frames::FrameBuf;
use crate::layout::{Descriptor, Header, Places};
use crate::memory::Ticks;
use crate::producer::current;
use crate::protocol::Receiving;
use crate::ring::Ring;
use crate::stats::{ChannelStats, Meter};
use crate::window::Window;

/// Receives frames from a ring through a window. It is the only one that does.
#[derive(Debug)]
pub struct Consumer<W> {
    window: W,
    header: Header,
    places: Places,
    indices: Receiving,
    alike: Alike,
    /// Descriptors that were read.
    runs: u64,
    peer_polls: bool,
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
        Consumer {
            window,
            header,
            places: header.shape.places(),
            indices,
            alike: Alike::default(),
            runs: 0,
            peer_polls: false,
            stats,
            meter: Meter(None),
            closed: None,
            epochs: Vec::new(),
            kick: false,
        }
    }

    /// From now on each window is timed.
    pub fn timed(mut self, ticks: Ticks) -> Consumer<W> {
        self.meter = Meter(Some(ticks));
        self
    }

    /// The producer never sleeps: nobody looks after each batch whether it asked to be kicked, which takes a full fence.
    pub fn polled(mut self) -> Consumer<W> {
        self.peer_polls = true;
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
        let begun = self.meter.begin();
        let popped = self.pop(out, max);
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

    #[inline]
    fn pop(&mut self, out: &mut FrameBuf, max: usize) -> Result<Popped, PeerFault> {
        let Consumer { window, header, places, indices, alike, runs, epochs, peer_polls, .. } = self;
        let generation = header.generation as u8;
        let longest = places.frame_bytes.min(out.frame_bytes());
        window.with(|raw| {
            current(raw, header)?;
            let filled = indices.filled(&raw, max.min(out.most()) as u64)?;
            let memory = raw.slots();
            let (mut number, end) = (indices.next(), indices.next().wrapping_add(filled));
            let mut outdated = 0;
            while number != end {
                if alike.left == 0 {
                    // Read once; what is checked is what is used.
                    let descriptor = Descriptor::of(memory.load(places.descriptor(number, *runs), Ordering::Relaxed));
                    *runs = runs.wrapping_add(1);
                    let age = generation.wrapping_sub(descriptor.generation);
                    if age >= 1 << 7 {
                        return Err(PeerFault::Generation { seen: u32::from(descriptor.generation) });
                    }
                    if age != 0 {
                        let frames = (1 + u64::from(descriptor.more)).min(end.wrapping_sub(number));
                        outdated += frames;
                        number = number.wrapping_add(frames);
                        continue;
                    }
                    *alike =
                        Alike { left: 1 + u64::from(descriptor.more), len: descriptor.len, epoch: descriptor.epoch };
                }
                if usize::from(alike.len) > longest {
                    return Err(PeerFault::Length { slot: number, len: alike.len });
                }
                let frames = alike.left.min(end.wrapping_sub(number)).min(places.before_the_wrap(number));
                let (stride, room) = (out.frame_bytes(), out.push_alike(frames as usize, alike.len));
                memory.gather(places.data(number), places.slot_bytes, alike.len.into(), room, stride);
                epochs.resize(epochs.len() + frames as usize, alike.epoch);
                alike.left -= frames;
                number = number.wrapping_add(frames);
            }
            if filled > 0 {
                indices.release(&raw, filled);
            }
            Ok(Popped { outdated, kick: filled > 0 && !*peer_polls && indices.must_kick(&raw) })
        })
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

/// The last descriptor that was read, and how many frames are still to come by it: a batch that is received need not end where one
/// that was sent does.
#[derive(Clone, Copy, Debug, Default)]
struct Alike {
    left: u64,
    len: u16,
    epoch: u32,
}

struct Popped {
    outdated: u64,
    kick: bool,
}
