//! The memory of a test guest: anonymous pages of this process, which KVM shows to the guest.

use crate::Error;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// Pages of this process, given back when dropped. Nothing refers into them: bytes are copied in.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is not bound to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps `bytes` of zeros, which the kernel makes real when they are first touched.
    ///
    /// # Errors
    /// If the kernel has no room.
    pub fn new(bytes: usize) -> Result<Self, Error> {
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new anonymous mapping at a place of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, access, kind) };
        let start =
            start.map_err(|error| Error::Unable(format!("no room for {bytes} bytes of guest memory: {error}")))?;
        let start =
            NonNull::new(start).ok_or_else(|| Error::Unable("guest memory was mapped at address 0".to_owned()))?;
        Ok(Self { start, bytes })
    }

    /// Where it lies in this process.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// How much there is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies `code` to the guest's physical address `at`.
    ///
    /// # Errors
    /// If it would not fit.
    pub fn load(&mut self, at: usize, code: &[u8]) -> Result<(), Error> {
        if at.checked_add(code.len()).is_none_or(|end| end > self.bytes) {
            let (length, bytes) = (code.len(), self.bytes);
            return Err(Error::Unable(format!(
                "{length} bytes of code at {at:#x} exceed {bytes} bytes of guest memory"
            )));
        }
        // SAFETY: the range was checked to lie inside the mapping, which nobody else borrows.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), self.start.as_ptr().cast::<u8>().add(at), code.len()) };
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of that size, and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_must_fit() {
        let mut memory = Memory::new(4096).unwrap();
        assert!(memory.load(4094, &[1, 2]).is_ok());
        assert!(memory.load(4095, &[1, 2]).is_err());
        assert!(memory.load(usize::MAX, &[1, 2]).is_err());
    }
}
