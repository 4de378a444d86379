//! Ports of programs that forward packets or make them: DPDK's l2fwd, Pktgen, Contrail's vRouter, and testpmd's extended counters.
//!
//! ```text
//! Statistics for port 0 ------------------------------      vif0/7      PMD: tap49823e4f-1b
//! Packets sent:                 41203877                                RX port   packets:1019377032 errors:0
//! Packets dropped:              15330214                                RX queue  packets:166893433 errors:852483430
//! ```
//! In: what was printed, once or over and over. Out: each port as it stood last; what a program does not count is missing. Sources:
//! `print_stats` of examples/l2fwd/main.c and `nic_xstats_display` of app/test-pmd/config.c, DPDK 22.11; app/pktgen-stats.c, Pktgen
//! 22.07; `vr_interface_print_stats` of utils/vif.c, tf-vrouter R2011.

use super::{MOST, number};
use std::collections::BTreeMap;

/// What one port carried, and where it lost packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Port {
    pub program: &'static str,
    pub name: String,
    pub received: Option<u64>,
    pub sent: Option<u64>,
    /// Packets a second, when they were shown.
    pub rx_pps: Option<u64>,
    pub tx_pps: Option<u64>,
    /// Places where packets were lost.
    pub losses: Vec<Loss>,
    /// Whether any of its counters would tell of a loss: what has none is not clean.
    pub counts_losses: bool,
}

/// Packets that were lost at one place of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// In words that go behind a number.
    pub place: String,
    pub packets: u64,
    /// They came in; else they were on the way out.
    is_in: bool,
}

impl Port {
    fn of(program: &'static str, name: String) -> Self {
        Self { program, name, ..Self::default() }
    }

    /// Takes what a counter of losses has; a missing one says nothing.
    fn lose(&mut self, is_in: bool, place: &str, packets: Option<u64>) {
        let Some(packets) = packets else { return };
        self.counts_losses = true;
        if packets > 0 {
            self.losses.push(Loss { place: place.to_owned(), packets, is_in });
        }
    }

    /// Where it lost most, and which share of the packets of that direction; what came in counts those that were lost there.
    pub fn worst(&self) -> Option<(&Loss, Option<f64>)> {
        let worst = self.losses.iter().max_by_key(|loss| loss.packets)?;
        let passed = if worst.is_in { self.received } else { self.sent };
        let share = passed.map(|passed| worst.packets as f64 / passed.saturating_add(worst.packets).max(1) as f64);
        Some((worst, share))
    }
}

/// Every port of every program, in the order of their names.
pub fn read(text: &str) -> Vec<Port> {
    let mut found: BTreeMap<(&'static str, usize, String), Port> = BTreeMap::new();
    for port in l2fwd(text).into_iter().chain(vrouter(text)).chain(xstats(text)) {
        found.insert((port.program, port.name.len(), port.name.clone()), port);
    }
    // A page of Pktgen is a run of its own: one sends, another receives.
    found.into_values().chain(pktgen(text)).take(MOST).collect()
}

/// The number behind `name:` on a line that begins so.
fn after(line: &str, name: &str) -> Option<u64> {
    number(line.trim_start().strip_prefix(name)?.strip_prefix(':')?)
}

fn l2fwd(text: &str) -> Vec<Port> {
    let mut ports: Vec<Port> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let bare = line.trim();
        if let Some(port) = bare.strip_prefix("Statistics for port ").filter(|rest| rest.contains(" ---")) {
            is_open = ports.len() < MOST;
            if let (true, Some(port)) = (is_open, number(port)) {
                ports.push(Port::of("l2fwd", format!("port {port}")));
            }
        } else if bare.starts_with("Aggregate statistics ===") {
            is_open = false;
        }
        let Some(port) = ports.last_mut().filter(|_| is_open) else { continue };
        port.sent = after(bare, "Packets sent").or(port.sent);
        port.received = after(bare, "Packets received").or(port.received);
        // What `rte_eth_tx_buffer` could not hand over to this port.
        port.lose(false, "were dropped on the way out: its ring took no more", after(bare, "Packets dropped"));
    }
    ports.retain(|port| port.sent.is_some() || port.received.is_some());
    ports
}

