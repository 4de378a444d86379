//! The tables of what Open vSwitch and testpmd printed.

use super::tables::MOST_ROWS;
use base::{Cell, Shown, Table, TableSpec, shown, table};
use facts::datapaths::Printed;
use host::polled::testpmd::PortStatistics;

pub(super) const PMDS: TableSpec = table! {
    datapath.pmds version 1: "Counters of one polling thread of Open vSwitch since they were cleared.";
    key machine, key file, key_u64("") cpu, count packets, f64("") cycles_per_packet, share busy_share,
    f64("") packets_per_batch, count emc_hits, count simple_match_hits, count smc_hits, count megaflow_hits,
    count upcalls, count lost_upcalls;
    shown![
        "Polling threads of Open vSwitch, as it prints them", MOST_ROWS;
        file, cpu: "CPU", packets, cycles_per_packet: "cycles each", busy_share: "busy",
        packets_per_batch: "per batch", upcalls, lost_upcalls: "lost",
    ]
};

pub(super) const QUEUES: TableSpec = table! {
    datapath.queues version 1:
    "One receive queue and the polling thread that serves it; its usage includes polling, and is missing until the switch has measured it.";
    key machine, key file, key_u64("") cpu, key port, key_u64("") queue, share usage_share;
    Shown {
        in_terminals: false,
        ..shown![
            "Receive queues and who serves them", MOST_ROWS;
            file, cpu: "CPU", port, queue, usage_share: "usage",
        ]
    }
};

pub(super) const FLOWS: TableSpec = table! {
    datapath.flows version 1: "Packets from one port for which the datapath had the same actions.";
    key machine, key file, key in_port, key actions, count packets;
};

pub(super) const PORTS: TableSpec = table! {
    datapath.ports version 1:
    "One port of testpmd, as it was shown last: what it received and sent, and what was lost there.";
    key machine, key file, key_u64("") port, count rx_packets, count rx_lost, count tx_packets, count tx_dropped,
    u64("") rx_pps, u64("") tx_pps;
    Shown {
        in_terminals: false,
        ..shown![
            "Ports of testpmd", MOST_ROWS;
            file, port, rx_packets: "received", rx_lost: "lost", tx_packets: "sent", tx_dropped: "dropped",
            rx_pps: "received/s", tx_pps: "sent/s",
        ]
    }
};

pub(super) const TRAFFIC: TableSpec = table! {
    datapath.traffic version 1:
    "One interval of a traffic generator, numbered from 0: packets since the run began, and of the interval what did not come back.";
    key machine, key file, key_u64("") interval, text at, count tx_packets, count rx_packets, i64("packets") dropped,
    share drop_share, f64("packets/s") tx_pps, f64("bit/s") tx_bits_per_s;
    shown![
        "What the traffic generator sent", MOST_ROWS;
        file, at, tx_packets: "sent", rx_packets: "came back", dropped: "lost", drop_share: "of those sent", tx_pps: "sent/s",
        tx_bits_per_s: "bit/s",
    ]
};

pub(super) const FORWARDERS: TableSpec = table! {
    datapath.forwarders version 1:
    "One port of l2fwd, Pktgen, vRouter or testpmd's extended counters, as it was shown last, and the place where it lost most.";
    key machine, key file, key program, key port, count received, count sent, u64("") rx_pps, u64("") tx_pps,
    count lost, share lost_share, text place;
    shown![
        "Ports, and where they lost packets", MOST_ROWS;
        file, program, port, received, sent, rx_pps: "received/s", tx_pps: "sent/s", lost: "most lost", lost_share: "of its direction",
    ]
};

/// What a port lost on the way in: what it missed, and what found no buffer.
fn lost(port: PortStatistics) -> Option<u64> {
    let all = [port.rx_missed, port.rx_nombuf];
    all.iter().any(Option::is_some).then(|| all.into_iter().flatten().fold(0, u64::saturating_add))
}

