//! Memory that two machines share, before a ring lies in it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate, memfd_create};

use crate::fault::Refused;
use crate::memory::{Access, Memory};

/// Seals without which a peer could take the pages away from under us.
const NEVER_RESIZED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// What memfds of plain pages lie on (`TMPFS_MAGIC` of include/uapi/linux/magic.h, Linux 6.12): a hole in one reads as zeros. Those of huge
/// pages lie on hugetlbfs, whose pool can be empty when a page of a hole is wanted again.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// A file that is mapped once and never resized: a sealed memfd, or the memory of a PCI device.
#[derive(Clone, Debug)]
pub struct Region {
    file: Arc<OwnedFd>,
    memory: Arc<Memory>,
}

/// Why a region could not be made or taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel said so.
    #[error("{doing}: {source}")]
    Kernel {
        /// What was tried.
        doing: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// It was there, and is not used.
    #[error(transparent)]
    Refused(#[from] Refused),
}

pub(crate) fn kernel(doing: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Kernel { doing, source }
}

impl Region {
    /// New memory of zeros that both sides may write: whoever gets the descriptor can neither shrink nor grow it.
    pub fn shared(name: &str, bytes: usize) -> Result<Region, Error> {
        Region::sealed(name, bytes, NEVER_RESIZED)
    }

    /// New memory of zeros that nobody but this process will ever write: whoever gets the descriptor can map it for reading only
    /// (`F_SEAL_FUTURE_WRITE`, Linux 5.1).
    pub fn read_only_for_others(name: &str, bytes: usize) -> Result<Region, Error> {
        Region::sealed(name, bytes, NEVER_RESIZED.union(SealFlags::FUTURE_WRITE))
    }

    fn sealed(name: &str, bytes: usize, seals: SealFlags) -> Result<Region, Error> {
        let file = memfd_create(name, MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC)
            .map_err(|error| kernel("making a memfd")(error.into()))?;
        ftruncate(&file, bytes as u64).map_err(|error| kernel("sizing a memfd")(error.into()))?;
        // Before the seals: one of them forbids it afterwards.
        let memory = Memory::map(&file, bytes, Access::ReadWrite).map_err(kernel("mapping a memfd"))?;
        fcntl_add_seals(&file, seals).map_err(|error| kernel("sealing a memfd")(error.into()))?;
        Ok(Region { file: Arc::new(file), memory: Arc::new(memory) })
    }

    /// Takes what a peer made. Refused unless its size can never change.
    pub fn received(file: OwnedFd, access: Access) -> Result<Region, Error> {
        // What has no seals at all is no memfd.
        let seals = fcntl_get_seals(&file).unwrap_or(SealFlags::empty());
        if !seals.contains(NEVER_RESIZED) {
            return Err(Refused::Unsealed.into());
        }
        if fstatfs(&file).map_or(true, |system| system.f_type != TMPFS_MAGIC) {
            return Err(Refused::Pages.into());
        }
        Region::whole(file, access)
    }

    /// The memory of an `ivshmem` device: its resource in a guest (`/sys/bus/pci/devices/../resource2`), whose size no guest can
    /// change, or the file behind it on the host. That one has no seals: whoever can open it can shrink it, so it belongs into a
    /// directory that no other user can enter.
    pub fn of_device(path: &Path) -> Result<Region, Error> {
        let file = File::options().read(true).write(true).open(path).map_err(kernel("opening a device's memory"))?;
        Region::whole(file.into(), Access::ReadWrite)
    }

    fn whole(file: OwnedFd, access: Access) -> Result<Region, Error> {
        let size = fstat(&file).map_err(|error| kernel("asking for a region's size")(error.into()))?.st_size;
        let bytes = usize::try_from(size).unwrap_or(0);
        if bytes == 0 {
            return Err(Refused::Size { has: 0, needs: crate::layout::CONTROL_BYTES }.into());
        }
        let memory = Memory::map(&file, bytes, access).map_err(kernel("mapping a region"))?;
        Ok(Region { file: Arc::new(file), memory: Arc::new(memory) })
    }

    /// To hand to a peer.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Of the mapping.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Whether others can write it: what is only read here is checked to be sealed by its owner.
    pub fn is_read_only_for_others(&self) -> bool {
        fcntl_get_seals(&*self.file).is_ok_and(|seals| seals.contains(SealFlags::FUTURE_WRITE))
    }

    /// One word, as a peer may have changed it meanwhile.
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.memory.load(at, Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(region: &Region) -> OwnedFd {
        region.file().try_clone_to_owned().unwrap()
    }

    #[test]
    fn what_one_writes_the_other_reads_and_nobody_can_resize_it() {
        let made = Region::shared("kvmscope-test", 8192).unwrap();
        let taken = Region::received(again(&made), Access::ReadWrite).unwrap();
        taken.memory().store(4096, 7, Ordering::Release);
        assert_eq!(made.word(4096), 7);
        assert!(ftruncate(&*made.file, 4096).is_err());
        assert!(ftruncate(&*taken.file, 1 << 20).is_err());
    }

    #[test]
    fn memory_for_reading_cannot_be_mapped_for_writing_by_anybody_who_gets_it() {
        let made = Region::read_only_for_others("kvmscope-test", 8192).unwrap();
        assert!(Region::received(again(&made), Access::ReadWrite).is_err());
        let taken = Region::received(again(&made), Access::Read).unwrap();
        made.memory().store(0, 5, Ordering::Release);
        assert_eq!((taken.word(0), taken.is_read_only_for_others()), (5, true));
    }

    #[test]
    #[should_panic(expected = "can only be read here")]
    fn writing_what_can_only_be_read_is_refused_before_it_ends_the_process() {
        let made = Region::read_only_for_others("kvmscope-test", 8192).unwrap();
        Region::received(again(&made), Access::Read).unwrap().memory().store(0, 1, Ordering::Relaxed);
    }

    #[test]
    fn huge_pages_that_a_peer_can_take_away_are_refused() {
        // The file exists without a single huge page: none is taken before it is touched.
        let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB | MemfdFlags::CLOEXEC;
        let Ok(file) = memfd_create("kvmscope-test", flags) else {
            return println!("skipped: huge pages: this kernel makes no memfd of them");
        };
        ftruncate(&file, 2 << 20).unwrap();
        fcntl_add_seals(&file, NEVER_RESIZED).unwrap();
        let refused = Region::received(file, Access::Read).unwrap_err();
        assert!(matches!(refused, Error::Refused(Refused::Pages)), "{refused}");
    }

    #[test]
    fn a_file_that_its_owner_can_shrink_is_refused() {
        let file = memfd_create("kvmscope-test", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, 8192).unwrap();
        let refused = Region::received(file.try_clone().unwrap(), Access::ReadWrite).unwrap_err();
        assert!(matches!(refused, Error::Refused(Refused::Unsealed)), "{refused}");
        // Sealed against shrinking, but not against taking the seal's company away.
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        assert!(Region::received(file, Access::ReadWrite).is_err());
    }
}
