//! The memory of a toy guest: a few megabytes, zero at first, read and written by address.
//!
//! The guest runs on it while we hold it, so it is only touched through raw pointers, never through references.

use crate::Error;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ptr::NonNull;

/// Guest memory from address 0.
pub struct Memory {
    start: NonNull<u8>,
}

impl Memory {
    /// Its size.
    pub const BYTES: usize = 4 << 20;

    /// Zeros.
    pub fn new() -> Result<Self, Error> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new anonymous mapping, at a place that the kernel chooses, aliases nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), Self::BYTES, protection, flags) };
        let start = start.map_err(|error| Error::Unable(format!("no memory for the toy guest: {error}")))?;
        let start =
            NonNull::new(start.cast()).ok_or_else(|| Error::Unable("no memory for the toy guest".to_owned()))?;
        Ok(Self { start })
    }

    /// Its address in this process.
    pub fn host_address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Copies `bytes` to the guest's address `at`.
    pub fn write(&self, at: u64, bytes: &[u8]) {
        let at = at as usize;
        assert!(at + bytes.len() <= Self::BYTES, "{at:#x} lies outside the toy's memory");
        // SAFETY: the range was checked to lie inside the mapping, which lives as long as `self`; `bytes` is ours and
        // lies elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len()) };
    }

    /// Writes a number of 64 bits.
    pub fn write_u64(&self, at: u64, value: u64) {
        self.write(at, &value.to_le_bytes());
    }

    /// Writes a number of 32 bits.
    pub fn write_u32(&self, at: u64, value: u32) {
        self.write(at, &value.to_le_bytes());
    }

    /// Writes a number of 16 bits.
    pub fn write_u16(&self, at: u64, value: u16) {
        self.write(at, &value.to_le_bytes());
    }

    /// Reads a number of 64 bits; `at` is a multiple of 8.
    pub fn read_u64(&self, at: u64) -> u64 {
        assert!(at.is_multiple_of(8) && at as usize + 8 <= Self::BYTES, "{at:#x} lies outside the toy's memory");
        // SAFETY: inside the mapping and aligned; volatile, because the guest may have changed it.
        unsafe { self.start.as_ptr().add(at as usize).cast::<u64>().read_volatile() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; the VM that used it was dropped before (see `vmm.rs`).
        let _ = unsafe { munmap(self.start.as_ptr().cast(), Self::BYTES) };
    }
}
