//! All unsafe code: memory that somebody else changes while we use it.
//!
//! Why it is sound. A [`Memory`] is one shared mapping of a file, made and unmapped here alone. Nothing outside of this module gets a
//! pointer or a reference into it. It is read and written
//! * as whole 64-bit words at multiples of 8, as atomics, which exist to be changed by others at any time;
//! * as frames, with the loads and stores of [`copy`], which are assembly or volatile: the compiler assumes nothing about what
//!   they find, and a byte that changes while it is copied gives a wrong byte in a private buffer, which is no more than the peer could
//!   have written to begin with.
//!
//! Every access is checked against the length of the mapping, which never changes; the file behind it cannot be shrunk
//! ([`crate::Region`] insists on seals, or on a device's memory), so the pages are there.

mod clock;
mod copy;
mod protect;
mod register;

use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

pub use clock::Ticks;
pub(crate) use protect::{Key, Protection};
pub(crate) use register::Registers;

/// What this process may do with a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only look; a write would end the process, and is refused before.
    Read,
    /// Both.
    ReadWrite,
}

impl Access {
    fn protection(self) -> ProtFlags {
        match self {
            Access::Read => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        }
    }
}

/// A mapped region.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    bytes: usize,
    access: Access,
}

// SAFETY: all accesses through `&Memory` are atomic, volatile or assembly, none hands out a reference, and the mapping is the same
// in all threads.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps the first `bytes` of a file.
    pub(crate) fn map(file: impl AsFd, bytes: usize, access: Access) -> io::Result<Memory> {
        // SAFETY: a new mapping at an address that the kernel chooses: no other memory of this process is touched.
        let base = unsafe { mmap(ptr::null_mut(), bytes, access.protection(), MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("the kernel mapped address 0"))?;
        Ok(Memory { base, bytes, access })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at < self.bytes && self.bytes - at >= 8, "no word at byte {at} of a region");
        // SAFETY: 8 bytes at `at` are inside the mapping and aligned (a mapping begins a page). The reference ends with this call's
        // caller, a load or store below, and `self` keeps the mapping. Others change it, as they may change any atomic.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    #[inline]
    pub(crate) fn load(&self, at: usize, ordering: Ordering) -> u64 {
        self.word(at).load(ordering)
    }

    #[inline]
    pub(crate) fn store(&self, at: usize, value: u64, ordering: Ordering) {
        self.writable();
        self.word(at).store(value, ordering);
    }

    /// What was stored before is seen by all before what is loaded after.
    #[inline]
    pub(crate) fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    /// Copies private bytes into the region.
    #[inline]
    pub(crate) fn copy_in(&self, at: usize, from: &[u8]) {
        self.writable();
        self.holds(at, from.len());
        // SAFETY: `from` is readable, `from.len()` bytes at `at` are inside the mapping, which is writable, and the two do not
        // overlap, since no slice points into a mapping.
        unsafe { copy::copy(self.base.as_ptr().add(at), from.as_ptr(), from.len()) }
    }

    /// Copies frames of `bytes` bytes each to places that lie `step` apart, the first at `at`.
    ///
    /// It is a loop of its own: stores wait in their order for lines that the peer has, and the CPU has room for 64 of them or so. Where
    /// registers do not suffice, those of spilled ones wait in between, and fewer lines are on their way at once.
    #[inline(never)]
    pub(crate) fn scatter<F: AsRef<[u8]>>(&self, at: usize, step: usize, frames: &[F], bytes: usize) {
        self.writable();
        let Some(last) = frames.len().checked_sub(1) else { return };
        self.holds(at, last * step + bytes);
        // SAFETY: `at` lies inside the mapping.
        let mut to = unsafe { self.base.as_ptr().add(at) };
        for frame in frames {
            let from = frame.as_ref();
            assert!(from.len() == bytes, "a frame has changed its length");
            // SAFETY: `bytes` bytes at the last place are inside the mapping, so they are at each earlier one; `from` is as long.
            unsafe { copy::copy(to, from.as_ptr(), bytes) }
            to = to.wrapping_add(step);
        }
    }

    /// Copies bytes of the region into private memory, each once.
    #[inline]
    pub(crate) fn copy_out(&self, at: usize, to: &mut [u8]) {
        self.holds(at, to.len());
        // SAFETY: as in `copy_in`, the other way round.
        unsafe { copy::copy(to.as_mut_ptr(), self.base.as_ptr().add(at), to.len()) }
    }

    /// Copies `to.len() / stride` pieces of `bytes` bytes, whose beginnings lie `step` apart, to beginnings that lie `stride` apart.
    #[inline]
    pub(crate) fn gather(&self, at: usize, step: usize, bytes: usize, to: &mut [u8], stride: usize) {
        if bytes == 0 {
            return;
        }
        let pieces = to.chunks_exact_mut(stride);
        assert!(bytes <= stride, "{bytes} bytes are more than the {stride} of each piece");
        let Some(last) = pieces.len().checked_sub(1) else { return };
        self.holds(at, last * step + bytes);
        for (piece, to) in pieces.enumerate() {
            // SAFETY: `bytes` bytes are inside the mapping at the last piece, so they are at each earlier one, and inside `to`, which is
            // `stride` long.
            unsafe { copy::copy(to.as_mut_ptr(), self.base.as_ptr().add(at + piece * step), bytes) }
        }
    }

    #[inline]
    fn holds(&self, at: usize, bytes: usize) {
        assert!(at <= self.bytes && bytes <= self.bytes - at, "{bytes} bytes at {at} are not inside a region");
    }

    #[inline]
    fn writable(&self) {
        assert!(self.access == Access::ReadWrite, "the region can only be read here");
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped in `map` with this length, and nothing points into it any more. An error would leave it mapped, which
        // harms nobody.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
