//! What Open vSwitch prints: `ovs-appctl dpif-netdev/pmd-rxq-show`, `ovs-vsctl show`, `list` and `get . other_config`.
//!
//! Formats: ovs-vsctl(8); lib/dpif-netdev.c, Open vSwitch 2.9 (without `(enabled)`) to 3.6 (with overhead and the span).

use super::{Pasted, Text};
use crate::budget;
use crate::machine::ovsdb::{Row, printed};
use crate::machine::{Bridge, Pmd, PmdQueue, PortCounters, SwitchPort};
use base::number::thousands;

/// `pmd thread numa_id 0 core_id 4:` and what it serves. People retype it: without the first words, with commas, all on one line.
pub(super) fn pmd(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if text.at(at).starts_with("Displaying last ") && text.at(at).ends_with("pmd usage %") {
        return 1;
    }
    let heading = text.at(at);
    let Some(rest) = heading.strip_prefix("pmd thread ").unwrap_or(heading).strip_prefix("numa_id ") else { return 0 };
    let mut words = rest.trim_end_matches(':').split_whitespace();
    let node = words.next().and_then(|node| node.parse().ok());
    let cpu = words.nth(1).and_then(|cpu| cpu.parse().ok()).filter(|cpu| *cpu < base::cpus::MOST_CPUS);
    let Some(cpu) = cpu else { return 0 };
    let mut told = Pmd { cpu, node, place: text.place(at), ..Pmd::default() };
    let mut end = at + 1;
    loop {
        let line = text.at(end);
        if let Some(value) = line.strip_prefix("isolated") {
            told.isolated = value.trim_start_matches([' ', ':']) == "true";
        } else if let Some(value) = line.strip_prefix("max sleep:") {
            pasted.quote("polling thread may sleep", &format!("CPU {cpu}"), value.trim(), text.place(end));
        } else if let Some(value) = line.strip_prefix("overhead:") {
            told.overhead = percent(value);
        } else if let Some(queue) = queue(line) {
            told.queues.push(queue);
            told.overhead = line.split_once("overhead:").map_or(told.overhead, |(_, value)| percent(value));
        } else {
            break;
        }
        end += 1;
    }
    let pmds = &mut pasted.machine.switch.pmds;
    match pmds.iter_mut().find(|known| known.cpu == cpu) {
        // Other commands print the same heading above other numbers.
        Some(_) if told.queues.is_empty() => {}
        Some(known) => *known = told,
        None => pmds.push(told),
    }
    end - at
}

/// `port: dpdk0   queue-id:  0 (enabled)   pmd usage: 95 %`.
fn queue(line: &str) -> Option<PmdQueue> {
    let (port, rest) = line.strip_prefix("port:")?.split_once("queue-id:")?;
    let usage = rest.split_once("pmd usage:").and_then(|(_, usage)| percent(usage.split(',').next()?));
    let queue = rest.split_whitespace().next()?.parse().ok()?;
    let port = port.trim().trim_end_matches(',').to_owned();
    Some(PmdQueue { port, queue, enabled: !rest.contains("(disabled)"), usage })
}

