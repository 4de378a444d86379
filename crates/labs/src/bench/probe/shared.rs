//! Memory that a guest of ours and this process both have.
//!
//! ```text
//! 0x0000  words of `machine::page`: questions about the guest's counter, and its answers
//! 0x0200  count, task, fault, threshold
//! 0x1000  65,536 notes: when the interrupt's handler ran, or readings before and after a gap
//! ```
//! The guest notes round and round: note n lies in place n mod 65,536, and `count` grows behind it. Whoever reads copies first and
//! looks at `count` again: notes that were written over meanwhile are lost, and never taken for others.

use crate::machine::page::{self, Page};
use lab::Error;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering, fence};

pub(crate) const SHARED: u64 = 0xd010_0000;
/// How much there is: what QEMU maps is a power of two.
pub(crate) const BYTES: usize = 1 << 20;

/// Places of words, in bytes from the beginning.
pub(crate) const PHASE: usize = page::Word::Phase as usize * 8;
pub(crate) const ASKED: usize = page::Word::Asked as usize * 8;
pub(crate) const STAMP: usize = page::Word::Stamp as usize * 8;
pub(crate) const ANSWERED: usize = page::Word::Answered as usize * 8;
/// How many notes there were.
pub(crate) const COUNT: usize = 0x200;
pub(crate) const TASK: usize = 0x208;
/// Not 0 once something came that nothing sent.
pub(crate) const FAULT: usize = 0x210;
/// Readings that are so many ticks apart are noted.
pub(crate) const THRESHOLD: usize = 0x218;
pub(crate) const NOTES: usize = 0x1000;

/// So many notes have room; the guest's code counts with 16 bits.
pub(crate) const MOST_NOTES: u64 = 1 << 16;

/// The memory, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Shared {
    start: NonNull<c_void>,
    /// The file that it is, for whoever maps it too.
    pub file: File,
    /// Its first page: where the guest is asked what its counter shows.
    pub page: Page,
}

// SAFETY: the mapping belongs to this value, is not bound to a thread, and is read and written by atomics alone.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// What was noted since somebody looked last.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub notes: Vec<u64>,
    /// How many before them were written over.
    pub lost: u64,
}

impl Shared {
    /// New memory, all zeros.
    ///
    /// # Errors
    /// If the kernel has no room.
    pub(crate) fn new() -> Result<Self, Error> {
        let refused = |error| Error::refused("no memory to share with a guest", error);
        let file = File::from(memfd_create("kvmscope", MemfdFlags::CLOEXEC).map_err(refused)?);
        ftruncate(&file, BYTES as u64).map_err(refused)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice overlaps nothing.
        let mapped = unsafe { mmap(null_mut(), BYTES, access, MapFlags::SHARED, &file, 0) }.map_err(refused)?;
        let start = NonNull::new(mapped).ok_or_else(|| Error::Absent("memory was mapped at address 0".to_owned()))?;
        let page = Page::of(&PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))?;
        Ok(Self { start, file, page })
    }

    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at + 8 <= BYTES && at.is_multiple_of(8), "{at:#x} is no word of the memory");
        // SAFETY: the mapping lives as long as `self`, begins at a page, and the word lies in it.
        unsafe { &*self.start.as_ptr().byte_add(at).cast::<AtomicU64>() }
    }

    /// Tells the guest something.
    pub(crate) fn set(&self, at: usize, value: u64) {
        self.word(at).store(value, Ordering::Release);
    }

    pub(crate) fn get(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    /// The notes from number `seen` on, which grows to what was seen.
    pub(crate) fn take(&self, seen: &mut u64) -> Taken {
        let count = self.get(COUNT);
        let first = (*seen).max(count.saturating_sub(MOST_NOTES)).min(count);
        let mut notes: Vec<u64> = (first..count)
            .map(|note| self.word(NOTES + 8 * (note % MOST_NOTES) as usize).load(Ordering::Relaxed))
            .collect();
        fence(Ordering::Acquire);
        // The guest may be writing the note behind the count, in the place of one that we copied.
        let kept = self.get(COUNT).saturating_add(1).saturating_sub(MOST_NOTES).clamp(first, count);
        notes.drain(..(kept - first) as usize);
        let lost = kept.saturating_sub(*seen);
        *seen = count;
        Taken { notes, lost }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of that size, and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(shared: &Shared, values: impl IntoIterator<Item = u64>) {
        for value in values {
            let count = shared.get(COUNT);
            shared.set(NOTES + 8 * (count % MOST_NOTES) as usize, value);
            shared.set(COUNT, count + 1);
        }
    }

    #[test]
    fn notes_are_taken_once_and_in_order() {
        let (shared, mut seen) = (Shared::new().unwrap(), 0);
        assert_eq!(shared.take(&mut seen), Taken::default());
        note(&shared, [7, 8]);
        assert_eq!(shared.take(&mut seen), Taken { notes: vec![7, 8], lost: 0 });
        note(&shared, [9]);
        assert_eq!(shared.take(&mut seen), Taken { notes: vec![9], lost: 0 });
        assert_eq!(shared.take(&mut seen), Taken::default());
    }

    #[test]
    fn notes_that_were_written_over_are_lost_and_never_taken_for_others() {
        let (shared, mut seen) = (Shared::new().unwrap(), 0);
        note(&shared, 0..10);
        assert_eq!(shared.take(&mut seen).notes.len(), 10);
        note(&shared, 10..10 + 2 * MOST_NOTES);
        let taken = shared.take(&mut seen);
        assert_eq!(taken.lost + taken.notes.len() as u64, 2 * MOST_NOTES);
        assert_eq!(taken.notes.last(), Some(&(9 + 2 * MOST_NOTES)));
        // The oldest place may be written right now.
        assert_eq!((taken.notes[0], taken.lost), (11 + MOST_NOTES, MOST_NOTES + 1));
        // A guest that runs wild.
        shared.set(COUNT, 3);
        assert_eq!(shared.take(&mut seen), Taken::default());
        shared.set(COUNT, u64::MAX);
        assert!(shared.take(&mut seen).notes.len() as u64 <= MOST_NOTES);
    }

    #[test]
    fn both_sides_see_one_memory() {
        let shared = Shared::new().unwrap();
        let path = format!("/proc/self/fd/{}", shared.file.as_raw_fd());
        shared.set(COUNT, 0x0102);
        let bytes = std::fs::read(path).unwrap();
        assert_eq!((bytes.len(), &bytes[COUNT..COUNT + 3]), (BYTES, &[2, 1, 0][..]));
    }
}
