//! A page of words of 64 bits that machines share: of a file here, of a device `ivshmem` in a machine.

use lab::Error;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU64;

/// How much is mapped.
pub const BYTES: usize = 4096;

/// The page, unmapped when dropped.
#[derive(Debug)]
pub struct Words(NonNull<c_void>);

// SAFETY: the mapping belongs to this value, is not bound to a thread, and is read and written by atomics alone.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// The page of a file, or of a device's resource, that begins at byte `at`.
    ///
    /// # Errors
    /// If the kernel does not map it.
    pub fn of(path: &Path, at: u64) -> Result<Self, Error> {
        let io = |error| Error::io(path, error);
        let file = File::options().read(true).write(true).open(path).map_err(io)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice overlaps nothing.
        let mapped = unsafe { mmap(null_mut(), BYTES, access, MapFlags::SHARED, &file, at) };
        let mapped = mapped.map_err(|error| io(error.into()))?;
        NonNull::new(mapped).map(Self).ok_or_else(|| Error::Absent("a page was mapped at address 0".to_owned()))
    }

    /// One word, which others change as they may change any atomic.
    pub fn word(&self, number: usize) -> &AtomicU64 {
        assert!(number < BYTES / size_of::<AtomicU64>(), "no word {number} in a page");
        // SAFETY: the mapping lives as long as `self`, begins at a page, and holds the word by the assertion.
        unsafe { &*self.0.as_ptr().cast::<AtomicU64>().add(number) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of that size, and nothing refers to it any more.
        let _ = unsafe { munmap(self.0.as_ptr(), BYTES) };
    }
}
