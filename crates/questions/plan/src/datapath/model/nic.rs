//! What is known of network cards beyond their link and their PCIe: packets a second, and frames from one VF to another. The rows of
//! `nic.toml`, typed.

use facts::rows::rows;
use serde::Deserialize;
use std::sync::LazyLock;

/// A card, or a family of them.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    /// As people write it; compared without regard to case.
    pub model: &'static str,
    /// Most packets a second; `None` where nobody has published it.
    pub packets: Option<PacketLimit>,
    /// How it forwards from one of its VFs to another.
    #[serde(default)]
    pub(crate) hairpin: Hairpin,
    /// Bits a second of frames of a port while two are in use, where that is less than the line.
    pub(crate) port_of_two_bits_per_s: Option<f64>,
    /// Bits a second of its fastest port.
    pub line_bits_per_s: f64,
    /// Generation and lanes of PCIe that the card has; the slot may give less.
    pub pcie: (u8, u8),
    pub source: &'static str,
    /// Where its port and its PCIe stand.
    pub(crate) link_source: &'static str,
}

/// Most packets a second that a card takes in, and as many out.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketLimit {
    pub per_s: f64,
    /// Of the whole card, whatever its ports.
    #[serde(default)]
    pub(crate) is_of_device: bool,
    /// Only frames shorter than that meet it.
    pub(crate) below_bytes: Option<u32>,
}

base::named! {
    /// How a card forwards from one of its VFs to another.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Hairpin {
        /// Each such packet counts twice against its packets a second.
        CountsTwice = "counts-twice",
        /// No faster than one of its ports.
        PortSpeed = "port-speed",
        /// Nobody has published it.
        #[default]
        Unknown = "unknown",
    }
}

pub static NICS: LazyLock<Vec<Nic>> = LazyLock::new(|| rows(include_str!("nic.toml")));

/// Devices as PCI numbers them, and what the list calls them (pci.ids, 2024; drivers ixgbe, i40e, ice and mlx5_core, Linux 6.12).
const DEVICES: &[(u16, u16, &str)] = &[
    (INTEL, 0x10fb, "82599"),
    (INTEL, 0x154d, "X520"),
    (INTEL, 0x1572, "X710"),
    (INTEL, 0x1583, "XL710"),
    (INTEL, 0x1584, "XL710"),
    (INTEL, 0x158a, "XXV710"),
    (INTEL, 0x158b, "XXV710"),
    (INTEL, 0x1592, "E810-CQ"),
    (INTEL, 0x159b, "E810-XXV"),
    (MELLANOX, 0x1017, "ConnectX-5"),
    (MELLANOX, 0x1019, "ConnectX-5-Ex"),
    (MELLANOX, 0x101b, "ConnectX-6"),
    (MELLANOX, 0x101d, "ConnectX-6-Dx"),
    (MELLANOX, 0x1021, "ConnectX-7"),
];
const INTEL: u16 = 0x8086;
const MELLANOX: u16 = 0x15b3;

/// What the list calls a PCI device.
pub(crate) fn model_of((vendor, device): (u16, u16)) -> Option<&'static str> {
    DEVICES.iter().find(|(of, id, _)| (*of, *id) == (vendor, device)).map(|(_, _, model)| *model)
}

pub(crate) fn named(model: &str) -> Option<&'static Nic> {
    NICS.iter().find(|nic| nic.model.eq_ignore_ascii_case(model))
}

impl PacketLimit {
    /// The same of a card whose `ports` are in use.
    pub fn of_ports(&self, ports: u32) -> f64 {
        if self.is_of_device { self.per_s } else { self.per_s * f64::from(ports.max(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_has_its_sources_and_every_device_is_a_card_of_the_list() {
        assert!(NICS.iter().all(|nic| nic.source.len() > 10 && nic.link_source.len() > 10));
        assert!(DEVICES.iter().all(|(_, _, model)| named(model).is_some_and(|nic| nic.model == *model)));
        let port_of_two: Vec<_> = NICS.iter().filter(|nic| nic.port_of_two_bits_per_s.is_some()).collect();
        assert!(matches!(port_of_two[..], [nic] if nic.model == "XL710" && nic.hairpin == Hairpin::CountsTwice));
    }
}
