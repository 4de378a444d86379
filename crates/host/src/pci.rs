//! Network cards on PCIe: what their links were negotiated to, and how large their payloads may be.
//!
//! The smallest payload of all bridges up to the root is what counts, and the slowest link on that way. Payloads stand in the
//! configuration space behind its first 64 bytes, which root alone may read: without it they are unknown.
//! Files: Documentation/ABI/testing/sysfs-bus-pci, Linux 6.12; registers: PCI Express Base Specification 3.0, 7.8.

use crate::Snapshot;

const DEVICES: &str = "sys/bus/pci/devices";

/// Class of a network controller, the upper byte (PCI Code and ID Assignment Specification 1.11).
const NETWORK: &str = "0x02";

/// A card, or one of its ports: a physical function.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkCard {
    /// `0000:3b:00.0`.
    pub address: String,
    pub interfaces: Vec<String>,
    /// Its vendor and its device, as PCI numbers them.
    pub ids: (u16, u16),
    /// Bits a second of its port, where it has a link.
    pub line_bits_per_s: Option<f64>,
    /// Generation and lanes, the slowest link on its way to the root.
    pub link: Option<(u8, u8)>,
    /// Largest payload, the smallest on that way.
    pub mps_bytes: Option<u32>,
    /// Largest read request of its own.
    pub mrrs_bytes: Option<u32>,
    /// Its NUMA node.
    pub node: Option<u32>,
}

/// All physical functions of network cards, by their addresses.
pub fn network_cards(snapshot: &Snapshot) -> Vec<NetworkCard> {
    let is_card = |address: &String| {
        let of = |file: &str| format!("{DEVICES}/{address}/{file}");
        let is_network = snapshot.line(&of("class")).is_some_and(|class| class.starts_with(NETWORK));
        is_network && snapshot.link(&of("physfn")).is_none()
    };
    snapshot.entries(DEVICES).into_iter().filter(is_card).filter_map(|address| card(snapshot, address)).collect()
}

fn card(snapshot: &Snapshot, address: String) -> Option<NetworkCard> {
    let line = |file: &str| snapshot.line(&format!("{DEVICES}/{address}/{file}"));
    let id = |file: &str| u16::from_str_radix(line(file)?.trim_start_matches("0x"), 16).ok();
    let way = way(snapshot, &address);
    let interfaces: Vec<String> = snapshot
        .entries("sys/class/net")
        .into_iter()
        .filter(|name| {
            let device = snapshot.link(&format!("sys/class/net/{name}/device"));
            device.is_some_and(|device| device.rsplit('/').next() == Some(address.as_str()))
        })
        .collect();
    let speed = |name: &String| snapshot.line(&format!("sys/class/net/{name}/speed"))?.parse::<f64>().ok();
    let slower = |a: (u8, u8), b: (u8, u8)| if bits(b) < bits(a) { b } else { a };
    let control = device_control(snapshot, &address);
    let payloads = way.iter().filter_map(|address| device_control(snapshot, address)).map(|(mps, _)| mps);
    Some(NetworkCard {
        ids: (id("vendor")?, id("device")?),
        // A link that is down says -1.
        line_bits_per_s: interfaces.iter().filter_map(speed).find(|mbps| *mbps > 0.0).map(|mbps| mbps * 1e6),
        link: way.iter().filter_map(|address| link(snapshot, address)).reduce(slower),
        mps_bytes: control.and_then(|_| payloads.min()),
        mrrs_bytes: control.map(|(_, mrrs)| mrrs),
        node: line("numa_node").and_then(|node| node.parse().ok()),
        interfaces,
        address,
    })
}

/// The card and the bridges above it, as far as they are known: the parts of the link that are addresses.
fn way(snapshot: &Snapshot, address: &str) -> Vec<String> {
    let target = snapshot.link(&format!("{DEVICES}/{address}")).unwrap_or_default();
    let mut way: Vec<String> = target.split('/').filter(|part| is_address(part)).map(str::to_owned).collect();
    if way.last().map(String::as_str) != Some(address) {
        way.push(address.to_owned());
    }
    way
}

/// `0000:3b:00.0`.
fn is_address(part: &str) -> bool {
    part.matches(':').count() == 2
        && part.contains('.')
        && part.chars().all(|c| c.is_ascii_hexdigit() || ":.".contains(c))
}

/// Generation and lanes, from `8.0 GT/s PCIe` and `8`. A link that is down, or none, has no lanes.
fn link(snapshot: &Snapshot, address: &str) -> Option<(u8, u8)> {
    let line = |file: &str| snapshot.line(&format!("{DEVICES}/{address}/{file}"));
    let speed = line("current_link_speed")?;
    let generation = match speed.split(' ').next()? {
        "2.5" => 1,
        "5.0" | "5" => 2,
        "8.0" | "8" => 3,
        "16.0" | "16" => 4,
        "32.0" | "32" => 5,
        "64.0" | "64" => 6,
        _ => return None,
    };
    let lanes: u8 = line("current_link_width")?.parse().ok()?;
    [1, 2, 4, 8, 12, 16, 32].contains(&lanes).then_some((generation, lanes))
}