fn vrouter(text: &str) -> Vec<Port> {
    let mut ports: Vec<Port> = Vec::new();
    for line in text.lines() {
        let bare = line.trim();
        if let Some((name, rest)) = vif(bare) {
            if ports.len() == MOST {
                break;
            }
            let device = rest.split_whitespace().nth(1).unwrap_or_default();
            ports.push(Port::of("vRouter", format!("{name} {device}").trim().to_owned()));
            continue;
        }
        let Some(port) = ports.last_mut() else { continue };
        // `RX queue errors to lcore 0 0 209 0`
        if let Some(lcores) = bare.strip_prefix("RX queue errors to lcore ") {
            let each: Vec<u64> = lcores.split_whitespace().map_while(|word| word.parse().ok()).collect();
            let worst = each.iter().enumerate().max_by_key(|(_, lost)| **lost).filter(|(_, lost)| **lost > 0);
            if let (Some((lcore, _)), Some(last)) = (worst, port.losses.last_mut()) {
                last.place.push_str(&format!(", most of those for lcore {lcore}"));
            }
            continue;
        }
        let words: Vec<&str> = bare.split_whitespace().collect();
        let (direction, stage) = match words.as_slice() {
            [direction @ ("RX" | "TX"), stage @ ("device" | "port" | "queue"), ..] => (*direction, *stage),
            [direction @ ("RX" | "TX"), packets, ..] if packets.starts_with("packets:") => (*direction, ""),
            _ => continue,
        };
        let count = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok());
        let (packets, errors) = (count("packets:"), count("errors:"));
        match (direction, stage) {
            ("RX", "") => port.received = packets,
            ("TX", "") => port.sent = packets,
            _ => {}
        }
        let is_in = direction == "RX";
        match (direction, stage) {
            ("RX", "queue") => {
                port.lose(is_in, "were lost on the way to the forwarding core: its ring was full", errors)
            }
            ("TX", "queue") => port.lose(is_in, "were lost on the way to the sending core: its ring was full", errors),
            ("RX", _) => port.lose(is_in, "were lost as they came in", errors),
            (_, "port" | "device") => {
                port.lose(is_in, "could not be handed over to the port: its ring took no more", errors)
            }
            _ => port.lose(is_in, "could not be sent", errors),
        }
    }
    ports.retain(|port| port.sent.is_some() || port.received.is_some());
    ports
}

/// `vif0/7      PMD: tap49823e4f-1b`: the name and the rest.
fn vif(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(char::is_whitespace)?;
    let (router, index) = name.strip_prefix("vif")?.split_once('/')?;
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(router) && is_number(index) && rest.contains(':')).then_some((name, rest.trim()))
}

fn xstats(text: &str) -> Vec<Port> {
    const HEAD: &str = "NIC extended statistics for port ";
    let mut ports: Vec<Port> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let bare = line.trim();
        if let Some((_, port)) = bare.split_once(HEAD).filter(|_| bare.starts_with('#')) {
            is_open = ports.len() < MOST;
            if let (true, Some(port)) = (is_open, number(port)) {
                ports.push(Port::of("testpmd", format!("port {port}")));
            }
            continue;
        }
        let Some(port) = ports.last_mut().filter(|_| is_open) else { continue };
        port.received = after(bare, "rx_good_packets").or(port.received);
        port.sent = after(bare, "tx_good_packets").or(port.sent);
        for (name, is_in, place) in [
            (
                "rx_missed_errors",
                true,
                "were missed on the way in (rx_missed_errors): the program did not fetch them in time",
            ),
            ("rx_mbuf_allocation_errors", true, "found no buffer (rx_mbuf_allocation_errors)"),
            ("rx_errors", true, "were damaged (rx_errors)"),
            ("tx_errors", false, "could not be sent (tx_errors)"),
        ] {
            port.lose(is_in, place, after(bare, name));
        }
    }
    ports.retain(|port| port.sent.is_some() || port.received.is_some());
    ports
}

