//! Which port of this machine do a chain's packets come from and go to, where a generator on the wire sends them?
//!
//! ```text
//! --nic NAME --> sysfs: what it is, who uses it --> taken from its driver (journal) --> a port of the switch
//! ```
//! In: an interface or a PCI address. Out: a [`Card`], and the words by which DPDK opens it. A port of a PCIe card is given to vfio-pci, unless
//! its driver shares it with DPDK; an interface without PCI is read through a packet socket. What the host itself uses is refused.

use base::CpuSet;
use lab::Error;
use lab::journal::pci::{self, PciDriver};
use lab::journal::{Entry, Step};
use lab::setting::Host;
use std::path::{Path, PathBuf};

/// Class of a network controller, the upper byte (PCI Code and ID Assignment Specification 1.11).
const NETWORK: &str = "0x02";
/// Drivers that leave the port to the kernel while DPDK uses it (doc/guides/platform/mlx5.rst of DPDK 22.11, "bifurcated driver").
const SHARING: [&str; 2] = ["mlx4_core", "mlx5_core"];
/// Drivers that DPDK takes a device from (doc/guides/linux_gsg/linux_drivers.rst of DPDK 22.11).
const USER_SPACE: [&str; 3] = [pci::VFIO, "uio_pci_generic", "igb_uio"];
/// An interface takes part in a bridge, a bond or a switch.
const MASTER: &str = "master";
/// Scope of addresses that every interface has on its own link (`IPV6_ADDR_LINKLOCAL`, column 4 of /proc/net/if_inet6).
const OF_LINK: &str = "20";

/// A port of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// As the user named it.
    pub name: String,
    /// How DPDK opens it.
    way: Way,
    /// CPUs of its node, where the machine has several.
    near: Option<CpuSet>,
}

/// How DPDK opens a port.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// By its PCI address; `driver`: the kernel's, from which it has to be taken.
    Pci { address: String, driver: Option<String>, is_taken: bool },
    /// Through a packet socket.
    Socket,
}

impl Card {
    /// The port that the user calls `name`.
    ///
    /// # Errors
    /// If it is not there, is no port of a network card, or is used by this host.
    pub fn find(name: &str, host: &Host) -> Result<Self, Error> {
        let refuse = |why: String| Error::Absent(format!("--nic {name}: {why}"));
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(refuse("that is neither an interface nor a PCI address".to_owned()));
        }
        let devices = host.sys.join("bus/pci/devices");
        let interface = host.sys.join("class/net").join(name);
        let address = match interface.exists() {
            true => pci_address(&interface),
            false if devices.join(name).exists() => Some(name.to_owned()),
            false => {
                let others = interfaces(&host.sys).join(", ");
                return Err(refuse(format!("there is no such interface or PCI address; interfaces here: {others}")));
            }
        };
        let Some(address) = address else {
            free(name, host).map_err(refuse)?;
            return Ok(Self { name: name.to_owned(), way: Way::Socket, near: None });
        };
        let device = devices.join(&address);
        if !line(&device.join("class")).starts_with(NETWORK) {
            return Err(refuse(format!("{address} is no network card")));
        }
        for interface in names(&device.join("net")) {
            free(&interface, host).map_err(refuse)?;
        }
        let driver = std::fs::read_link(device.join("driver")).ok();
        let driver = driver.and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned()));
        let is_taken = driver.as_deref().is_none_or(|driver| ![&SHARING[..], &USER_SPACE].concat().contains(&driver));
        if is_taken && !device.join("iommu_group").exists() {
            return Err(refuse(format!(
                "{address} is in no IOMMU group, so vfio-pci cannot give it to DPDK: boot with intel_iommu=on or amd_iommu=on, or bind it to \
                 uio_pci_generic yourself"
            )));
        }
        let near = CpuSet::parse(&line(&device.join("local_cpulist"))).filter(|near| near.iter().next().is_some());
        Ok(Self { name: name.to_owned(), way: Way::Pci { address, driver, is_taken }, near })
    }

    /// CPUs of its node.
    pub(super) fn near(&self) -> Option<&CpuSet> {
        self.near.as_ref()
    }

    /// Takes it from the kernel's driver, where DPDK needs that; the journal gives it back.
    pub(super) fn take(&self, host: &Host, entry: &mut Entry) -> Result<(), Error> {
        let Way::Pci { address, driver, is_taken: true } = &self.way else { return Ok(()) };
        let bound = PciDriver { address: address.clone(), driver: driver.clone() };
        entry.intend(Step::PciDriver(bound.clone()))?;
        bound.give_to_vfio(&host.sys)
    }

    /// What the environment abstraction layer of DPDK has to be told of it: `-a 0000:3b:00.0`.
    pub(super) fn allowed(&self) -> Option<String> {
        match &self.way {
            Way::Pci { address, .. } => Some(format!("-a {address}")),
            Way::Socket => None,
        }
    }

    /// What opens it as port `index` of the switch (`dpdk-devargs` of ovs-vswitchd.conf.db(5)).
    pub(super) fn devargs(&self, index: u32) -> String {
        match &self.way {
            Way::Pci { address, .. } => address.clone(),
            Way::Socket => format!("net_af_packet{index},iface={}", self.name),
        }
    }

    /// For the environment of a recording.
    pub(super) fn words(&self) -> String {
        let Self { name, .. } = self;
        match &self.way {
            Way::Pci { address, driver: Some(driver), is_taken: true } => {
                format!("{name}, PCI {address}, taken from {driver}")
            }
            Way::Pci { address, driver: Some(driver), .. } => format!("{name}, PCI {address}, driver {driver}"),
            Way::Pci { address, driver: None, .. } => format!("{name}, PCI {address}, without a driver before"),
            Way::Socket => format!("{name}, through a packet socket"),
        }
    }
}

/// Refuses an interface that this host uses itself.
fn free(interface: &str, host: &Host) -> Result<(), String> {
    if let Ok(master) = std::fs::read_link(host.sys.join("class/net").join(interface).join(MASTER)) {
        let master = master.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(format!("{interface} is part of {master}; take it out of that first"));
    }
    let table = |name: &str| std::fs::read_to_string(host.proc.join("self/net").join(name)).unwrap_or_default();
    // The first column of /proc/net/route names the interface, the last one of /proc/net/if_inet6.
    let routes = table("route").lines().any(|line| line.split_whitespace().next() == Some(interface));
    let addresses = table("if_inet6").lines().any(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns.get(5) == Some(&interface) && columns.get(3) != Some(&OF_LINK)
    });
    if routes || addresses {
        return Err(format!(
            "this host uses {interface} itself, and would lose it: name a port without addresses and routes (ip addr flush dev {interface}, \
             if you reach this host another way)"
        ));
    }
    Ok(())
}

/// The address of the PCI device behind an interface.
fn pci_address(interface: &Path) -> Option<String> {
    let device = std::fs::canonicalize(interface.join("device")).ok()?;
    let subsystem = std::fs::read_link(device.join("subsystem")).ok()?;
    (subsystem.file_name()? == "pci").then(|| Some(device.file_name()?.to_str()?.to_owned()))?
}

fn interfaces(sys: &Path) -> Vec<String> {
    names(&sys.join("class/net"))
}

fn names(directory: &PathBuf) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn line(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests;