/// To compare links with: each generation has twice the transfers of the one before, the third more for its encoding.
fn bits((generation, lanes): (u8, u8)) -> u32 {
    let of_lane = [0, 20, 40, 79, 158, 315, 605];
    of_lane.get(usize::from(generation)).copied().unwrap_or(0) * u32::from(lanes)
}

/// Largest payload and largest read request, from the PCI Express capability of the configuration space.
fn device_control(snapshot: &Snapshot, address: &str) -> Option<(u32, u32)> {
    const SPACE_BYTES: u64 = 256;
    const FIRST_CAPABILITY: usize = 0x34;
    const PCI_EXPRESS: u8 = 0x10;
    const DEVICE_CONTROL: usize = 8;
    /// As many as fit behind the header.
    const MOST_CAPABILITIES: usize = 48;
    let space = snapshot.bytes(&format!("{DEVICES}/{address}/config"), SPACE_BYTES).ok()?;
    let mut at = usize::from(*space.get(FIRST_CAPABILITY)?);
    for _ in 0..MOST_CAPABILITIES {
        match *space.get(at).filter(|_| at > 0)? {
            PCI_EXPRESS => return of_control(space.get(at + DEVICE_CONTROL..at + DEVICE_CONTROL + 2)?),
            _ => at = usize::from(*space.get(at + 1)?),
        }
    }
    None
}

/// 7.8.4: 128 bytes, doubled so many times; 6 and 7 are reserved.
fn of_control(register: &[u8]) -> Option<(u32, u32)> {
    let control = u16::from_le_bytes(register.try_into().ok()?);
    let bytes = |doubled: u16| (doubled <= 5).then(|| 128_u32 << doubled);
    Some((bytes(control >> 5 & 7)?, bytes(control >> 12 & 7)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn write(root: &Path, file: &str, bytes: &[u8]) {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// A configuration space with a power capability before that of PCI Express.
    fn space(payload: u16, request: u16) -> Vec<u8> {
        let mut space = vec![0_u8; 256];
        (space[0x34], space[0x40], space[0x41]) = (0x40, 0x01, 0x70);
        space[0x70] = 0x10;
        space[0x78..0x7a].copy_from_slice(&(payload << 5 | request << 12 | 0x10).to_le_bytes());
        space
    }

    fn device(root: &Path, address: &str, files: &[(&str, &str)], config: &[u8]) {
        files.iter().for_each(|(file, text)| write(root, &format!("{DEVICES}/{address}/{file}"), text.as_bytes()));
        write(root, &format!("{DEVICES}/{address}/config"), config);
    }

    #[test]
    fn the_narrowest_link_and_the_smallest_payload_up_to_the_root_count() {
        let root = tempfile::tempdir().unwrap();
        let card = [
            ("class", "0x020000\n"),
            ("vendor", "0x8086\n"),
            ("device", "0x1583\n"),
            ("numa_node", "1\n"),
            ("current_link_speed", "8.0 GT/s PCIe\n"),
            ("current_link_width", "8\n"),
        ];
        device(root.path(), "0000:3b:00.0", &card, &space(1, 2));
        let bridge =
            [("class", "0x060400\n"), ("current_link_speed", "8.0 GT/s PCIe\n"), ("current_link_width", "4\n")];
        device(root.path(), "0000:3a:00.0", &bridge, &space(0, 5));
        write(root.path(), "sys/class/net/ens1f0/speed", b"40000\n");
        let links = r#"{"sys/bus/pci/devices/0000:3b:00.0": "../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0",
            "sys/class/net/ens1f0/device": "../../../0000:3b:00.0"}"#;
        write(root.path(), "links.json", links.as_bytes());
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        let cards = network_cards(&Snapshot::open(root.path()).unwrap());
        let expected = NetworkCard {
            address: "0000:3b:00.0".into(),
            interfaces: vec!["ens1f0".into()],
            ids: (0x8086, 0x1583),
            line_bits_per_s: Some(40e9),
            link: Some((3, 4)),
            mps_bytes: Some(128),
            mrrs_bytes: Some(512),
            node: Some(1),
        };
        assert_eq!(cards, [expected]);
        // What only root may read is not there.
        device(root.path(), "0000:3b:00.0", &card, &space(1, 2)[..64]);
        let cards = network_cards(&Snapshot::open(root.path()).unwrap());
        assert_eq!((cards[0].mps_bytes, cards[0].mrrs_bytes), (None, None));
    }

    #[test]
    fn a_damaged_space_says_nothing() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        let mut circle = space(1, 2);
        (circle[0x34], circle[0x40], circle[0x41]) = (0x40, 0x01, 0x40);
        for config in [&circle[..], &[0xff; 256], &[0x40; 65], &[]] {
            device(root.path(), "0000:01:00.0", &[], config);
            assert_eq!(device_control(&Snapshot::open(root.path()).unwrap(), "0000:01:00.0"), None);
        }
    }
}