/// Pages of Pktgen, each with its ports in columns: a rate is printed behind the highest one before, `205442/158320`.
fn pktgen(text: &str) -> Vec<Port> {
    let (mut pages, mut page): (Vec<Vec<Port>>, usize) = (Vec::new(), 0);
    for line in text.lines() {
        let Some((label, rest)) = line.split_once(':') else { continue };
        let label = label.trim();
        if matches!(label, "Flags" | "Port") && rest.contains(':') {
            // `Flags:Port : P-------:0  P-------:1`, in newer versions `Port:Flags : 0:P-------  1:P-------`.
            let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            let parts: Vec<&str> = rest.split(':').skip(1).collect();
            let numbers = parts.iter().filter_map(|part| match label {
                "Flags" => part.split_whitespace().next(),
                _ => part.split_whitespace().next_back(),
            });
            let numbers: Vec<&str> = numbers.filter(is_number).collect();
            if numbers.is_empty() || pages.len() == MOST {
                continue;
            }
            page += 1;
            pages.push(numbers.iter().map(|number| Port::of("Pktgen", format!("port {number}"))).collect());
            continue;
        }
        let Some(ports) = pages.last_mut() else { continue };
        let words: Vec<&str> = label.split_whitespace().collect();
        let is_rate = label.starts_with("Pkts/s") || matches!(words.as_slice(), ["Max/Tx"] | ["Tx"]);
        let direction = match words.last() {
            Some(last) if last.ends_with("Rx") && is_rate => "rx",
            Some(last) if last.ends_with("Tx") && is_rate => "tx",
            _ => "",
        };
        let cells: Vec<&str> = rest.split_whitespace().collect();
        for (port, cell) in ports.iter_mut().zip(&cells) {
            let digits = |text: &str| text.replace(',', "").parse::<u64>().ok();
            // The highest rate stands first; the newest versions print the rate alone.
            let now = digits(cell.rsplit('/').next().unwrap_or(cell));
            match (direction, label) {
                ("rx", _) => port.rx_pps = now,
                ("tx", _) => port.tx_pps = now,
                (_, "Total Rx Pkts") => port.received = digits(cell),
                (_, "Tx Pkts" | "Total Tx Pkts") => port.sent = digits(cell),
                (_, "Errors Rx/Tx") => {
                    let (rx, tx) = cell.split_once('/').map_or((None, None), |(rx, tx)| (digits(rx), digits(tx)));
                    port.lose(true, "were counted as errors on the way in", rx);
                    port.lose(false, "could not be sent (errors)", tx);
                }
                _ => {}
            }
        }
    }
    let several = page > 1;
    let named = pages.into_iter().enumerate().flat_map(|(at, ports)| {
        ports.into_iter().map(move |port| match several {
            true => Port { name: format!("{} of page {}", port.name, at + 1), ..port },
            false => port,
        })
    });
    named.filter(|port| port.tx_pps.is_some() || port.rx_pps.is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(port: &Port) -> Option<(u64, Option<f64>)> {
        port.worst().map(|(loss, share)| (loss.packets, share))
    }

    #[test]
    fn l2fwd_drops_on_the_way_out() {
        let text = "Port statistics ====================================\nStatistics for port 0 ------------------------------\n\
                    Packets sent:                       75\nPackets received:                    9\nPackets dropped:                    25\n\
                    Statistics for port 1 ------------------------------\nPackets sent:                        9\nPackets received:                  100\n\
                    Packets dropped:                     0\nAggregate statistics ===============================\nTotal packets sent:                 84\n";
        let ports = read(text);
        assert_eq!((ports[0].sent, worst(&ports[0])), (Some(75), Some((25, Some(0.25)))));
        assert_eq!((ports[1].received, worst(&ports[1]), ports[1].counts_losses), (Some(100), None, true));
        assert_eq!(read(&format!("{text}{}", text.replace("75", "80")))[0].sent, Some(80), "the last screen counts");
    }

    #[test]
    fn vrouter_tells_which_core_was_full() {
        let text = "vif0/7      PMD: tap4-1b\n            RX port   packets:1000 errors:0 syscalls:2\n            RX queue  packets:100 errors:900\n\
                    \x20           RX queue errors to lcore 0 0 900 0\n            RX packets:100  bytes:5 errors:0\n            TX packets:8  bytes:5 errors:0\n            TX port   packets:6 errors:2\n";
        let port = &read(text)[0];
        assert_eq!((port.name.as_str(), port.received, port.sent), ("vif0/7 tap4-1b", Some(100), Some(8)));
        assert_eq!(worst(port), Some((900, Some(0.9))));
        assert!(port.losses[0].place.ends_with("most of those for lcore 2") && port.losses[1].packets == 2, "{port:?}");
    }

    #[test]
    fn pktgen_tells_the_rate_and_not_the_highest_one() {
        let text = "  Flags:Port      :   P--------------:0   P--------------:1\nPkts/s Max/Rx     :   3/1   200/150   203/151\n\
                    \x20      Max/Tx     :   205442/158320   0/0   205442/158320\nMBits/s Rx/Tx     :  0/168  9/0  9/168\nErrors Rx/Tx : 0/7 0/0\n\
                    Total Rx Pkts     :   24   99\n      Tx Pkts     :   2968220   0\n";
        let ports = read(text);
        assert_eq!((ports[0].tx_pps, ports[0].rx_pps, ports[1].rx_pps), (Some(158_320), Some(1), Some(150)));
        assert_eq!(
            (ports[0].sent, worst(&ports[0]).map(|(lost, _)| lost), ports[1].received),
            (Some(2_968_220), Some(7), Some(99))
        );
        let newer =
            read("  Port:Flags        : 0:P------      Single 1:P------   Single\nPkts/s Rx         :  7   8  15\n");
        assert_eq!((newer.len(), newer[1].name.as_str(), newer[1].rx_pps), (2, "port 1", Some(8)));
        let pages = read(&format!("{text}\n{text}"));
        assert_eq!((pages.len(), pages[2].name.as_str()), (4, "port 0 of page 2"));
    }

    #[test]
    fn extended_counters_tell_what_was_missed() {
        let text = "###### NIC extended statistics for port 0\nrx_good_packets: 300\nrx_missed_errors: 100\nrx_errors: 0\ntx_good_packets: 7\n";
        let port = &read(text)[0];
        assert_eq!((worst(port), port.sent), (Some((100, Some(0.25))), Some(7)));
        assert_eq!(read("Packets sent: 5\nrx_missed_errors: 100\n"), []);
    }
}
