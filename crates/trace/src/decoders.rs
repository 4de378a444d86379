//! Batches decoded ahead of the thread that consumes them.
//!
//! ```text
//! consumer --wants the next AHEAD batches of each lane--> queue --> workers --> finished batches --> consumer
//!     \___ takes a job itself when the batch it needs is not ready and nobody has begun it
//! ```
//! A worker that has nothing to do sleeps until half of what may be in flight waits for it, or the consumer decodes
//! itself: to wake it for every batch would cost as much as decoding one.
//!
//! As many threads as there are CPUs, the consumer being one of them. Pieces of a lane are decoded by several threads at
//! once; a sequence by one at a time, and its next batch becomes a job when the one before is finished.

use crate::batch::Batch;
use crate::lane::{Lane, Pieces, Scratch, Sequence, Source};
use base::parallel;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

/// How many batches are in flight over all lanes, at least two per lane (one of [`MANY_LANES`]). Few, so that they are still in the CPU's cache
/// when they are consumed: a piece of trace.dat unpacks to 40 KB and decodes to about as much.
const AHEAD: usize = 16;

/// How many bytes are in flight over all lanes, at least two pieces per lane.
const AHEAD_BYTES: usize = 8 << 20;

/// Of more lanes than this only the batch that is needed next is decoded: of each one is in memory anyway, 100 KB and more.
const MANY_LANES: usize = 1024;

/// How many emptied batches are kept for use again: as many as can be in flight, so that none is allocated twice.
const SPARES: usize = AHEAD;

/// A batch to decode.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Job {
    lane: usize,
    /// Number of the piece, or of the batch in its sequence.
    number: usize,
}

#[derive(Default)]
struct Shop {
    queue: VecDeque<Job>,
    /// Finished batches of each lane by number; `None` behind the last of a sequence.
    ready: Vec<Vec<(usize, Option<Batch>)>>,
    /// The next job of each sequence that waits for the consumer to catch up.
    resting: Vec<Option<Job>>,
    spares: Vec<Batch>,
    /// Workers that sleep, and whether the consumer does: to wake somebody costs a system call, whether or not it is heard.
    idle: usize,
    consumer_waits: bool,
    closed: bool,
}

/// Where a lane's batches are decoded from.
enum Decoder<'t> {
    Pieces(Box<dyn Pieces + 't>),
    /// Locked only by who has the sequence's one job.
    Sequence(Mutex<Box<dyn Sequence + 't>>),
}

struct Shared<'t> {
    decoders: Vec<Decoder<'t>>,
    event_types: usize,
    /// Batches in flight per lane.
    ahead: usize,
    /// So many jobs are worth waking a worker.
    wake_at: usize,
    shop: Mutex<Shop>,
    work: Condvar,
    done: Condvar,
}

/// Hands out the batches of each lane, in the lane's order.
pub(crate) struct Decoders<'s, 't> {
    shared: &'s Shared<'t>,
    lanes: Vec<Progress>,
    scratch: Scratch,
    read_bytes: u64,
    all_bytes: u64,
}

/// How far a lane is.
struct Progress {
    /// Number of the next batch to hand out.
    next: usize,
    /// Jobs made; of a sequence only the first is made here.
    queued: usize,
    /// Pieces in all; `None` for a sequence.
    count: Option<usize>,
}

/// Starts the workers, calls `consume`, and ends the workers.
pub(crate) fn run(lanes: Vec<Lane<'_>>, event_types: usize, consume: impl FnOnce(&mut Decoders<'_, '_>)) {
    let all_bytes = lanes.iter().map(|lane| lane.bytes).sum();
    let decoders: Vec<Decoder<'_>> = lanes.into_iter().map(|lane| lane.source.into()).collect();
    let lanes: Vec<Progress> =
        decoders.iter().map(|decoder| Progress { next: 0, queued: 0, count: decoder.count() }).collect();
    let most_bytes = decoders.iter().map(Decoder::most_bytes).max().unwrap_or(0).max(1);
    let least = if lanes.len() > MANY_LANES { 1 } else { 2 };
    let ahead = (AHEAD.min(AHEAD_BYTES / most_bytes) / lanes.len().max(1)).max(least);
    let shop = Shop {
        ready: decoders.iter().map(|_| Vec::new()).collect(),
        resting: vec![None; decoders.len()],
        ..Shop::default()
    };
    let wake_at = (ahead * lanes.iter().filter(|lane| lane.count.is_some()).count() / 2).max(1);
    let shop = Mutex::new(shop);
    let shared = Shared { decoders, event_types, ahead, wake_at, shop, work: Condvar::new(), done: Condvar::new() };
    let shared = &shared;
    let jobs = lanes.iter().map(|lane| lane.count.unwrap_or(usize::MAX)).fold(0, usize::saturating_add);
    let helpers = parallel::threads().min(jobs.max(1)) - 1;
    std::thread::scope(|scope| {
        // However `consume` ends, the workers must end too, or the scope waits for them for ever.
        let closer = Closer(shared);
        for _ in 0..helpers {
            scope.spawn(|| work(shared));
        }
        consume(&mut Decoders { shared, lanes, scratch: Scratch::default(), read_bytes: 0, all_bytes });
        drop(closer);
    });
}

