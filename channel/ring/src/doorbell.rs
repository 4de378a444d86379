//! The doorbell of a PCI device `ivshmem-doorbell`: a guest writes a register, and an interrupt comes in another guest.
//!
//! ```text
//! BAR 0    8  position   our number among the peers
//!         12  doorbell   the peer's number << 16 | vector
//! ```
//! Its other side is an eventfd that the driver of the peer's device connected to that vector: a [`Bell`](crate::Bell) there.
//! Source: docs/specs/ivshmem-spec.txt, QEMU 7.2.

use std::io;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use crate::memory::Registers;
use crate::region::{Error, kernel};

const POSITION_AT: usize = 8;
const DOORBELL_AT: usize = 12;

/// Wakes one peer; writes that nobody hears are ignored by the device.
#[derive(Debug)]
pub struct Doorbell {
    registers: Registers,
    value: u32,
}

impl Doorbell {
    /// Of the device in `directory` (`/sys/bus/pci/devices/..`), for a vector of the peer that `peer` picks by our own number.
    pub fn of_device(directory: &Path, peer: impl FnOnce(u16) -> u16, vector: u16) -> Result<Doorbell, Error> {
        let resources =
            std::fs::read_to_string(directory.join("resource")).map_err(kernel("reading where a device lies"))?;
        let begin = begin_of_first(&resources)
            .ok_or_else(|| kernel("finding a device's registers")(io::ErrorKind::InvalidData.into()))?;
        let registers =
            Registers::map(&directory.join("resource0"), begin).map_err(kernel("mapping a device's registers"))?;
        let peer = peer(registers.read(POSITION_AT) as u16);
        Ok(Doorbell { registers, value: u32::from(peer) << 16 | u32::from(vector) })
    }

    /// Wakes the peer.
    pub fn ring(&self) {
        // What the peer shall find is there before it is woken.
        fence(Ordering::SeqCst);
        self.registers.write(DOORBELL_AT, self.value);
    }
}

/// Where the first resource begins: a line is its begin, its end and its flags.
fn begin_of_first(resources: &str) -> Option<usize> {
    let begin = resources.lines().next()?.split_whitespace().next()?;
    usize::from_str_radix(begin.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_writes_the_peers_number_and_vector_wherever_the_registers_begin() {
        let name = format!("kvmscope-doorbell-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        for begin in [0, 0x300] {
            let resource = format!("0x00000000febf1{begin:03x} 0x00000000febf1fff 0x0000000000040200\n0x0 0x0 0x0\n");
            std::fs::write(directory.join("resource"), resource).unwrap();
            let mut page = vec![0; 4096];
            page[begin + 8] = 1;
            std::fs::write(directory.join("resource0"), &page).unwrap();
            let doorbell = Doorbell::of_device(&directory, |own| own + 6, 3).unwrap();
            doorbell.ring();
            let mut expected = page;
            expected[begin + 12..begin + 16].copy_from_slice(&[3, 0, 7, 0]);
            assert!(std::fs::read(directory.join("resource0")).unwrap() == expected, "registers at {begin:#x}");
        }
        std::fs::write(directory.join("resource"), "none\n").unwrap();
        assert!(Doorbell::of_device(&directory, |own| own, 0).is_err());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
