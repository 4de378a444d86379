//! How does a process of a guest sleep until a device interrupts? By vfio, which connects the device's vector to an eventfd.
//!
//! Stock kernels of Debian have vfio without its mode for machines that lack an IOMMU, so the guest has an emulated one. `uio_pci_generic`
//! would need none; it knows only the old interrupts by wire, which `ivshmem-doorbell` does not have.
//!
//! ```text
//! driver_override = vfio-pci, drivers_probe -> /dev/vfio/GROUP -> container, its IOMMU -> the device -> MSI-X vector 0 --> eventfd
//! ```
//! Sources: Documentation/driver-api/vfio.rst, include/uapi/linux/vfio.h, Linux 6.1.

use crate::rings;
use channel::{Bell, Doorbell};
use lab::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::{CString, c_void};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const SET_IOMMU: libc::Ioctl = 0x3b66;
const GROUP_SET_CONTAINER: libc::Ioctl = 0x3b68;
const GROUP_GET_DEVICE_FD: libc::Ioctl = 0x3b6a;
const DEVICE_SET_IRQS: libc::Ioctl = 0x3b6e;
/// The IOMMU of PCs, version 2.
const TYPE1: libc::c_ulong = 3;
/// `VFIO_PCI_MSIX_IRQ_INDEX`.
const MSIX: u32 = 2;
/// `VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER`.
const BY_EVENTFD: u32 = 1 << 2 | 1 << 5;
/// The register `Command` of a PCI device: it may answer to its memory, and write to ours, which an interrupt is.
const COMMAND_AT: u64 = 4;
const MEMORY_AND_MASTER: u16 = 1 << 1 | 1 << 2;

/// An interrupt that takes longer does not come.
const COMES_WITHIN: Duration = Duration::from_secs(10);

/// `struct vfio_irq_set` for one vector.
#[repr(C)]
struct IrqSet {
    argsz: u32,
    flags: u32,
    index: u32,
    start: u32,
    count: u32,
    eventfd: i32,
}

/// A device's first vector; dropping it disconnects it.
pub(super) struct Interrupts {
    bell: Bell,
    // The device is closed before the container that it is in.
    _device: OwnedFd,
    _group: File,
    _container: File,
}

impl Interrupts {
    /// Of the device in `directory`, which no driver has, of the machine whose files lie below `root`.
    pub(super) fn of(root: &Path, directory: &Path) -> Result<Interrupts, Error> {
        let write = |path: &Path, text: &str| std::fs::write(path, text).map_err(|error| Error::io(path, error));
        let address = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        write(&directory.join("driver_override"), "vfio-pci")?;
        write(&root.join("sys/bus/pci/drivers_probe"), &address)?;
        let group = directory.join("iommu_group");
        let group = std::fs::read_link(&group).map_err(|error| Error::io(group, error))?;
        let open = |path: &Path| {
            let file = File::options().read(true).write(true).open(path);
            file.map_err(|error| Error::io(path, error))
        };
        let devices = root.join("dev/vfio");
        let container = open(&devices.join("vfio"))?;
        let group = open(&devices.join(group.file_name().unwrap_or_default()))?;
        let number = container.as_raw_fd();
        // SAFETY: the kernel reads one number of 32 bits, which lives until the call returns.
        asked("takes the group", unsafe { libc::ioctl(group.as_raw_fd(), GROUP_SET_CONTAINER, &raw const number) })?;
        // SAFETY: a call without pointers.
        asked("takes its IOMMU", unsafe { libc::ioctl(container.as_raw_fd(), SET_IOMMU, TYPE1) })?;
        let name = CString::new(address).map_err(|error| Error::Malformed(error.to_string()))?;
        // SAFETY: the kernel reads a text with its end, which lives until the call returns.
        let device = unsafe { libc::ioctl(group.as_raw_fd(), GROUP_GET_DEVICE_FD, name.as_ptr()) };
        asked("gives the device", device)?;
        // SAFETY: a descriptor that the kernel has just made for us.
        let device = unsafe { OwnedFd::from_raw_fd(device) };
        let bell = Bell::new().map_err(|error| Error::Died(error.to_string()))?;
        let set = IrqSet {
            argsz: size_of::<IrqSet>() as u32,
            flags: BY_EVENTFD,
            index: MSIX,
            start: 0,
            count: 1,
            eventfd: bell.file().as_raw_fd(),
        };
        let set: *const c_void = (&raw const set).cast();
        // SAFETY: the kernel reads one structure of the length that stands in it, which lives until the call returns.
        asked("connects its interrupt", unsafe { libc::ioctl(device.as_raw_fd(), DEVICE_SET_IRQS, set) })?;
        master(&directory.join("config"))?;
        Ok(Interrupts { bell, _device: device, _group: group, _container: container })
    }

    /// Rings our own doorbell, to see that an interrupt comes: sides that sleep look at the ring now and then, so that frames would
    /// arrive without any.
    pub(crate) fn try_out(&self, own: &Doorbell) -> Result<(), Error> {
        own.ring();
        let mut files = [PollFd::from_borrowed_fd(self.bell.file(), PollFlags::IN)];
        let limit = Timespec::try_from(COMES_WITHIN).ok();
        if !matches!(poll(&mut files, limit.as_ref()), Ok(1)) {
            let seconds = COMES_WITHIN.as_secs();
            return Err(Error::TimedOut(format!(
                "the guest's doorbell was rung, and no interrupt came for {seconds} s"
            )));
        }
        self.bell.sleep(Duration::ZERO, None);
        Ok(())
    }

    /// Rung by the device.
    pub(crate) fn bell(&self) -> Result<Bell, Error> {
        let file = self.bell.file().try_clone_to_owned();
        Bell::received(file.map_err(|error| Error::refused("the eventfd of an interrupt", error))?)
            .map_err(rings::refused)
    }
}

fn asked(what: &str, answer: libc::c_int) -> Result<(), Error> {
    if answer >= 0 {
        return Ok(());
    }
    Err(Error::refused(format_args!("vfio {what}"), std::io::Error::last_os_error()))
}

/// Lets a device write to memory, which vfio takes from it until somebody asks.
fn master(config: &Path) -> Result<(), Error> {
    let io = |error| Error::io(config, error);
    let file = File::options().read(true).write(true).open(config).map_err(io)?;
    let mut command = [0; 2];
    file.read_exact_at(&mut command, COMMAND_AT).map_err(io)?;
    let command = u16::from_le_bytes(command) | MEMORY_AND_MASTER;
    file.write_all_at(&command.to_le_bytes(), COMMAND_AT).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gets_its_rights_beside_those_that_it_has() {
        let config = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(config.path(), [0xf4, 0x1a, 0x10, 0x11, 0x01, 0x04, 0, 0]).unwrap();
        master(config.path()).unwrap();
        assert_eq!(std::fs::read(config.path()).unwrap(), [0xf4, 0x1a, 0x10, 0x11, 0x07, 0x04, 0, 0]);
        let nothing = tempfile::tempdir().unwrap();
        assert!(Interrupts::of(nothing.path(), &nothing.path().join("0000:00:11.0")).is_err());
    }
}
