//! Counters of Open vSwitch's ports: `ovs-ofctl -O OpenFlow14 dump-ports`, `ovs-vsctl get interface NAME statistics`.
//!
//! Both print `name=number`, and what a port does not count is `?` or not there (vhost ports count no `rx pkts` before 3.2).
//! Which counters there are depends on the port and on the version, so that they keep their names. Formats:
//! `ofputil_format_port_stats` of lib/ofp-port.c, Open vSwitch 3.1; ovs-vsctl(8).

use super::{MOST, number};
use std::collections::BTreeMap;

/// Counters by their names. Those of lines that begin with `rx` or `tx` have it in front: `rx pkts`.
pub type Counters = BTreeMap<String, u64>;

/// Counters of one port are some eighty.
const MOST_COUNTERS: usize = 4_096;

/// The counters of each port, by number or name, as `dump-ports` prints them.
pub fn read(text: &str) -> BTreeMap<String, Counters> {
    let mut ports: BTreeMap<String, Counters> = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        let line = line.trim();
        let (named, rest) = match line.strip_prefix("port ").and_then(|port| port.split_once(':')) {
            Some((name, rest)) => (Some(name.trim().trim_matches('"').to_owned()), rest.trim()),
            None => (None, line),
        };
        if let Some(name) = named {
            current = Some(name).filter(|name| ports.len() < MOST || ports.contains_key(name));
        }
        let Some(name) = &current else { continue };
        let direction = ["rx ", "tx "].into_iter().find(|direction| rest.starts_with(direction)).unwrap_or_default();
        let counters = ports.entry(name.clone()).or_default();
        add(counters, direction, rest.strip_prefix(direction).unwrap_or(rest));
    }
    ports
}

/// The counters of one interface: `{ovs_tx_failure_drops=7, ovs_tx_retries=0}`.
pub fn of_interface(text: &str) -> Counters {
    let mut counters = Counters::new();
    add(&mut counters, "", text.trim().trim_start_matches('{').trim_end_matches('}'));
    counters
}

fn add(counters: &mut Counters, direction: &str, list: &str) {
    for item in list.split(',') {
        let Some((name, value)) = item.trim().split_once('=') else { continue };
        if let Some(value) = number(value).filter(|_| counters.len() < MOST_COUNTERS) {
            counters.insert(format!("{direction}{name}"), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ports_counters_keep_their_names_and_what_is_not_counted_is_missing() {
        let text = "OFPST_PORT reply (OF1.4) (xid=0x2): 2 ports\n  port  1: rx pkts=?, bytes=?, drop=0, errs=?\n\
            \x20          tx pkts=5, bytes=300, drop=?\n           duration=30.176s\n           CUSTOM Statistics\n\
            \x20                     ovs_tx_retries=0, ovs_tx_failure_drops=69472, \n                      rx_q0_good_packets=7,\n\
            \x20 port \"gen\": rx pkts=9, bytes=540\n";
        let ports = read(text);
        let one = &ports["1"];
        assert_eq!((one.get("rx pkts"), one["rx drop"], one["tx pkts"]), (None, 0, 5));
        assert_eq!((one["ovs_tx_failure_drops"], one["rx_q0_good_packets"], ports["gen"]["rx pkts"]), (69_472, 7, 9));
        assert_eq!(
            of_interface("{ovs_tx_failure_drops=96175644, ovs_tx_retries=1}\n")["ovs_tx_failure_drops"],
            96_175_644
        );
        assert!(of_interface("{}").is_empty() && read("x=5\n").is_empty());
    }
}
