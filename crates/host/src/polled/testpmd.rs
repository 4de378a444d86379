//! testpmd: `show port stats all`, `show fwd stats all`, and the screens of `--stats-period`.
//!
//! In: what testpmd has printed so far. Out: the numbers of each port as they stood last. Formats: `nic_stats_display` of
//! app/test-pmd/config.c and `fwd_stats_display` of app/test-pmd/testpmd.c, DPDK 22.11.

use super::{MOST, number};
use std::collections::BTreeMap;

/// What all streams of a port, or of all ports, have forwarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forwarded {
    pub rx_packets: Option<u64>,
    /// Packets that were lost on the way in.
    pub rx_dropped: Option<u64>,
    pub tx_packets: Option<u64>,
    /// Packets that found no room where they were sent.
    pub tx_dropped: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortStatistics {
    pub rx_packets: Option<u64>,
    /// Packets that the port missed.
    pub rx_missed: Option<u64>,
    /// Their bytes, without FCS.
    pub(crate) rx_bytes: Option<u64>,
    /// Packets for which there was no buffer.
    pub rx_nombuf: Option<u64>,
    pub tx_packets: Option<u64>,
    /// Their bytes, without FCS.
    pub(crate) tx_bytes: Option<u64>,
    /// Packets that the port could not send.
    pub tx_errors: Option<u64>,
    /// Packets per second since they were shown before.
    pub rx_pps: Option<u64>,
    /// The same of packets that were sent.
    pub tx_pps: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Testpmd {
    /// What ports have forwarded, by number.
    pub forwarded: BTreeMap<u32, Forwarded>,
    pub all: Option<Forwarded>,
    pub ports: BTreeMap<u32, PortStatistics>,
    /// How many accounts of all ports together are whole.
    pub accounts: usize,
}

/// Which numbers the lines below a heading are.
enum Block {
    Forwarded(u32),
    All,
    Port(u32),
    None,
}

pub fn read(text: &str) -> Testpmd {
    let mut found = Testpmd::default();
    let mut block = Block::None;
    for line in text.lines() {
        let is_heading = line.contains(" statistics for ");
        let port = |sign: &str| {
            number(line.split_once(sign).filter(|_| is_heading)?.1).and_then(|port| u32::try_from(port).ok())
        };
        if let Some(port) = port("Forward statistics for port ") {
            block = if found.forwarded.len() < MOST { Block::Forwarded(port) } else { Block::None };
            found.forwarded.insert(port, Forwarded::default());
        } else if let Some(port) = port("NIC statistics for port ") {
            block = if found.ports.len() < MOST { Block::Port(port) } else { Block::None };
            found.ports.insert(port, PortStatistics::default());
        } else if is_heading && line.contains("Accumulated forward statistics for all ports") {
            block = Block::All;
            found.all = Some(Forwarded::default());
        } else if line.trim_start().starts_with("++++++") {
            found.accounts += usize::from(matches!(block, Block::All));
            block = Block::None;
        } else {
            match block {
                Block::Forwarded(port) => forwarded(line, found.forwarded.entry(port).or_default()),
                Block::All => forwarded(line, found.all.get_or_insert_default()),
                Block::Port(port) => counted(line, found.ports.entry(port).or_default()),
                Block::None => {}
            }
        }
    }
    found
}

fn forwarded(line: &str, into: &mut Forwarded) {
    for (name, value) in values(line) {
        match name {
            "RX-packets" => into.rx_packets = Some(value),
            "RX-dropped" => into.rx_dropped = Some(value),
            "TX-packets" => into.tx_packets = Some(value),
            "TX-dropped" => into.tx_dropped = Some(value),
            _ => {}
        }
    }
}

fn counted(line: &str, into: &mut PortStatistics) {
    for (name, value) in values(line) {
        match name {
            "RX-packets" => into.rx_packets = Some(value),
            "RX-missed" => into.rx_missed = Some(value),
            "RX-bytes" => into.rx_bytes = Some(value),
            "RX-nombuf" => into.rx_nombuf = Some(value),
            "TX-packets" => into.tx_packets = Some(value),
            "TX-bytes" => into.tx_bytes = Some(value),
            "TX-errors" => into.tx_errors = Some(value),
            "Rx-pps" => into.rx_pps = Some(value),
            "Tx-pps" => into.tx_pps = Some(value),
            _ => {}
        }
    }
}

/// `RX-packets: 5    RX-missed: 0`: names with their numbers.
fn values(line: &str) -> impl Iterator<Item = (&str, u64)> {
    let words = line.split_whitespace();
    words.clone().zip(words.skip(1)).filter_map(|(name, value)| Some((name.strip_suffix(':')?, value.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// testpmd of DPDK 22.11.
    const SAID: &str = "testpmd> show fwd stats all

  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 17310816       RX-dropped: 0             RX-total: 17310816
  TX-packets: 0              TX-dropped: 0             TX-total: 0
  ----------------------------------------------------------------------------

  ---------------------- Forward statistics for port 1  ----------------------
  RX-packets: 0              RX-dropped: 0             RX-total: 0
  TX-packets: 17294752       TX-dropped: 16064         TX-total: 17310816
  ----------------------------------------------------------------------------

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 17310816       RX-dropped: 0             RX-total: 17310816
  TX-packets: 17294752       TX-dropped: 16064         TX-total: 17310816
  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++
testpmd> show port stats all

  ######################## NIC statistics for port 0  ########################
  RX-packets: 17310816   RX-missed: 3          RX-bytes:  1038648960
  RX-errors: 0
  RX-nombuf:  2         
  TX-packets: 0          TX-errors: 0          TX-bytes:  0

  Throughput (since last show)
  Rx-pps:      3400000          Rx-bps:   1632000000
  Tx-pps:            0          Tx-bps:            0
  ############################################################################
";

    #[test]
    fn what_was_forwarded_and_what_ports_counted() {
        let found = read(SAID);
        let (first, second) = (found.forwarded[&0], found.forwarded[&1]);
        assert_eq!((first.rx_packets, first.tx_packets), (Some(17_310_816), Some(0)));
        assert_eq!((second.tx_packets, second.tx_dropped), (Some(17_294_752), Some(16_064)));
        assert_eq!((found.all.unwrap().tx_dropped, found.accounts), (Some(16_064), 1));
        let port = found.ports[&0];
        assert_eq!((port.rx_packets, port.rx_missed, port.rx_nombuf), (Some(17_310_816), Some(3), Some(2)));
        assert_eq!((port.rx_bytes, port.rx_pps, port.tx_pps), (Some(1_038_648_960), Some(3_400_000), Some(0)));
    }

    #[test]
    fn the_last_screen_counts_and_half_of_one_is_not_whole() {
        let again = SAID.replace("17310816", "20000000");
        let found = read(&format!("{SAID}\u{1b}[2J{again}"));
        assert_eq!((found.ports[&0].rx_packets, found.accounts), (Some(20_000_000), 2));
        let half = SAID.split_once("  ++++++++++++++++++").unwrap().0;
        assert_eq!(read(half.trim_end()).accounts, 0);
        assert_eq!(read(""), Testpmd::default());
    }
}
