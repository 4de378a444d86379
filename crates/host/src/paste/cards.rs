//! What cards and taps carried and dropped since they were made: `ip -s link`, `ifconfig` of both forms, `virsh domifstat`.
//!
//! ```text
//! 22: tap104i0: <BROADCAST,UP> mtu 1500          vnet0: flags=4163<UP>  mtu 1500            vnet0 rx_packets 8112044
//!     RX:  bytes packets errors dropped ..               RX packets 81  bytes 912 (912 B)    vnet0 rx_drop 402113
//!     9120411204 8112044      0       0 ..               RX errors 0  dropped 0 ..
//! ```
//! Sources: ip-link(8) of iproute2 6.1, ifconfig(8) of net-tools 2.10, virsh(1) (domifstat, as the guest sees them); drivers/net/tun.c
//! (`tun_net_xmit`), Linux 6.12: what a tap drops on its way out was for the guest.

use super::{Pasted, Text};
use base::number::{percent, thousands};

/// What one of them counted.
#[derive(Default)]
struct Card {
    name: String,
    /// Packets and drops on the way in, then on the way out, as the host sees them.
    ways: [(Option<u64>, Option<u64>); 2],
}

impl Card {
    fn is_tap(&self) -> bool {
        ["vnet", "tap", "vhost"].iter().any(|kind| self.name.starts_with(kind))
    }

    /// Tells it, and a sentence where it dropped packets; false where nothing was counted.
    fn tell(&self, place: String, pasted: &mut Pasted) -> bool {
        let mut told: Vec<String> = Vec::new();
        for ((packets, dropped), way) in self.ways.iter().zip(["in", "out"]) {
            told.extend(packets.map(|packets| format!("{} packets {way}", thousands(packets))));
            told.extend(dropped.map(|dropped| format!("{} dropped", thousands(dropped))));
        }
        if told.is_empty() {
            return false;
        }
        pasted.quote("network card", &self.name, &told.join(", "), place.clone());
        for ((packets, dropped), way) in self.ways.iter().zip(["in", "out"]) {
            let Some(dropped) = dropped.filter(|dropped| *dropped > 0) else { continue };
            let whose = match (way, self.is_tap()) {
                ("out", true) => "on the way to its guest, whose queue was full or which nobody read",
                ("out", false) => "on the way out",
                _ => "on the way in",
            };
            let share = packets.map_or(String::new(), |packets| {
                let all = packets.saturating_add(dropped).max(1);
                format!(", beside {} that came through ({})", thousands(packets), percent(dropped as f64 / all as f64))
            });
            let said =
                format!("{} dropped {} packets {whose}{share}, since it was made.", self.name, thousands(dropped));
            pasted.summarize(said, place.clone());
        }
        true
    }
}

/// `22: tap104i0: <..> mtu 1500 ..` and the lines below it.
pub(super) fn ip(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let of_head = |line: &str| -> Option<String> {
        let (number, rest) = line.split_once(": ")?;
        let (name, rest) = rest.split_once(": ")?;
        number.parse::<u32>().ok().filter(|_| rest.starts_with('<') && rest.contains(" mtu "))?;
        Some(name.split('@').next()?.to_owned())
    };
    let Some(name) = of_head(text.at(at)) else { return 0 };
    let mut card = Card { name, ..Card::default() };
    let mut end = at + 1;
    while text.lines.get(end).is_some_and(|line| line.starts_with([' ', '\t']) && of_head(line.trim()).is_none()) {
        let names: Vec<&str> = text.at(end).split_whitespace().collect();
        let values: Vec<&str> = text.at(end + 1).split_whitespace().collect();
        let way = ["RX:", "TX:"].iter().position(|way| names.first() == Some(way) && names.get(1) == Some(&"bytes"));
        if let Some(way) = way {
            let value = |name: &str| {
                let column = names.iter().position(|known| *known == name)?;
                values.get(column - 1)?.parse::<u64>().ok()
            };
            card.ways[way] = (value("packets"), value("dropped"));
            end += 1;
        }
        end += 1;
    }
    // A list without `-s` has names, and counts nothing.
    card.tell(text.place(at), pasted);
    end - at
}

