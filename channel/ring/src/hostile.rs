//! A peer that keeps none of the rules, to hold an honest side against: all bytes of a region, to write as one likes.
//!
//! Nothing in this crate uses it. It is public for tests and for `kvmscope bench channel`, which injects faults by script.

use std::sync::atomic::Ordering;

use crate::layout::{CONSUMER_WANTS_AT, Descriptor, HEAD_AT, TAIL_AT};
use crate::region::Region;
use crate::ring::Ring;

/// Where the producer's index lies.
pub const HEAD: usize = HEAD_AT;
/// Where the consumer's does.
pub const TAIL: usize = TAIL_AT;
/// Where the consumer asks to be kicked.
pub const CONSUMER_WANTS: usize = CONSUMER_WANTS_AT;

/// The region of a ring, without its rules.
#[derive(Clone, Debug)]
pub struct Bytes(Region);

impl Bytes {
    /// Of a region that this process may write.
    pub fn of(region: &Region) -> Bytes {
        Bytes(region.clone())
    }

    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Writes a word, which begins at a multiple of 8.
    pub fn set(&self, at: usize, word: u64) {
        self.0.memory().store(at, word, Ordering::SeqCst);
    }

    /// Reads a word.
    pub fn get(&self, at: usize) -> u64 {
        self.0.memory().load(at, Ordering::SeqCst)
    }

    /// Writes the same byte over all from here on.
    pub fn fill(&self, from: usize, byte: u8) {
        self.0.memory().copy_in(from, &vec![byte; self.bytes() - from]);
    }

    /// Writes a descriptor of a run of one frame: the length and the low bits of the generation that slot `number` claims, which all slots
    /// before it have one of, too.
    pub fn describe(&self, ring: &Ring, number: u64, len: u16, generation: u8) {
        let descriptor = Descriptor { len, more: 0, generation, epoch: 0 };
        self.set(ring.header().shape.places().descriptor(number, number), descriptor.word());
    }

    /// Where the first slot begins.
    pub fn slots(&self, ring: &Ring) -> usize {
        ring.header().shape.places().descriptor(0, 0)
    }
}
