//! The index protocol: who may touch which slot, and who must be woken.
//!
//! ```text
//!                     tail                    head
//!   ..free slots..     |  slots of the consumer |   ..free slots..
//!                      v                        v
//!        only the consumer adds to it    only the producer adds to it
//! ```
//! Indices run on for ever and are masked when used; the ring is full when `head - tail == slots`. Each side keeps its own index
//! and the last one that it accepted of the peer's in private memory, and looks again only when it would stall. An index is
//! published with release after the copies, and read with acquire before them: the order that Linux had to mend in virtio
//! (2d61ba95034f) and in vmbus (b6cae15b5710).
//!
//! It is written over [`Shared`], so that the same lines run on a mapping and under a model checker that tries every order of two
//! threads.

use crate::fault::PeerFault;

/// Our own index is looked at once in so many times that it is published: its line is the one that the peer reads most.
const LOOKED_AT_EVERY: u64 = 8;

/// Which shared word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Of the producer.
    Head,
    /// Of the consumer.
    Tail,
    /// The consumer sleeps until it is kicked.
    ConsumerWants,
    /// The producer does.
    ProducerWants,
}

/// The four words that both sides of a ring see, wherever they lie.
pub trait Shared {
    /// What the peer published is complete, up to this value.
    fn acquire(&self, word: Word) -> u64;
    /// What we did before is seen by whoever acquires this value.
    fn release(&self, word: Word, value: u64);
    /// No order.
    fn peek(&self, word: Word) -> u64;
    /// What was stored before is seen by all before what is loaded after.
    fn fence(&self);
}

/// The producer's side of the indices.
#[derive(Clone, Debug)]
pub struct Sending {
    slots: u64,
    head: u64,
    tail_seen: u64,
    published: u64,
    overwritten: u64,
}

/// The consumer's side.
#[derive(Clone, Debug)]
pub struct Receiving {
    slots: u64,
    tail: u64,
    head_seen: u64,
    published: u64,
    overwritten: u64,
}

impl Sending {
    /// Of an empty ring.
    pub fn new(slots: u32) -> Sending {
        Sending { slots: u64::from(slots), head: 0, tail_seen: 0, published: 0, overwritten: 0 }
    }

    /// How many slots can be filled now, up to `wanted`.
    #[inline]
    pub fn room(&mut self, shared: &impl Shared, wanted: u64) -> Result<u64, PeerFault> {
        if self.free() < wanted {
            let seen = shared.acquire(Word::Tail);
            // It only grows, and never passes what was sent.
            if self.head.wrapping_sub(seen) > self.head.wrapping_sub(self.tail_seen) {
                return Err(PeerFault::Index { seen, local: self.head });
            }
            self.tail_seen = seen;
        }
        Ok(self.free().min(wanted))
    }

    /// Publishes the next `filled` slots.
    #[inline]
    pub fn publish(&mut self, shared: &impl Shared, filled: u64) {
        if self.published.is_multiple_of(LOOKED_AT_EVERY) {
            self.overwritten += u64::from(shared.peek(Word::Head) != self.head);
        }
        self.published += 1;
        self.head = self.head.wrapping_add(filled);
        shared.release(Word::Head, self.head);
    }

    /// Whether the consumer must be kicked for what was published; it is asked once for each time that it wants to be.
    #[inline]
    pub fn must_kick(&self, shared: &impl Shared) -> bool {
        shared.fence();
        shared.peek(Word::ConsumerWants) != 0
    }

    /// Says that this side will sleep, and looks once more: false if there is room by now, so that it must not sleep.
    pub fn arm(&mut self, shared: &impl Shared) -> Result<bool, PeerFault> {
        shared.release(Word::ProducerWants, 1);
        shared.fence();
        Ok(self.room(shared, 1)? == 0)
    }

    /// It does not sleep any more.
    pub fn disarm(&self, shared: &impl Shared) {
        shared.release(Word::ProducerWants, 0);
    }

    /// The number of the next slot to fill.
    #[inline]
    pub fn next(&self) -> u64 {
        self.head
    }

    /// How often the shared copy of our index was not what we had written, of the times that it was looked at: the peer wrote it, and it
    /// was not believed.
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    #[inline]
    fn free(&self) -> u64 {
        self.slots - self.head.wrapping_sub(self.tail_seen)
    }
}

impl Receiving {
    /// Of an empty ring.
    pub fn new(slots: u32) -> Receiving {
        Receiving { slots: u64::from(slots), tail: 0, head_seen: 0, published: 0, overwritten: 0 }
    }

    /// How many slots can be read now, up to `wanted`.
    #[inline]
    pub fn filled(&mut self, shared: &impl Shared, wanted: u64) -> Result<u64, PeerFault> {
        if self.waiting() < wanted {
            let seen = shared.acquire(Word::Head);
            let grown = seen.wrapping_sub(self.tail);
            if grown > self.slots || grown < self.waiting() {
                return Err(PeerFault::Index { seen, local: self.tail });
            }
            self.head_seen = seen;
        }
        Ok(self.waiting().min(wanted))
    }

    /// Gives the next `read` slots back.
    #[inline]
    pub fn release(&mut self, shared: &impl Shared, read: u64) {
        if self.published.is_multiple_of(LOOKED_AT_EVERY) {
            self.overwritten += u64::from(shared.peek(Word::Tail) != self.tail);
        }
        self.published += 1;
        self.tail = self.tail.wrapping_add(read);
        shared.release(Word::Tail, self.tail);
    }

    /// Whether the producer waits for room.
    #[inline]
    pub fn must_kick(&self, shared: &impl Shared) -> bool {
        shared.fence();
        shared.peek(Word::ProducerWants) != 0
    }

    /// Says that this side will sleep, and looks once more: false if something came by now.
    pub fn arm(&mut self, shared: &impl Shared) -> Result<bool, PeerFault> {
        shared.release(Word::ConsumerWants, 1);
        shared.fence();
        Ok(self.filled(shared, 1)? == 0)
    }

    /// It does not sleep any more.
    pub fn disarm(&self, shared: &impl Shared) {
        shared.release(Word::ConsumerWants, 0);
    }

    /// The number of the next slot to read.
    #[inline]
    pub fn next(&self) -> u64 {
        self.tail
    }

    /// As [`Sending::overwritten`].
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    #[inline]
    fn waiting(&self) -> u64 {
        self.head_seen.wrapping_sub(self.tail)
    }
}
