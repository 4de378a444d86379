//! Registers of a PCI device, mapped from its resource.

use std::fs::File;
use std::io;
use std::path::Path;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const PAGE_BYTES: usize = 4096;

/// The page that a device's registers lie in.
#[derive(Debug)]
pub(crate) struct Registers {
    page: NonNull<u8>,
    begin: usize,
}

// SAFETY: the mapping is the same in all threads, and is accessed by single volatile loads and stores of 32 bits.
unsafe impl Send for Registers {}
// SAFETY: as above.
unsafe impl Sync for Registers {}

impl Registers {
    /// Maps the page of `resource` in which registers begin at byte `begin`: a device's registers may be smaller than a page, and
    /// are mapped with what lies in front of them.
    pub(crate) fn map(resource: &Path, begin: usize) -> io::Result<Registers> {
        let file = File::options().read(true).write(true).open(resource)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses: no other memory of this process is touched.
        let page = unsafe { mmap(ptr::null_mut(), PAGE_BYTES, access, MapFlags::SHARED, &file, 0)? };
        let page = NonNull::new(page.cast()).ok_or_else(|| io::Error::other("the kernel mapped address 0"))?;
        Ok(Registers { page, begin: begin % PAGE_BYTES })
    }

    /// What a register shows.
    pub(crate) fn read(&self, at: usize) -> u32 {
        // SAFETY: `register` is inside the mapping and aligned; devices are read by volatile loads.
        unsafe { self.register(at).read_volatile() }
    }

    #[inline]
    pub(crate) fn write(&self, at: usize, value: u32) {
        // SAFETY: as in `read`.
        unsafe { self.register(at).write_volatile(value) }
    }

    #[inline]
    fn register(&self, at: usize) -> *mut u32 {
        let at = self.begin + at;
        assert!(at.is_multiple_of(4) && at <= PAGE_BYTES - 4, "no register at byte {at} of a page");
        self.page.as_ptr().wrapping_add(at).cast()
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: it was mapped in `map` with this length, and nothing points into it any more.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), PAGE_BYTES) };
    }
}