/// `95 %` as a share; `NOT AVAIL` is none.
fn percent(text: &str) -> Option<f64> {
    let percent: f64 = text.trim().trim_end_matches('%').trim().parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// `ovs-vsctl list TABLE`: records of `column : value`, the first `_uuid`. Which table it is the columns tell.
pub(super) fn record(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let field = |line: usize| {
        let (name, value) = text.at(line).split_once(':')?;
        let name = name.trim_end();
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        plain.then(|| (name.to_owned(), printed(value)))
    };
    let Some(uuid) = text.at(at).strip_prefix("_uuid").and_then(|rest| rest.split(':').nth(1)) else { return 0 };
    let mut row = Row::new();
    let mut end = at + 1;
    while let Some((name, value)) = field(end).filter(|(name, _)| name != "_uuid") {
        row.insert(name, value);
        end += 1;
    }
    let has = |column: &str| row.contains_key(column);
    let table = match () {
        () if has("datapath_type") && has("ports") => "Bridge",
        () if has("interfaces") => "Port",
        () if has("ofport") && has("type") => "Interface",
        () if has("ovs_version") => "Open_vSwitch",
        () => return 0,
    };
    pasted.ovs.set(table, uuid.trim(), row);
    end - at
}

/// `{dpdk-init="true", pmd-cpu-mask="c"}`: what `ovs-vsctl get Open_vSwitch . other_config` prints.
pub(super) fn other_config(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    if !(line.starts_with('{')
        && line.ends_with('}')
        && (line.contains("dpdk-init=") || line.contains("pmd-cpu-mask=")))
    {
        return 0;
    }
    pasted.ovs.set("Open_vSwitch", "", [("other_config".to_owned(), printed(line))].into());
    1
}

/// `{ovs_tx_failure_drops=7, rx_packets=5, ..}`, what `ovs-vsctl get interface NAME statistics` prints; the name is in the command.
pub(super) fn statistics(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    // `| tr ',' '\n'` puts each on a line of its own.
    let is_one = |line: &str| {
        let pair = line.trim_matches(['{', '}', ',', ' ']).split_once('=');
        pair.is_some_and(|(name, count)| {
            name.len() > 3 && name.contains('_') && !name.contains(' ') && count.parse::<u64>().is_ok()
        })
    };
    let rows = (at..text.lines.len()).take_while(|row| is_one(text.at(*row))).count();
    let is_whole = line.starts_with('{') && line.ends_with('}') && line.contains("_packets=");
    let is_asked = || (1..=2).any(|above| at >= above && text.at(at - above).contains(" statistics"));
    if !(is_whole || rows > 0 && is_asked()) {
        return 0;
    }
    let lines = if is_whole { 1 } else { rows };
    let counters = (at..at + lines).map(|row| text.at(row).trim_matches([' ', ','])).collect::<Vec<_>>().join(", ");
    let asked = (at.saturating_sub(2)..at).rev().find_map(|above| {
        let words: Vec<&str> = text.at(above).split_whitespace().collect();
        let place = words.iter().position(|word| word.eq_ignore_ascii_case("interface"))?;
        Some((*words.get(place + 1)?).to_owned())
    });
    let port = asked.unwrap_or_else(|| "an interface".to_owned());
    let counters = crate::polled::ports::of_interface(&counters);
    let statistics = &mut pasted.machine.switch.statistics;
    if statistics.len() < budget::PORTS {
        statistics.push(text.fact(PortCounters { port, counters }, at));
    } else {
        pasted.leave_out("counters of interfaces beyond the first", budget::PORTS);
    }
    lines
}

/// `port  dpdk1: rx pkts=133059, bytes=60991825, drop=0, errs=0, ..` and `tx pkts=0, ..` below it: a port of `ovs-ofctl dump-ports`, whose
/// counters get the names that `ovs-vsctl` has for them.
pub(super) fn dumped_port(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if text.at(at).starts_with("OFPST_PORT reply") {
        carried(text, at, pasted);
        return 1;
    }
    let Some((name, first)) = text.at(at).strip_prefix("port ").and_then(|port| port.split_once(':')) else { return 0 };
    if !first.trim_start().starts_with("rx pkts=") {
        return 0;
    }
    let is_more = |line: &str| line.starts_with("tx pkts=") || line.starts_with("duration=");
    let lines = 1 + (at + 1..text.lines.len()).take_while(|row| is_more(text.at(*row))).count();
    let block = (at..at + lines).map(|row| text.at(row)).collect::<Vec<_>>().join("\n");
    let printed = crate::polled::ports::read(&block).into_values().next().unwrap_or_default();
    let named = |(name, count): (String, u64)| {
        let (way, what) = name.split_once(' ')?;
        let what = match what {
            "pkts" => "packets",
            "drop" => "dropped",
            "errs" => "errors",
            other => other,
        };
        Some((format!("{way}_{what}"), count))
    };
    let name = name.trim().trim_matches('"');
    let port = if name.bytes().all(|byte| byte.is_ascii_digit()) { format!("port {name}") } else { name.to_owned() };
    let statistics = &mut pasted.machine.switch.statistics;
    if statistics.len() < budget::PORTS {
        let counters = printed.into_iter().filter_map(named).collect();
        statistics.push(text.fact(PortCounters { port, counters }, at));
    } else {
        pasted.leave_out("counters of interfaces beyond the first", budget::PORTS);
    }
    lines
}

/// Packets from which on a switch that hands none on is told.
const SOME_PACKETS: u64 = 1_000;

/// What came in at all ports of a reply, where hardly any of it left by another one.
fn carried(text: &Text<'_>, at: usize, pasted: &mut Pasted) {
    let is_of =
        |line: &str| line.is_empty() || ["port ", "tx pkts=", "duration="].iter().any(|begin| line.starts_with(begin));
    let count = |line: &str, way: &str| -> Option<u64> {
        line.split_once(way)?.1.split_once("pkts=")?.1.split(',').next()?.parse().ok()
    };
    let (mut received, mut sent, mut most) = (0_u64, 0_u64, (0, String::new()));
    for line in (at + 1..text.lines.len()).map(|line| text.at(line)).take_while(|line| is_of(line)) {
        if let (Some(packets), Some((name, _))) = (count(line, "rx "), line.split_once(':')) {
            received = received.saturating_add(packets);
            most = most.max((packets, name.trim_start_matches("port ").trim().trim_matches('"').to_owned()));
        }
        sent = sent.saturating_add(count(line, "tx ").unwrap_or(0));
    }
    if received >= SOME_PACKETS && sent < received / 100 {
        let said = format!(
            "The switch received {} packets, {} of them at {}, and sent {}: its flows drop them, or lead them to no port (ovs-ofctl dump-flows BRIDGE).",
            thousands(received),
            thousands(most.0),
            most.1,
            thousands(sent)
        );
        pasted.summarize(said, text.place(at));
    }
}

/// `ovs-vsctl show`: bridges, ports and interfaces, one inside of the other.
pub(super) fn show(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let named = |line: &str, what: &str| line.strip_prefix(what).map(|name| name.trim().trim_matches('"').to_owned());
    let Some(name) = named(text.at(at), "Bridge ").filter(|name| !name.contains(' ')) else { return 0 };
    let mut bridge = Bridge { name, ..Bridge::default() };
    let mut end = at + 1;
    while !text.at(end).is_empty() && !text.at(end).starts_with("Bridge ") && !text.at(end).starts_with("ovs_version") {
        let line = text.at(end);
        if let Some(name) = named(line, "Interface ") {
            bridge.ports.push(SwitchPort { name, kind: "system".to_owned(), ..SwitchPort::default() });
        } else if let Some(kind) = named(line, "datapath_type: ") {
            bridge.user_space = kind == "netdev";
        } else if let Some(port) = bridge.ports.last_mut() {
            if let Some(kind) = named(line, "type: ") {
                port.kind = kind;
            } else if let Some(options) = line.strip_prefix("options: ") {
                let options = printed(options);
                port.rx_queues = options.get("n_rxq").and_then(|count| count.parse().ok());
                port.backing = options.get("dpdk-devargs").or_else(|| options.get("vhost-server-path")).cloned();
            }
        }
        end += 1;
    }
    let bridges = &mut pasted.machine.switch.bridges;
    bridges.retain(|known| known.name != bridge.name);
    if bridges.len() < budget::BRIDGES {
        bridges.push(bridge);
    } else {
        pasted.leave_out("bridges beyond the first", budget::BRIDGES);
    }
    end - at
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    const SHOW: &str = "Displaying last 60 seconds pmd usage %\npmd thread numa_id 0 core_id 4:\n  isolated : true\n\
        \x20 port: dpdk0            queue-id:  0 (enabled)   pmd usage: 70 %\n\
        \x20 port: vhu1             queue-id:  1 (disabled)   pmd usage: NOT AVAIL\n  overhead:  4 %\n\
        pmd thread numa_id 1 core_id 5:\n  isolated : false\n\
        pmd thread numa_id 0 core_id 4:\n  packets received: 5\n";

    #[test]
    fn polling_threads_and_their_queues() {
        let machine = read(&[("t".to_owned(), SHOW.to_owned())]);
        let [first, second] = &machine.switch.pmds[..] else { panic!("{:?}", machine.switch.pmds) };
        assert_eq!((first.cpu, first.node, first.isolated, first.queues.len()), (4, Some(0), true, 2));
        assert!((first.busy().unwrap() - 0.74).abs() < 1e-9 && !first.queues[1].enabled);
        assert_eq!((second.cpu, second.busy()), (5, None));
        assert_eq!(machine.switch.pmd_cpus().to_string(), "4-5");
        assert_eq!(machine.sources[0].2, 1, "a line of another command");
    }

    #[test]
    fn a_retyped_list_of_polling_threads_is_the_same() {
        let text =
            "numa_id 0 core_id 2:\nisolated: true\nport: dpdk0, queue-id: 3 (enabled), pmd usage: 15%, overhead: 2%\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let [pmd] = &machine.switch.pmds[..] else { panic!("{:?}", machine.switch.pmds) };
        assert_eq!((pmd.cpu, pmd.node, pmd.isolated, pmd.queues[0].port.as_str()), (2, Some(0), true, "dpdk0"));
        assert!((pmd.busy().unwrap() - 0.17).abs() < 1e-9 && pmd.queues[0].enabled, "{pmd:?}");
    }

    #[test]
    fn records_and_the_tree_describe_one_bridge() {
        let records = "$ ovs-vsctl list bridge\n_uuid               : b1\ndatapath_type       : netdev\nname                : br0\n\
            ports               : [p1]\n\n_uuid               : p1\ninterfaces          : [i1]\nname                : dpdk0\n\n\
            _uuid               : i1\nname                : dpdk0\nofport              : 1\n\
            options             : {dpdk-devargs=\"0000:3b:00.1\", n_rxq=\"2\"}\nstatus              : {numa_id=\"1\"}\n\
            type                : dpdk\n\n{dpdk-init=\"true\", pmd-cpu-mask=\"30\"}\n";
        let machine = read(&[("t".to_owned(), records.to_owned())]);
        let port = machine.switch.port("dpdk0").unwrap();
        assert_eq!((port.kind.as_str(), port.rx_queues, port.node.as_ref().unwrap().value), ("dpdk", Some(2), 1));
        assert_eq!(machine.switch.pmd_mask.unwrap().value.to_string(), "4-5");
        let tree = "5e8a\n    Bridge br0\n        datapath_type: netdev\n        Port dpdk0\n            Interface dpdk0\n\
            \x20               type: dpdk\n                options: {dpdk-devargs=\"0000:3b:00.1\", n_rxq=\"2\"}\n\
            \x20   ovs_version: \"3.1.0\"\n";
        let shown = read(&[("t".to_owned(), tree.to_owned())]);
        let port = shown.switch.port("dpdk0").unwrap();
        assert_eq!((port.backing.as_deref(), port.rx_queues), (Some("0000:3b:00.1"), Some(2)));
        assert!(shown.switch.bridges[0].user_space);
    }
}
