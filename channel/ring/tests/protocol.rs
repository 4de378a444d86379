//! Every order in which two threads can run the index protocol, and arm-and-recheck, is tried (loom, of the C11 memory model): no slot is
//! read before it was filled or filled before it was read, and nobody sleeps while there is work.

use kvmscope_channel::protocol::{Receiving, Sending, Shared, Word};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

const SLOTS: u64 = 2;

/// A ring whose slots are plain memory: loom refuses a run in which both sides could be in one at a time.
struct Ring {
    head: AtomicU64,
    tail: AtomicU64,
    consumer_wants: AtomicU64,
    producer_wants: AtomicU64,
    slots: [UnsafeCell<u64>; SLOTS as usize],
    orders: Orders,
}

/// What the protocol is run with: as it is, or with one thing taken away.
#[derive(Clone, Copy, PartialEq)]
enum Orders {
    AsWritten,
    WithoutRelease,
    WithoutAcquire,
    WithoutFence,
}

impl Ring {
    fn new(orders: Orders) -> Arc<Ring> {
        Arc::new(Ring {
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            consumer_wants: AtomicU64::new(0),
            producer_wants: AtomicU64::new(0),
            slots: [UnsafeCell::new(0), UnsafeCell::new(0)],
            orders,
        })
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        match word {
            Word::Head => &self.head,
            Word::Tail => &self.tail,
            Word::ConsumerWants => &self.consumer_wants,
            Word::ProducerWants => &self.producer_wants,
        }
    }

    /// Fills the next slots, as a producer's window does.
    fn send(&self, indices: &mut Sending, values: &[u64]) -> usize {
        let room = indices.room(self, values.len() as u64).unwrap() as usize;
        for (i, value) in values[..room].iter().enumerate() {
            let slot = (indices.next() + i as u64) % SLOTS;
            // SAFETY: loom checks that nobody else accesses it.
            self.slots[slot as usize].with_mut(|slot| unsafe { *slot = *value });
        }
        if room > 0 {
            indices.publish(self, room as u64);
        }
        room
    }

    fn receive(&self, indices: &mut Receiving, most: u64) -> Vec<u64> {
        let filled = indices.filled(self, most).unwrap();
        // SAFETY: as above.
        let read = |i| self.slots[((indices.next() + i) % SLOTS) as usize].with(|slot| unsafe { *slot });
        let values = (0..filled).map(read).collect();
        if filled > 0 {
            indices.release(self, filled);
        }
        values
    }
}

impl Shared for Ring {
    fn acquire(&self, word: Word) -> u64 {
        let order = if self.orders == Orders::WithoutAcquire { Ordering::Relaxed } else { Ordering::Acquire };
        self.word(word).load(order)
    }

    fn release(&self, word: Word, value: u64) {
        let order = if self.orders == Orders::WithoutRelease { Ordering::Relaxed } else { Ordering::Release };
        self.word(word).store(value, order);
    }

    fn peek(&self, word: Word) -> u64 {
        match word {
            // Nobody else writes one's own index. As an ordinary load it would hide the peer's from loom, which looks for other orders
            // of a store and the last access before it alone.
            // SAFETY: as said, no other thread stores it.
            Word::Head | Word::Tail => unsafe { self.word(word).unsync_load() },
            _ => self.word(word).load(Ordering::Relaxed),
        }
    }

    fn fence(&self) {
        if self.orders != Orders::WithoutFence {
            fence(Ordering::SeqCst);
        }
    }
}

/// Three frames through two slots, in batches of one or two: the second lap waits for the first.
fn frames_arrive(orders: Orders) {
    loom::model(move || {
        let ring = Ring::new(orders);
        let sent = Arc::clone(&ring);
        let producer = thread::spawn(move || {
            let mut indices = Sending::new(SLOTS as u32);
            let (mut values, mut tries) = (&[1, 2, 3][..], 0);
            while !values.is_empty() && tries < 3 {
                values = &values[sent.send(&mut indices, values)..];
                tries += 1;
            }
            values.len()
        });
        let mut indices = Receiving::new(SLOTS as u32);
        let mut seen: Vec<u64> = (0..2).flat_map(|_| ring.receive(&mut indices, 2)).collect();
        let left = producer.join().unwrap() as u64;
        while let more @ [_, ..] = ring.receive(&mut indices, 2).as_slice() {
            seen.extend(more);
        }
        assert_eq!(seen, (1..=3 - left).collect::<Vec<_>>());
    });
}

#[test]
fn frames_arrive_in_order_and_complete() {
    frames_arrive(Orders::AsWritten);
}

#[test]
#[should_panic]
fn the_model_sees_a_head_that_is_published_before_its_frames() {
    frames_arrive(Orders::WithoutRelease);
}

#[test]
#[should_panic]
fn the_model_sees_frames_that_are_read_before_the_head() {
    frames_arrive(Orders::WithoutAcquire);
}

/// One frame, and a consumer that arms and sleeps unless the second look finds it. Whoever sleeps is kicked.
fn the_last_frame_wakes(orders: Orders) {
    loom::model(move || {
        let ring = Ring::new(orders);
        let sent = Arc::clone(&ring);
        let producer = thread::spawn(move || {
            let mut indices = Sending::new(SLOTS as u32);
            assert_eq!(sent.send(&mut indices, &[1]), 1);
            indices.must_kick(&*sent)
        });
        let mut indices = Receiving::new(SLOTS as u32);
        let sleeps = indices.arm(&*ring).unwrap();
        let kicked = producer.join().unwrap();
        assert!(!sleeps || kicked, "it sleeps, and nobody wakes it");
    });
}

#[test]
fn a_consumer_that_sleeps_is_kicked_for_the_last_frame() {
    the_last_frame_wakes(Orders::AsWritten);
}

#[test]
#[should_panic(expected = "nobody wakes it")]
fn the_model_sees_the_frame_that_is_lost_without_the_fence() {
    the_last_frame_wakes(Orders::WithoutFence);
}

/// The same for a producer that waits for room in a full ring.
#[test]
fn a_producer_that_sleeps_is_kicked_for_the_first_room() {
    loom::model(|| {
        let ring = Ring::new(Orders::AsWritten);
        let mut indices = Sending::new(SLOTS as u32);
        assert_eq!(ring.send(&mut indices, &[1, 2]), 2);
        let read = Arc::clone(&ring);
        let consumer = thread::spawn(move || {
            let mut indices = Receiving::new(SLOTS as u32);
            assert_eq!(read.receive(&mut indices, 2), [1, 2]);
            indices.must_kick(&*read)
        });
        let sleeps = indices.arm(&*ring).unwrap();
        let kicked = consumer.join().unwrap();
        assert!(!sleeps || kicked, "it sleeps, and nobody wakes it");
    });
}