/// `vnet0: flags=4163<UP>  mtu 1500` or `vnet0     Link encap:Ethernet ..`, and the lines below it.
pub(super) fn ifconfig(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let head = text.at(at);
    let name = head.split_once(": flags=").or_else(|| head.split_once(" Link encap:")).map(|(name, _)| name.trim());
    let Some(name) = name.filter(|name| !name.contains(' ')) else { return 0 };
    let mut card = Card { name: name.to_owned(), ..Card::default() };
    let mut end = at + 1;
    while text.lines.get(end).is_some_and(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty()) {
        let line = text.at(end).replace(':', " ");
        let words: Vec<&str> = line.split_whitespace().collect();
        let behind = |name: &str| {
            words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1)?.parse::<u64>().ok())
        };
        if let Some(way) = ["RX", "TX"].iter().position(|way| words.first() == Some(way)) {
            let (packets, dropped) = &mut card.ways[way];
            (*packets, *dropped) = (packets.or(behind("packets")), dropped.or(behind("dropped")));
        }
        end += 1;
    }
    card.tell(text.place(at), pasted);
    end - at
}

/// `vnet0 rx_packets 8112044`: as the guest sees them, so that what it receives goes out of the host's tap.
pub(super) fn domifstat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let of = |line: usize| -> Option<(&str, &str, u64)> {
        let [name, counter, value] = text.at(line).split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let known = ["bytes", "packets", "errs", "drop"];
        let is_known =
            ["rx_", "tx_"].iter().any(|way| counter.strip_prefix(way).is_some_and(|what| known.contains(&what)));
        Some((name, counter, value.parse().ok()?)).filter(|_| is_known)
    };
    let Some((name, ..)) = of(at) else { return 0 };
    let mut card = Card { name: name.to_owned(), ..Card::default() };
    let mut end = at;
    while let Some((_, counter, value)) = of(end).filter(|(of, ..)| *of == name) {
        match counter {
            "rx_packets" => card.ways[1].0 = Some(value),
            "rx_drop" => card.ways[1].1 = Some(value),
            "tx_packets" => card.ways[0].0 = Some(value),
            "tx_drop" => card.ways[0].1 = Some(value),
            _ => {}
        }
        end += 1;
    }
    if card.tell(text.place(at), pasted) { end - at } else { 0 }
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn every_form_tells_what_a_tap_could_not_hand_to_its_guest() {
        let ip = "22: tap1i0: <UP> mtu 1500 qdisc fq\n    link/ether 6a:11 brd ff:ff\n    RX:  bytes packets errors dropped  missed   mcast\n    912 81 0 0 0 0\n    TX: bytes  packets  errors  dropped carrier collsns\n    81204 300 0 100 0 0\n";
        let new = "tap1i0: flags=4419<UP>  mtu 1500\n        RX packets 81  bytes 912 (912.0 B)\n        RX errors 0  dropped 0  overruns 0  frame 0\n        TX packets 300  bytes 81204 (79.3 KiB)\n        TX errors 0  dropped 100 overruns 0  carrier 0  collisions 0\n";
        let old = "tap1i0    Link encap:Ethernet  HWaddr 6a:11\n          RX packets:81 errors:0 dropped:0 overruns:0 frame:0\n          TX packets:300 errors:0 dropped:100 overruns:0 carrier:0\n";
        let virsh = "tap1i0 rx_bytes 81204\ntap1i0 rx_packets 300\ntap1i0 rx_errs 0\ntap1i0 rx_drop 100\ntap1i0 tx_packets 81\ntap1i0 tx_drop 0\n";
        for text in [ip, new, old, virsh] {
            let machine = read(&[("t".to_owned(), text.to_owned())]);
            assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
            let said: Vec<&str> = machine.summaries.iter().map(|said| said.value.as_str()).collect();
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with("tap1i0 dropped 100 packets on the way to its guest, whose queue"), "{said:?}");
            assert!(said[0].contains("beside 300 that came through (25.0 %)"), "{said:?}");
        }
    }
}
