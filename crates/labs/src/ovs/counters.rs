//! What each program counted of the packets of a trial, read while none is on its way.
//!
//! ```text
//! gen0 --flow--> v0 | good, failed --ring--> port 0 of testpmd --> port 1 | sent, dropped --ring--> v1 | good --flow--> v2 ...
//! ```
//! In: the switch and testpmd. Out: [`Counters`], which only grow: a trial is what was added.

use super::Watch;
use super::ports::{Wiring, into, out_of};
use super::switch::{DATAPATH, Switch};
use super::vnfs::Vnfs;
use host::polled::{flows, ports, testpmd::Testpmd};
use lab::Error;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long packets may be on their way: rings of 1024 at the slowest rate that any bed has shown, 30,000 a second.
const DRAINS: Duration = Duration::from_secs(10);
/// Between two looks that must agree.
const STILL_FOR: Duration = Duration::from_millis(150);

/// What was counted around one VNF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AroundVnf {
    /// The switch put them into the VNF's ring.
    pub(super) put: u64,
    /// The switch found no room there.
    pub(super) refused: u64,
    /// The VNF took them out.
    pub(super) taken: u64,
    /// The VNF sent them.
    pub(super) sent: u64,
    /// The VNF found no room in the ring behind it.
    pub(super) dropped: u64,
    pub(super) fetched: u64,
    /// They matched the flow of that port.
    pub(super) matched: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Generated {
    /// They matched its flow: they were offered.
    pub(super) flow: u64,
    /// Its policer refused them, where it has one: they were never offered.
    pub(super) policed: u64,
    pub(super) counted: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) generated: Vec<Generated>,
    /// By VNF.
    pub(super) vnfs: Vec<AroundVnf>,
}

/// Packets that matched the flows of each port.
pub(super) type ByPort = BTreeMap<String, u64>;

pub(super) fn by_port(switch: &mut Switch) -> Result<(ByPort, String), Error> {
    let text = switch.control.ask("dpctl/dump-flows", &["-m", DATAPATH])?;
    let mut counted = ByPort::new();
    for flow in flows::read(&text) {
        *counted.entry(flow.in_port).or_default() += flow.packets;
    }
    Ok((counted, text))
}

/// Waits until no packet moves and rings are empty, and reads everything; the text is what the programs printed. Where the
/// others of this machine leave testpmd no time to empty its rings, they are read as they are.
pub(super) fn when_still(
    switch: &mut Switch,
    vnfs: &mut Vnfs,
    wiring: Wiring,
    watch: &Watch<'_>,
) -> Result<(Counters, String), Error> {
    let begin = Instant::now();
    let (mut before, _) = read(switch, vnfs, wiring, watch)?;
    loop {
        watch.rest(STILL_FOR)?;
        let (now, text) = read(switch, vnfs, wiring, watch)?;
        if now == before && now.is_drained() || begin.elapsed() > DRAINS {
            return Ok((now, text));
        }
        before = now;
    }
}

/// Reads everything as it is, one program after the other.
pub(super) fn read(
    switch: &mut Switch,
    vnfs: &mut Vnfs,
    wiring: Wiring,
    watch: &Watch<'_>,
) -> Result<(Counters, String), Error> {
    let (flows, flow_text) = by_port(switch)?;
    let (forwarded, testpmd_text) = vnfs.statistics(watch)?;
    let port_text = switch.port_counters()?;
    let counters = Counters::of(wiring, &flows, &numbered(wiring, &ports::read(&port_text)), &forwarded);
    Ok((counters, [flow_text, testpmd_text].join("\n")))
}

/// Counters by the names of ports: the switch prints their numbers.
fn numbered(wiring: Wiring, ports: &BTreeMap<String, ports::Counters>) -> BTreeMap<String, ports::Counters> {
    let all = wiring.of_vnfs().chain(wiring.generators());
    all.filter_map(|(name, number)| {
        let counters = ports.get(&number.to_string()).or_else(|| ports.get(&name))?;
        Some((name, counters.clone()))
    })
    .collect()
}

