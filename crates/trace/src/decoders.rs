//! Pieces decoded ahead of the thread that consumes them.
//!
//! ```text
//! consumer --wants the next AHEAD pieces of each lane--> queue --> workers --> finished pieces --> consumer
//!     \___ takes a job itself when the piece it needs is not ready and nobody has begun it
//! ```
//! As many threads as there are CPUs, the consumer being one of them.

use crate::batch::Batch;
use crate::lane::{Lane, Pieces, Scratch, Source};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

/// How many pieces are in flight over all lanes, at least two per lane. Few, so that they are still in the CPU's cache when
/// they are consumed: a piece of trace.dat unpacks to 40 KB and decodes to about as much.
const AHEAD: usize = 8;

/// How many bytes are in flight over all lanes, at least two pieces per lane. A packet of LTTng may have 4 MB and more.
const AHEAD_BYTES: usize = 8 << 20;

/// How many emptied batches are kept for use again: as many as can be in flight, so that none is allocated twice.
const SPARES: usize = AHEAD;

/// A piece to decode.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Job {
    lane: usize,
    piece: usize,
}

#[derive(Default)]
struct Shop {
    queue: VecDeque<Job>,
    /// Finished pieces of each lane.
    ready: Vec<Vec<(usize, Batch)>>,
    spares: Vec<Batch>,
    closed: bool,
}

struct Shared<'t> {
    pieces: Vec<Option<Box<dyn Pieces + 't>>>,
    event_types: usize,
    shop: Mutex<Shop>,
    work: Condvar,
    done: Condvar,
}

/// Hands out the batches of each lane, in the lane's order.
pub struct Decoders<'s> {
    shared: &'s Shared<'s>,
    streams: Vec<Stream<'s>>,
    ahead: usize,
    scratch: Scratch,
    done: u64,
    all: u64,
}

enum Stream<'s> {
    Pieces { next: usize, queued: usize, count: usize },
    Sequence(Box<dyn Iterator<Item = Batch> + Send + 's>),
}

/// Starts the workers, calls `consume`, and ends the workers.
pub fn run(lanes: Vec<Lane<'_>>, event_types: usize, consume: impl FnOnce(&mut Decoders<'_>)) {
    let (mut pieces, mut sequences) = (Vec::new(), Vec::new());
    for lane in lanes {
        match lane.source {
            Source::Pieces(source) => {
                pieces.push(Some(source));
                sequences.push(None);
            }
            Source::Sequence(source) => {
                pieces.push(None);
                sequences.push(Some(source));
            }
        }
    }
    let ready = pieces.iter().map(|_| Vec::new()).collect();
    let shop = Mutex::new(Shop { ready, ..Shop::default() });
    let shared = Shared { pieces, event_types, shop, work: Condvar::new(), done: Condvar::new() };
    let shared = &shared;
    let stream = |(lane, sequence): (usize, Option<_>)| match (sequence, &shared.pieces[lane]) {
        (Some(sequence), _) => Stream::Sequence(sequence),
        (None, source) => {
            Stream::Pieces { next: 0, queued: 0, count: source.as_ref().map_or(0, |source| source.count()) }
        }
    };
    let streams: Vec<Stream<'_>> = sequences.into_iter().enumerate().map(stream).collect();
    let counts = streams.iter().map(|stream| if let Stream::Pieces { count, .. } = stream { *count } else { 0 });
    let all = counts.sum::<usize>();
    let helpers = std::thread::available_parallelism().map_or(1, usize::from).min(all.max(1)) - 1;
    std::thread::scope(|scope| {
        // However `consume` ends, the workers must end too, or the scope waits for them for ever.
        let closer = Closer(shared);
        for _ in 0..helpers {
            scope.spawn(|| work(shared));
        }
        let sources = shared.pieces.iter().flatten();
        let most_bytes = sources.map(|pieces| pieces.most_bytes()).max().unwrap_or(0).max(1);
        let ahead = (AHEAD.min(AHEAD_BYTES / most_bytes) / streams.len().max(1)).max(2);
        consume(&mut Decoders { shared, streams, ahead, scratch: Scratch::default(), done: 0, all: all as u64 });
        drop(closer);
    });
}

struct Closer<'s>(&'s Shared<'s>);

impl Drop for Closer<'_> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Shop> {
        // A worker that panicked left the shop in order: it holds the lock only between whole steps.
        self.shop.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn decode(&self, job: Job, mut batch: Batch, scratch: &mut Scratch) -> Batch {
        batch.clear(self.event_types);
        if let Some(pieces) = &self.pieces[job.lane] {
            pieces.decode(job.piece, scratch, &mut batch);
        }
        batch
    }
}

fn work(shared: &Shared<'_>) {
    let mut scratch = Scratch::default();
    let mut shop = shared.lock();
    loop {
        if shop.closed {
            return;
        }
        let Some(job) = shop.queue.pop_front() else {
            shop = shared.work.wait(shop).unwrap_or_else(|poisoned| poisoned.into_inner());
            continue;
        };
        let spare = shop.spares.pop().unwrap_or_default();
        drop(shop);
        let batch = shared.decode(job, spare, &mut scratch);
        shop = shared.lock();
        shop.ready[job.lane].push((job.piece, batch));
        shared.done.notify_one();
    }
}

impl Decoders<'_> {
    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.streams.len()
    }

    /// Pieces handed out, and pieces in all.
    pub fn progress(&self) -> (u64, u64) {
        (self.done, self.all)
    }

    /// Takes back a batch that is used up.
    pub fn give_back(&mut self, batch: Batch) {
        let mut shop = self.shared.lock();
        if shop.spares.len() < SPARES {
            shop.spares.push(batch);
        }
    }

    /// The lane's next batch, `None` at its end.
    pub fn next(&mut self, lane: usize) -> Option<Batch> {
        let wanted = match &mut self.streams[lane] {
            Stream::Sequence(batches) => {
                self.done += 1;
                return batches.next();
            }
            Stream::Pieces { next, count, .. } if next == count => return None,
            Stream::Pieces { next, queued, count } => {
                let wanted = Job { lane, piece: *next };
                let mut shop = self.shared.lock();
                *queued = (*queued).max(*next);
                while *queued < (wanted.piece + self.ahead).min(*count) {
                    shop.queue.push_back(Job { lane, piece: *queued });
                    self.shared.work.notify_one();
                    *queued += 1;
                }
                *next += 1;
                wanted
            }
        };
        self.done += 1;
        Some(self.wait_for(wanted))
    }

    fn wait_for(&mut self, wanted: Job) -> Batch {
        let mut shop = self.shared.lock();
        loop {
            let ready = &mut shop.ready[wanted.lane];
            if let Some(place) = ready.iter().position(|(piece, _)| *piece == wanted.piece) {
                return ready.swap_remove(place).1;
            }
            let own = shop.queue.iter().position(|job| *job == wanted).unwrap_or(0);
            let Some(job) = shop.queue.remove(own) else {
                shop = self.shared.done.wait(shop).unwrap_or_else(|poisoned| poisoned.into_inner());
                continue;
            };
            let spare = shop.spares.pop().unwrap_or_default();
            drop(shop);
            let batch = self.shared.decode(job, spare, &mut self.scratch);
            if job == wanted {
                return batch;
            }
            shop = self.shared.lock();
            shop.ready[job.lane].push((job.piece, batch));
        }
    }
}
