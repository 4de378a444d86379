//! When a ring's memory is accessible to our own process.
//!
//! A window opens for one batch and closes on every way out: a value whose end closes it stands on the stack meanwhile. Nothing in
//! it blocks, allocates or calls the kernel (but `mprotect`, which is a call, opens and closes it). It guards against our own wild
//! reads and writes. It is not what keeps two machines apart: that is what each of them can map.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::layout::{CONSUMER_WANTS_AT, HEAD_AT, PRODUCER_WANTS_AT, TAIL_AT};
use crate::memory::{Key, Memory, Protection};
use crate::protocol::{Shared, Word};
use crate::region::{Error, kernel};

/// How a window opens and closes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowKind {
    /// It is always open.
    None,
    /// A memory protection key: this thread alone, without a system call.
    Pkey,
    /// `mprotect`: all threads of the process.
    Mprotect,
    /// Not run here: a cost that somebody published.
    Modelled {
        /// Of the mechanism.
        name: &'static str,
        /// For opening and closing.
        ns: f64,
        /// Who says so.
        source: &'static str,
    },
}

impl WindowKind {
    /// As tables name it.
    pub fn name(&self) -> &'static str {
        match self {
            WindowKind::None => "none",
            WindowKind::Pkey => "pkey",
            WindowKind::Mprotect => "mprotect",
            WindowKind::Modelled { name, .. } => name,
        }
    }
}

/// Both halves of a ring: the one whose head moves, with the slots, and the one whose tail moves; they may be one region.
#[derive(Clone, Debug)]
pub struct Halves {
    pub(crate) producers: Arc<Memory>,
    pub(crate) consumers: Arc<Memory>,
}

/// A ring's memory while its window is open.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    halves: &'a Halves,
}

impl<'a> Raw<'a> {
    #[inline]
    pub(crate) fn slots(&self) -> &'a Memory {
        &self.halves.producers
    }

    #[inline]
    fn place(&self, word: Word) -> (&'a Memory, usize) {
        match word {
            Word::Head => (&self.halves.producers, HEAD_AT),
            Word::ProducerWants => (&self.halves.producers, PRODUCER_WANTS_AT),
            Word::Tail => (&self.halves.consumers, TAIL_AT),
            Word::ConsumerWants => (&self.halves.consumers, CONSUMER_WANTS_AT),
        }
    }
}

impl Shared for Raw<'_> {
    #[inline]
    fn acquire(&self, word: Word) -> u64 {
        let (memory, at) = self.place(word);
        memory.load(at, Ordering::Acquire)
    }

    #[inline]
    fn release(&self, word: Word, value: u64) {
        let (memory, at) = self.place(word);
        memory.store(at, value, Ordering::Release);
    }

    #[inline]
    fn peek(&self, word: Word) -> u64 {
        let (memory, at) = self.place(word);
        memory.load(at, Ordering::Relaxed)
    }

    #[inline]
    fn fence(&self) {
        self.halves.producers.fence();
    }
}

/// What lets a ring's memory be used.
pub trait Window {
    /// Which kind it really is.
    fn kind(&self) -> WindowKind;
    /// Opens, runs, closes: also if `run` panics.
    fn with<R>(&mut self, run: impl FnOnce(Raw<'_>) -> R) -> R;
}

/// No window: the memory is accessible all the time.
#[derive(Debug)]
pub struct Open(Halves);

impl Open {
    /// Over the halves of a ring.
    pub fn over(halves: Halves) -> Open {
        Open(halves)
    }
}

impl Window for Open {
    fn kind(&self) -> WindowKind {
        WindowKind::None
    }

    #[inline]
    fn with<R>(&mut self, run: impl FnOnce(Raw<'_>) -> R) -> R {
        run(Raw { halves: &self.0 })
    }
}

/// A window of a memory protection key, of which a process has 15: channels whose peers are trusted alike share one.
#[derive(Debug)]
pub struct Pkey {
    halves: Halves,
    key: Arc<Key>,
}

impl Pkey {
    /// Fails where the CPU has no protection keys, or all are in use; which window is used instead is the caller's choice to make and
    /// to say.
    pub fn over(halves: Halves) -> Result<Pkey, Error> {
        let key = Key::allocate().map_err(kernel("allocating a memory protection key"))?;
        Pkey::sharing(halves, Arc::new(key))
    }

    /// For one more channel whose peer is trusted as the first one's is.
    pub fn beside(&self, halves: Halves) -> Result<Pkey, Error> {
        Pkey::sharing(halves, Arc::clone(&self.key))
    }

    fn sharing(halves: Halves, key: Arc<Key>) -> Result<Pkey, Error> {
        // Where the second half fails, the first is given back: a key that is freed may become another window's.
        let window = Pkey { halves, key };
        for half in [&window.halves.producers, &window.halves.consumers] {
            window.key.close_over(half).map_err(kernel("giving memory a protection key"))?;
        }
        Ok(window)
    }
}

impl Drop for Pkey {
    fn drop(&mut self) {
        for half in [&self.halves.producers, &self.halves.consumers] {
            // Where the kernel refuses it, the mapping stays closed.
            let _ = self.key.take_from(half);
        }
    }
}

impl Window for Pkey {
    fn kind(&self) -> WindowKind {
        WindowKind::Pkey
    }

    #[inline]
    fn with<R>(&mut self, run: impl FnOnce(Raw<'_>) -> R) -> R {
        self.key.set(true);
        let _closing = Closing(&self.key);
        run(Raw { halves: &self.halves })
    }
}

struct Closing<'a>(&'a Key);

impl Drop for Closing<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// A window of `mprotect`: for CPUs without protection keys, and slow.
#[derive(Debug)]
pub struct Mprotect(Halves);

impl Mprotect {
    /// Closes the memory at once.
    pub fn over(halves: Halves) -> Result<Mprotect, Error> {
        set(&halves, Protection::Closed).map_err(kernel("closing memory"))?;
        Ok(Mprotect(halves))
    }
}

impl Window for Mprotect {
    fn kind(&self) -> WindowKind {
        WindowKind::Mprotect
    }

    fn with<R>(&mut self, run: impl FnOnce(Raw<'_>) -> R) -> R {
        // A window that stayed closed would end the process at the first access, with no word of why.
        set(&self.0, Protection::Open).expect("memory that was accessible is made accessible again");
        let _closing = Shutting(&self.0);
        run(Raw { halves: &self.0 })
    }
}

struct Shutting<'a>(&'a Halves);

impl Drop for Shutting<'_> {
    fn drop(&mut self) {
        // Nothing sensible can be done where the kernel refuses; it needs no memory for what it split before.
        let _ = set(self.0, Protection::Closed);
    }
}

fn set(halves: &Halves, protection: Protection) -> io::Result<()> {
    halves.producers.protect(protection)?;
    if Arc::ptr_eq(&halves.producers, &halves.consumers) {
        return Ok(());
    }
    halves.consumers.protect(protection)
}
