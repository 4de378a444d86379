//! Giving a PCI device to vfio-pci, and back to the driver that it had.
//!
//! Documentation/ABI/testing/sysfs-bus-pci, Linux 6.12: `driver_override` names the only driver that may take a device, `unbind` of a driver lets
//! go of it, and an address written to `drivers_probe` has the kernel look for its driver again.

use super::Reverted;
use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The driver that gives a device to programs, behind an IOMMU.
pub const VFIO: &str = "vfio-pci";

/// A PCI device and the driver that it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciDriver {
    /// `0000:3b:00.0`.
    pub address: String,
    /// `None` if no driver had it.
    pub driver: Option<String>,
}

impl PciDriver {
    /// True if both are names of a device and of a driver, and of nothing else in sysfs.
    pub fn is_plain(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        is_address(&self.address)
            && self.driver.as_deref().is_none_or(|driver| !driver.is_empty() && driver.bytes().all(plain))
    }

    fn device(&self, sys: &Path) -> PathBuf {
        sys.join("bus/pci/devices").join(&self.address)
    }

    /// The driver that has it now.
    fn current(&self, sys: &Path) -> Option<String> {
        let link = std::fs::read_link(self.device(sys).join("driver")).ok()?;
        Some(link.file_name()?.to_string_lossy().into_owned())
    }

    /// Takes it from its driver, for programs.
    ///
    /// # Errors
    /// If the kernel refuses, or has no vfio-pci.
    pub fn give_to_vfio(&self, sys: &Path) -> Result<(), Error> {
        if !sys.join("bus/pci/drivers").join(VFIO).exists() {
            return Err(Error::Absent(format!("the kernel has no driver {VFIO} loaded; type: modprobe {VFIO}")));
        }
        let refused = |error: std::io::Error| {
            Error::refused(format!("the kernel does not give {} to {VFIO}", self.address), error)
        };
        self.bind(VFIO, sys).map_err(refused)
    }

    /// Gives it back; what somebody else's driver has by now is left to that.
    pub fn put_back(&self, sys: &Path) -> Reverted {
        if !self.device(sys).exists() {
            return Reverted::Done;
        }
        let current = self.current(sys);
        if let Some(other) =
            current.as_deref().filter(|current| *current != VFIO && Some(*current) != self.driver.as_deref())
        {
            return Reverted::LeftAlone(format!("driver {other} has it by now"));
        }
        // An empty name takes the override away.
        match self.bind("", sys) {
            Ok(()) => Reverted::Done,
            Err(error) => Reverted::Failed(error.to_string()),
        }
    }

    fn bind(&self, only: &str, sys: &Path) -> std::io::Result<()> {
        let device = self.device(sys);
        std::fs::write(device.join("driver_override"), format!("{only}\n"))?;
        if let Some(current) = self.current(sys).filter(|current| current != only) {
            // One that has its own driver already keeps it.
            if only.is_empty() && self.driver.as_deref() == Some(&current) {
                return Ok(());
            }
            std::fs::write(sys.join("bus/pci/drivers").join(current).join("unbind"), &self.address)?;
        }
        if only.is_empty() && self.driver.is_none() {
            return Ok(());
        }
        std::fs::write(sys.join("bus/pci/drivers_probe"), &self.address)
    }
}

/// True for `0000:3b:00.0`.
fn is_address(text: &str) -> bool {
    let hexadecimal =
        |part: &str, length: usize| part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split([':', '.']).collect();
    let [domain, bus, device, function] = parts[..] else { return false };
    // Domains of VMD and Hyper-V have more than four digits.
    let is_domain = (4..=8).contains(&domain.len()) && hexadecimal(domain, domain.len());
    is_domain && hexadecimal(bus, 2) && hexadecimal(device, 2) && hexadecimal(function, 1) && text.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_device_and_nothing_else() {
        for address in ["0000:3b:00.0", "10000:01:00.0", "0000:af:10.7"] {
            assert!(is_address(address), "{address}");
        }
        for other in ["", "0000:3b:00", "0000:3b:00:0", "3b:00.0", "../../x", "0000:3g:00.0", "0000:3b:00.0/.."] {
            assert!(!is_address(other), "{other}");
        }
        let of = |driver: &str| PciDriver { address: "0000:3b:00.0".into(), driver: Some(driver.into()) };
        assert!(of("i40e").is_plain() && of("vfio-pci").is_plain());
        assert!(!of("").is_plain() && !of("../x").is_plain());
    }
}