impl Counters {
    fn of(wiring: Wiring, flows: &ByPort, ports: &BTreeMap<String, ports::Counters>, forwarded: &Testpmd) -> Self {
        let flow = |port: &str| flows.get(port).copied().unwrap_or(0);
        let port = |port: &str, name: &str| ports.get(port).and_then(|all| all.get(name)).copied().unwrap_or(0);
        let of_testpmd = |number: u32| forwarded.forwarded.get(&number).copied().unwrap_or_default();
        let of_generator = |name: &str| Generated {
            flow: flow(name),
            policed: port(name, "ovs_rx_qos_drops"),
            counted: port(name, "rx_q0_packets"),
        };
        let generated = wiring.generators().map(|(name, _)| of_generator(&name)).collect();
        let around = |vnf: u32| {
            let (inward, outward) = (of_testpmd(2 * vnf), of_testpmd(2 * vnf + 1));
            AroundVnf {
                put: port(&into(vnf), "tx_q0_good_packets"),
                refused: port(&into(vnf), "ovs_tx_failure_drops"),
                taken: inward.rx_packets.unwrap_or(0),
                sent: outward.tx_packets.unwrap_or(0),
                dropped: outward.tx_dropped.unwrap_or(0),
                fetched: port(&out_of(vnf), "rx_q0_good_packets"),
                matched: flow(&out_of(vnf)),
            }
        };
        Self { generated, vnfs: (0..wiring.vnfs).map(around).collect() }
    }

    /// True if no ring holds a packet. All counters of rings began at 0 when testpmd was started.
    fn is_drained(&self) -> bool {
        self.vnfs.iter().all(|vnf| vnf.put == vnf.taken && vnf.sent == vnf.fetched)
    }

    /// Packets that generators offered.
    pub(super) fn offered(&self) -> u64 {
        self.generated.iter().map(|generated| generated.flow).fold(0, u64::saturating_add)
    }

    /// Packets that were dropped at rings.
    pub(super) fn dropped(&self) -> u64 {
        self.vnfs.iter().map(|vnf| vnf.refused.saturating_add(vnf.dropped)).fold(0, u64::saturating_add)
    }

    /// What was added since `before`; a counter that went back was added to in no way that is known, and stays as it is, so
    /// that the books show it.
    pub(super) fn since(&self, before: &Self) -> Self {
        let added = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        let generated = self.generated.iter().zip(&before.generated);
        let vnfs = self.vnfs.iter().zip(&before.vnfs);
        Self {
            generated: generated
                .map(|(now, before)| Generated {
                    flow: added(now.flow, before.flow),
                    policed: added(now.policed, before.policed),
                    counted: added(now.counted, before.counted),
                })
                .collect(),
            vnfs: vnfs
                .map(|(now, before)| AroundVnf {
                    put: added(now.put, before.put),
                    refused: added(now.refused, before.refused),
                    taken: added(now.taken, before.taken),
                    sent: added(now.sent, before.sent),
                    dropped: added(now.dropped, before.dropped),
                    fetched: added(now.fetched, before.fetched),
                    matched: added(now.matched, before.matched),
                })
                .collect(),
        }
    }
}

/// Packets that matched the flows of all generators.
pub(super) fn sent(wiring: Wiring, flows: &ByPort) -> u64 {
    wiring.generators().filter_map(|(port, _)| flows.get(&port)).sum()
}

/// Packets that came out of the last VNF of each chain.
pub(super) fn received(wiring: Wiring, flows: &ByPort) -> u64 {
    let last = (0..wiring.vnfs).filter(|vnf| wiring.is_last(*vnf));
    last.filter_map(|vnf| flows.get(&out_of(vnf))).sum()
}

/// Packets that each VNF sent, as far as the switch took them.
pub(super) fn sent_by_vnfs(wiring: Wiring, flows: &ByPort) -> Vec<u64> {
    (0..wiring.vnfs).map(|vnf| flows.get(&out_of(vnf)).copied().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ports::Source;
    use super::*;
    use base::datapath::Traffic;

    #[test]
    fn all_generators_of_a_chain_send() {
        let flows = ByPort::from([("gen0".to_owned(), 985), ("gen1".to_owned(), 15), ("v1".to_owned(), 900)]);
        let wiring = |source| Wiring { pattern: Traffic::Chain, vnfs: 1, source };
        let counted = [Source::Paced, Source::Generators].map(|source| sent(wiring(source), &flows));
        assert_eq!(counted, [1_000, 985]);
        assert_eq!(received(wiring(Source::Paced), &flows), 900);
    }
}