struct Closer<'s, 't>(&'s Shared<'t>);

impl Drop for Closer<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

impl<'t> From<Source<'t>> for Decoder<'t> {
    fn from(source: Source<'t>) -> Self {
        match source {
            Source::Pieces(pieces) => Decoder::Pieces(pieces),
            Source::Sequence(sequence) => Decoder::Sequence(Mutex::new(sequence)),
        }
    }
}

impl Decoder<'_> {
    fn count(&self) -> Option<usize> {
        match self {
            Decoder::Pieces(pieces) => Some(pieces.count()),
            Decoder::Sequence(_) => None,
        }
    }

    fn most_bytes(&self) -> usize {
        match self {
            Decoder::Pieces(pieces) => pieces.most_bytes(),
            Decoder::Sequence(_) => 0,
        }
    }
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Shop> {
        // A worker that panicked left the shop in order: it holds the lock only between whole steps.
        self.shop.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn queue(&self, shop: &mut Shop, job: Job) {
        shop.queue.push_back(job);
        self.wake_worker(shop);
    }

    fn wake_worker(&self, shop: &Shop) {
        if shop.idle > 0 {
            self.work.notify_one();
        }
    }

    /// Does `job` without holding `shop`, then makes what follows of it a job.
    fn do_job<'m>(&'m self, mut shop: MutexGuard<'m, Shop>, job: Job, scratch: &mut Scratch) -> MutexGuard<'m, Shop> {
        let mut batch = shop.spares.pop().unwrap_or_default();
        drop(shop);
        batch.clear(self.event_types);
        let batch = match &self.decoders[job.lane] {
            Decoder::Pieces(pieces) => {
                pieces.decode(job.number, scratch, &mut batch);
                Some(batch)
            }
            Decoder::Sequence(sequence) => {
                let mut sequence = sequence.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                sequence.decode_next(&mut batch).then_some(batch)
            }
        };
        shop = self.lock();
        let more = batch.is_some() && matches!(self.decoders[job.lane], Decoder::Sequence(_));
        shop.ready[job.lane].push((job.number, batch));
        if more {
            let next = Job { number: job.number + 1, ..job };
            if shop.ready[job.lane].len() < self.ahead {
                self.queue(&mut shop, next);
            } else {
                shop.resting[job.lane] = Some(next);
            }
        }
        shop
    }
}

fn work(shared: &Shared<'_>) {
    let mut scratch = Scratch::default();
    let mut shop = shared.lock();
    while !shop.closed {
        shop = match shop.queue.pop_front() {
            Some(job) => {
                let shop = shared.do_job(shop, job, &mut scratch);
                if shop.consumer_waits {
                    shared.done.notify_one();
                }
                shop
            }
            None => {
                shop.idle += 1;
                let mut shop = shared.work.wait(shop).unwrap_or_else(|poisoned| poisoned.into_inner());
                shop.idle -= 1;
                shop
            }
        };
    }
}

impl Decoders<'_, '_> {
    pub(crate) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Bytes of the input that are handed out, and bytes in all.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.read_bytes.min(self.all_bytes), self.all_bytes)
    }

    /// Takes back a batch that is used up.
    pub(crate) fn give_back(&mut self, batch: Batch) {
        let mut shop = self.shared.lock();
        if shop.spares.len() < SPARES {
            shop.spares.push(batch);
        }
    }

    /// The lane's next batch, `None` at its end.
    pub(crate) fn next(&mut self, lane: usize) -> Option<Batch> {
        let progress = &mut self.lanes[lane];
        let wanted = Job { lane, number: progress.next };
        if progress.count == Some(wanted.number) {
            return None;
        }
        let mut shop = self.shared.lock();
        let until = progress.count.map_or(1, |count| (wanted.number + self.shared.ahead).min(count));
        for number in progress.queued..until {
            shop.queue.push_back(Job { lane, number });
            if shop.queue.len() >= self.shared.wake_at {
                self.shared.wake_worker(&shop);
            }
        }
        progress.queued = progress.queued.max(until);
        progress.next += 1;
        loop {
            if shop.ready[lane].len() <= self.shared.ahead / 2
                && let Some(job) = shop.resting[lane].take()
            {
                self.shared.queue(&mut shop, job);
            }
            let ready = &mut shop.ready[lane];
            if let Some(place) = ready.iter().position(|(number, _)| *number == wanted.number) {
                let batch = ready.swap_remove(place).1;
                self.read_bytes += batch.as_ref().map_or(0, |batch| batch.read_bytes);
                return batch;
            }
            let own = shop.queue.iter().position(|job| *job == wanted).unwrap_or(0);
            shop = match shop.queue.remove(own) {
                Some(job) => {
                    if !shop.queue.is_empty() {
                        self.shared.wake_worker(&shop);
                    }
                    self.shared.do_job(shop, job, &mut self.scratch)
                }
                None => {
                    shop.consumer_waits = true;
                    let mut shop = self.shared.done.wait(shop).unwrap_or_else(|poisoned| poisoned.into_inner());
                    shop.consumer_waits = false;
                    shop
                }
            };
        }
    }
}