/// Tables [`PMDS`], [`QUEUES`], [`FLOWS`], [`PORTS`], [`TRAFFIC`] and [`FORWARDERS`], those that have rows.
pub(super) fn tables(all: &[Printed]) -> Vec<Table> {
    let (mut pmds, mut queues, mut flows, mut ports) =
        (Table::new(&PMDS), Table::new(&QUEUES), Table::new(&FLOWS), Table::new(&PORTS));
    let (mut traffic, mut forwarders) = (Table::new(&TRAFFIC), Table::new(&FORWARDERS));
    for text in all {
        let of = |text: &Printed| [Cell::from(text.machine.as_str()), text.path.as_str().into()];
        for pmd in text.pmds.iter().filter(|pmd| pmd.cpu.is_some()) {
            let rest: [Cell; 11] = [
                pmd.cpu.map(u64::from).into(),
                pmd.packets.into(),
                pmd.cycles_per_packet().into(),
                pmd.busy_share().into(),
                pmd.packets_per_batch.into(),
                pmd.emc_hits.into(),
                pmd.simple_match_hits.into(),
                pmd.smc_hits.into(),
                pmd.megaflow_hits.into(),
                pmd.upcalls.into(),
                pmd.lost_upcalls.into(),
            ];
            pmds.push(of(text).into_iter().chain(rest).collect());
        }
        for pmd in &text.queues {
            for queue in &pmd.queues {
                let rest: [Cell; 4] = [
                    u64::from(pmd.cpu).into(),
                    queue.port.as_str().into(),
                    u64::from(queue.queue).into(),
                    queue.usage.into(),
                ];
                queues.push(of(text).into_iter().chain(rest).collect());
            }
        }
        for flow in &text.flows {
            let rest: [Cell; 3] = [flow.in_port.as_str().into(), flow.actions.as_str().into(), flow.packets.into()];
            flows.push(of(text).into_iter().chain(rest).collect());
        }
        for (number, interval) in (0_u64..).zip(&text.traffic) {
            let rest: [Cell; 8] = [
                number.into(),
                interval.at.clone().into(),
                interval.tx_packets.into(),
                interval.rx_packets.into(),
                interval.dropped.map_or(Cell::Missing, Cell::I64),
                interval.drop_share.into(),
                interval.tx_pps.into(),
                interval.tx_bits_per_s.into(),
            ];
            traffic.push(of(text).into_iter().chain(rest).collect());
        }
        for port in &text.forwarders {
            let worst = port.worst();
            let rest: [Cell; 9] = [
                port.program.into(),
                port.name.as_str().into(),
                port.received.into(),
                port.sent.into(),
                port.rx_pps.into(),
                port.tx_pps.into(),
                worst.map(|(loss, _)| loss.packets).into(),
                worst.and_then(|(_, share)| share).into(),
                worst.map(|(loss, _)| loss.place.clone()).into(),
            ];
            forwarders.push(of(text).into_iter().chain(rest).collect());
        }
        let numbers: std::collections::BTreeSet<u32> =
            text.testpmd.ports.keys().chain(text.testpmd.forwarded.keys()).copied().collect();
        for number in numbers {
            let port = text.testpmd.ports.get(&number).copied().unwrap_or_default();
            let forwarded = text.testpmd.forwarded.get(&number).copied().unwrap_or_default();
            let rest: [Cell; 7] = [
                u64::from(number).into(),
                port.rx_packets.or(forwarded.rx_packets).into(),
                lost(port).or(forwarded.rx_dropped).into(),
                port.tx_packets.or(forwarded.tx_packets).into(),
                forwarded.tx_dropped.or(port.tx_errors).into(),
                port.rx_pps.into(),
                port.tx_pps.into(),
            ];
            ports.push(of(text).into_iter().chain(rest).collect());
        }
    }
    [traffic, pmds, queues, flows, ports, forwarders].into_iter().filter(|table| !table.rows.is_empty()).collect()
}
