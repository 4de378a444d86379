//! The streams of a trace, and how they are cut so that several CPUs decode at once.

use crate::{Batch, Facts, Request};
use base::{Clock, ClockSource};

/// An opened trace.
pub trait Trace: Send + Sync {
    /// What the file says of itself.
    fn facts(&self) -> &Facts;

    /// The trace's streams, ready to hand out the events of `reading`.
    ///
    /// Each lane is in time order by itself, as far as its recorder kept order.
    fn lanes<'t>(&'t self, reading: &'t Reading<'t>) -> Vec<Lane<'t>>;

    /// Files of the trace that have become shorter while they were read: what they had is missing, and reads as zeros.
    fn torn(&self) -> Vec<String> {
        Vec::new()
    }

    /// The text of `/proc/kallsyms` of the traced machine, if the file carries it. Some megabytes, read at each call.
    fn kallsyms(&self) -> Option<String> {
        None
    }
}

/// What is asked of a trace.
pub struct Reading<'a> {
    /// The wanted events.
    pub request: &'a Request,
    /// The clock to use instead of those of which the file gives no scale.
    /// `None`: such a clock's ticks pass as they are.
    pub fitted: Option<Clock>,
}

impl Reading<'_> {
    /// The clock to use for a stream whose file gives `own`.
    pub fn clock(&self, own: &Clock) -> Clock {
        match &self.fitted {
            Some(fitted) if own.source == ClockSource::None => fitted.clone(),
            _ => own.clone(),
        }
    }
}

/// One stream.
pub struct Lane<'t> {
    /// File and stream, for messages.
    pub name: String,
    /// The CPU that wrote it, where a stream has one.
    pub cpu: Option<u32>,
    /// Bytes of the input it takes, as they are stored there.
    pub bytes: u64,
    /// Where its batches come from.
    pub source: Source<'t>,
}

/// Where a lane's batches come from.
pub enum Source<'t> {
    /// Pieces that can be decoded in any order.
    Pieces(Box<dyn Pieces + 't>),
    /// Batches that only come one after the other.
    Sequence(Box<dyn Sequence + 't>),
}

impl<'t> Source<'t> {
    /// All batches in order, decoded by the calling thread; `event_types` is the number of `Facts::event_types`.
    pub fn batches(self, event_types: usize) -> impl Iterator<Item = Batch> + 't {
        let (mut source, mut number, mut scratch) = (self, 0, Scratch::default());
        std::iter::from_fn(move || {
            let mut batch = Batch::default();
            batch.clear(event_types);
            let more = match &mut source {
                Source::Pieces(pieces) => {
                    let more = number < pieces.count();
                    if more {
                        pieces.decode(number, &mut scratch, &mut batch);
                    }
                    more
                }
                Source::Sequence(sequence) => sequence.decode_next(&mut batch),
            };
            number += 1;
            more.then_some(batch)
        })
    }
}

/// A stream whose batches depend on those before.
pub trait Sequence: Send {
    /// Decodes the next batch into `batch`, which the caller has cleared; false at the end. Damage goes into
    /// `batch.problems`.
    fn decode_next(&mut self, batch: &mut Batch) -> bool;
}

/// Batches that somebody has made already.
impl<I: Iterator<Item = Batch> + Send> Sequence for I {
    fn decode_next(&mut self, batch: &mut Batch) -> bool {
        self.next().map(|next| *batch = next).is_some()
    }
}

/// A stream whose pieces (pages, compressed chunks, packets) can be decoded in any order.
pub trait Pieces: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// Bytes of the largest, unpacked: what is decoded ahead is bounded by it.
    fn most_bytes(&self) -> usize;

    /// Decodes piece `index` into `batch`, which the caller has cleared. Damage goes into `batch.problems`.
    fn decode(&self, index: usize, scratch: &mut Scratch, batch: &mut Batch);
}

/// Memory that a decoding thread uses again and again.
#[derive(Default)]
pub struct Scratch {
    /// zstd's state, made at first use.
    pub zstd: Option<zstd::bulk::Decompressor<'static>>,
}
