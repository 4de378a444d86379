//! The memory of a test guest: anonymous pages of this process, which KVM shows to the guest.

use crate::Error;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// Pages of this process, given back when dropped. Nothing refers into them: bytes are copied in.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<c_void>,
    mapped: (NonNull<c_void>, usize),
    bytes: usize,
}

/// Memory of a guest that begins like a large page of ours can be made of such pages.
const LARGE_PAGE: usize = 2 << 20;

// SAFETY: the mapping belongs to this value alone and is not bound to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps `bytes` of zeros, which the kernel makes real when they are first touched.
    ///
    /// # Errors
    /// If the kernel has no room.
    pub fn new(bytes: usize) -> Result<Self, Error> {
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        let mapped_bytes = if bytes < LARGE_PAGE { bytes } else { bytes.saturating_add(LARGE_PAGE) };
        // SAFETY: a new anonymous mapping at a place of the kernel's choice overlaps nothing.
        let mapped = unsafe { mmap_anonymous(null_mut(), mapped_bytes, access, kind) };
        let mapped = mapped.map_err(|error| {
            Error::refused(format_args!("{bytes} bytes of guest memory cannot be allocated"), error)
        })?;
        let mapped =
            NonNull::new(mapped).ok_or_else(|| Error::Absent("guest memory was mapped at address 0".to_owned()))?;
        let begins = mapped.addr().get();
        let skipped = if bytes < LARGE_PAGE { 0 } else { begins.next_multiple_of(LARGE_PAGE) - begins };
        // SAFETY: less than a large page is skipped, which is what was mapped beyond `bytes`.
        let start = unsafe { mapped.byte_add(skipped) };
        Ok(Self { start, mapped: (mapped, mapped_bytes), bytes })
    }

    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it may be made of large pages; where the kernel knows only small ones, it is.
    ///
    /// # Errors
    /// If the kernel refuses small ones, which would make first touches of pages look cheaper than they are.
    pub fn large_pages(&self, large: bool) -> Result<(), Error> {
        use rustix::mm::{Advice, madvise};
        let advice = if large { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: the advice changes no content, and the range is ours.
        match unsafe { madvise(self.start.as_ptr(), self.bytes, advice) } {
            // A kernel without transparent huge pages does not know the word.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
            Err(error) => Err(Error::refused("the kernel refuses a size for guest pages", error)),
        }
    }

    /// Asks the kernel never to take its pages away, until it is unmapped. Where that is more than a user may keep, they
    /// can go: a bench counts the faults that bring pages back from a disk.
    pub fn stay(&self) {
        // SAFETY: locking changes no content, and the range is ours.
        let _ = unsafe { rustix::mm::mlock(self.start.as_ptr(), self.bytes) };
    }

    /// Copies `code` to the guest's physical address `at`.
    ///
    /// # Errors
    /// If it would not fit.
    pub fn load(&mut self, at: usize, code: &[u8]) -> Result<(), Error> {
        if at.checked_add(code.len()).is_none_or(|end| end > self.bytes) {
            let (length, bytes) = (code.len(), self.bytes);
            return Err(Error::Malformed(format!(
                "{length} bytes of code at {at:#x} exceed {bytes} bytes of guest memory"
            )));
        }
        // SAFETY: the range was checked to lie inside the mapping, which nobody else borrows.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), self.start.as_ptr().cast::<u8>().add(at), code.len()) };
        Ok(())
    }

    /// Copies what lies at the guest's physical address `at` to `into`.
    pub fn copy(&self, at: usize, into: &mut [u8]) {
        assert!(at.checked_add(into.len()).is_some_and(|end| end <= self.bytes), "{at:#x} is outside guest memory");
        // SAFETY: the range was checked to lie inside the mapping, and `into` is not part of it: nothing refers there.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.as_ptr().cast::<u8>().add(at), into.as_mut_ptr(), into.len())
        };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of that size, and nothing refers to it any more.
        let _ = unsafe { munmap(self.mapped.0.as_ptr(), self.mapped.1) };
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

    #[test]
    fn large_memory_begins_like_a_large_page_and_all_of_it_is_there() {
        let bytes = 2 * LARGE_PAGE + 4096;
        let mut memory = Memory::new(bytes).unwrap();
        assert_eq!((memory.address() as usize % LARGE_PAGE, memory.bytes()), (0, bytes));
        memory.load(bytes - 2, &[7, 8]).unwrap();
        let mut end = [0; 3];
        memory.copy(bytes - 3, &mut end);
        assert_eq!(end, [0, 7, 8]);
    }
}
