//! What is known of network cards beyond their link and their PCIe: packets a second, and frames from one VF to another.

/// A card, or a family of them.
#[derive(Debug, Clone, Copy)]
pub struct Nic {
    /// As people write it; compared without regard to case.
    pub model: &'static str,
    /// Most packets a second; `None` where nobody has published it.
    pub packets: Option<PacketLimit>,
    /// How it forwards from one of its VFs to another.
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketLimit {
    pub per_s: f64,
    /// Of the whole card, whatever its ports.
    pub(crate) is_of_device: bool,
    /// Only frames shorter than that meet it.
    pub(crate) below_bytes: Option<u32>,
}

/// How a card forwards from one of its VFs to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hairpin {
    /// Each such packet counts twice against its packets a second.
    CountsTwice,
    /// No faster than one of its ports.
    PortSpeed,
    /// Nobody has published it.
    Unknown,
}

const fn device(per_s: f64, below_bytes: u32) -> Option<PacketLimit> {
    Some(PacketLimit { per_s, is_of_device: true, below_bytes: Some(below_bytes) })
}

const fn port(per_s: f64) -> Option<PacketLimit> {
    Some(PacketLimit { per_s, is_of_device: false, below_bytes: None })
}

const fn card(
    model: &'static str,
    (line_bits_per_s, pcie, link_source): (f64, (u8, u8), &'static str),
    packets: Option<PacketLimit>,
    hairpin: Hairpin,
    source: &'static str,
) -> Nic {
    Nic { model, packets, hairpin, port_of_two_bits_per_s: None, line_bits_per_s, pcie, source, link_source }
}

const CSIT: &str = "FD.io CSIT, resources/libraries/python/Constants.py";

const DATA_SHEET_82599: &str = "Intel 331520, data sheet";
const DATA_SHEET_700: &str = "Intel 332464, data sheet";
const DATA_SHEET_E810: &str = "Intel 613875, data sheet";

pub const NICS: &[Nic] = &[
    card(
        "82599",
        (10e9, (2, 8), DATA_SHEET_82599),
        None,
        Hairpin::Unknown,
        "Intel forum 277795: some 20 Gb/s between VFs",
    ),
    card("X520", (10e9, (2, 8), DATA_SHEET_82599), port(14.88e6), Hairpin::Unknown, CSIT),
    card("X710", (10e9, (3, 8), DATA_SHEET_700), port(14.88e6), Hairpin::Unknown, CSIT),
    Nic {
        port_of_two_bits_per_s: Some(24.5e9),
        ..card(
            "XL710",
            (40e9, (3, 8), DATA_SHEET_700),
            device(37e6, 160),
            Hairpin::CountsTwice,
            "Intel 683749; FD.io CSIT, Constants.py; that a packet from VF to VF counts twice is fitted to the talk of \
             2017 (Kutch)",
        )
    },
    card("XXV710", (25e9, (3, 8), DATA_SHEET_700), port(18.75e6), Hairpin::Unknown, CSIT),
    card(
        "E810-CQ",
        (100e9, (4, 16), DATA_SHEET_E810),
        port(58.5e6),
        Hairpin::PortSpeed,
        "FD.io CSIT, Constants.py; Linux commit a59618b98543 (6.11), devlink local_forwarding",
    ),
];

/// Devices of Intel, as PCI numbers them, and what the list calls them (pci.ids, 2024; drivers ixgbe, i40e and ice, Linux 6.12).
const DEVICES: &[(u16, &str)] = &[
    (0x10fb, "82599"),
    (0x154d, "X520"),
    (0x1572, "X710"),
    (0x1583, "XL710"),
    (0x1584, "XL710"),
    (0x158a, "XXV710"),
    (0x158b, "XXV710"),
    (0x1592, "E810-CQ"),
];
const INTEL: u16 = 0x8086;

/// What the list calls a PCI device.
pub(crate) fn model_of((vendor, device): (u16, u16)) -> Option<&'static str> {
    DEVICES.iter().find(|(id, _)| vendor == INTEL && *id == device).map(|(_, model)| *model)
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
