//! A private Open vSwitch without DPDK as all VNFs of a chain: the kernel's datapath, or the one of its daemon.
//!
//! ```text
//! ovs-kernel   datapath_type=system   the module openvswitch forwards; the daemon hears of first packets only
//! ovs-netdev   datapath_type=netdev   the daemon's main thread reads packet sockets and forwards itself, 32 frames at most at once
//! ```
//! The daemon runs in the namespace of the chain, on its CPU, and keeps to a directory of its own (`ovs/switch.rs`). One bridge has all
//! ports; a flow for each leads to the other port of its VNF, and counts.

use super::super::inside::within;
use super::bed::{Bed, Making, Path};
use crate::child::ChildProcess;
use crate::ovs::control::Control;
use crate::ovs::switch::{Place, SCHEMA, appears, option, words_of};
use base::CpuSet;
use host::polled::flows;
use lab::Error;
use lab::journal::network::ip;
use lab::journal::{Owner, Step};
use lab::watch::Watch;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// The daemon, of the Debian package openvswitch-switch.
pub(super) const DAEMON: &str = "ovs-vswitchd";
/// Where Open vSwitch counts packets that it could not ask its daemon about.
pub(super) const LOST: &str = "lookups lost";
/// The only bridge.
const BRIDGE: &str = "b";
/// A flow that nothing matched for as long is forgotten, and with it its count.
const FORGETS_MS: u32 = 3_600_000;

/// A switch at work; dropping it ends it.
#[derive(Debug)]
pub(super) struct VirtualSwitch {
    _database: ChildProcess,
    _daemon: ChildProcess,
    control: RefCell<Control>,
}

/// The counter of a port's flow.
pub(super) fn flow_of(port: &str) -> String {
    format!("flow of {port}")
}

/// The counter of what the daemon's socket on a port had no memory for.
pub(super) fn socket_of(port: &str) -> String {
    format!("sk_drops of {port}")
}

/// The datapath of a path: its type, and its name for `dpctl`.
fn datapath(path: Path) -> (&'static str, &'static str) {
    match path {
        Path::OvsKernel => ("system", "system@ovs-system"),
        _ => ("netdev", "netdev@ovs-netdev"),
    }
}

impl VirtualSwitch {
    /// Starts it, and wires the VNFs of a bed.
    pub(super) fn start(bed: &Bed, making: &mut Making<'_>) -> Result<Self, Error> {
        let directory = making.run_directory()?;
        let (place, cpu) = (Place { directory: &directory }, CpuSet::one(bed.cpus.chain));
        let watch = Watch { say: &mut |_| (), stop: making.stop };
        let at = |name: &str| directory.join(name);
        let socket = format!("unix:{}", at("db.sock").display());
        place.run("ovsdb-tool", &[OsStr::new("create"), at("conf.db").as_os_str(), OsStr::new(SCHEMA)])?;
        let mut command = place.command("ovsdb-server");
        command.arg(at("conf.db")).arg(format!("--remote=p{socket}")).arg(option("unixctl", &at("db.ctl")));
        let mut database = ChildProcess::of(command, &CpuSet::one(bed.cpus.sender))?;
        making.entry.intend(Step::Process(Owner::of(making.proc, database.pid())?))?;
        appears(&at("db.sock"), &mut database, &watch)?;
        let remembers = format!("--no-wait init -- set Open_vSwitch . other_config:max-idle={FORGETS_MS}");
        place.vsctl(&words_of(&remembers))?;
        let mut command = place.command(DAEMON);
        command.arg(&socket).arg(option("unixctl", &at("vsw.ctl")));
        let mut daemon = ChildProcess::of(within(&bed.chain, &command), &cpu)?;
        making.entry.intend(Step::Process(Owner::of(making.proc, daemon.pid())?))?;
        appears(&at("vsw.ctl"), &mut daemon, &watch)?;
        place.vsctl(&words_of(&wiring(bed.path, bed.vnfs)))?;
        let management = format!("unix:{}", at(&format!("{BRIDGE}.mgmt")).display());
        for flow in rules(bed.vnfs) {
            place.run("ovs-ofctl", &["add-flow", &management, &flow]).map_err(|error| why(error, &daemon))?;
        }
        let control = Control::connect(&at("vsw.ctl"))?;
        Ok(Self { _database: database, _daemon: daemon, control: RefCell::new(control) })
    }

    /// What has been counted so far: by flows, and where packets were lost.
    pub(super) fn counters(&self, bed: &Bed) -> Result<BTreeMap<String, u64>, Error> {
        let (mut control, (_, datapath)) = (self.control.borrow_mut(), datapath(bed.path));
        let mut counters: BTreeMap<String, u64> =
            (0..2 * bed.vnfs).map(|port| (flow_of(&format!("port{port}")), 0)).collect();
        for flow in flows::read(&control.ask("dpctl/dump-flows", &["-m", datapath])?) {
            *counters.entry(flow_of(&flow.in_port)).or_default() += flow.packets;
        }
        let lost = lost(&control.ask("dpctl/show", &[datapath])?);
        counters.extend(lost.map(|packets| (LOST.to_owned(), packets)));
        if bed.path == Path::OvsNetdev {
            let told = ip(&["netns", "exec", &bed.chain, "ss", "--packet", "--memory", "--numeric"])?;
            counters.extend(socket_drops(&told).into_iter().map(|(port, dropped)| (socket_of(&port), dropped)));
        }
        Ok(counters)
    }
}

/// A bridge that is not there has its reason in what the daemon said, and that it is not there tells nothing.
fn why(error: Error, daemon: &ChildProcess) -> Error {
    let said = daemon.complaints();
    let why = said.lines().rev().find(|line| ["|ERR|", "|EMER|", "failed"].iter().any(|sign| line.contains(sign)));
    why.map_or(error, |why| Error::refused("Open vSwitch does not start", why))
}

/// What adds a bridge with the ports of all VNFs, in the words of ovs-vsctl(8).
fn wiring(path: Path, vnfs: u32) -> String {
    let mut words =
        format!("add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type={} fail-mode=secure", datapath(path).0);
    for port in 0..2 * vnfs {
        words += &format!(" -- add-port {BRIDGE} port{port} -- set interface port{port} ofport_request={}", port + 1);
    }
    words
}

/// Flows that join the two ports of each VNF, in the words of ovs-ofctl(8).
fn rules(vnfs: u32) -> Vec<String> {
    let rule = |(from, to): (u32, u32)| format!("in_port={from},actions=output:{to}");
    (0..vnfs).flat_map(|vnf| [(2 * vnf + 1, 2 * vnf + 2), (2 * vnf + 2, 2 * vnf + 1)]).map(rule).collect()
}

/// Packets that found no room on their way to the daemon: `lookups: hit:5 missed:1 lost:0`.
fn lost(show: &str) -> Option<u64> {
    let line = show.lines().find_map(|line| line.trim().strip_prefix("lookups:"))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("lost:"))?.parse().ok()
}

/// By device, what packet sockets had no memory for: `p_raw 0 0 *:port0 * skmem:(r0,...,bl0,d211943)` (ss(8), `--memory`).
fn socket_drops(told: &str) -> BTreeMap<String, u64> {
    let mut dropped = BTreeMap::new();
    for line in told.lines() {
        let mut words = line.split_whitespace();
        let device = words.find_map(|word| word.strip_prefix("*:"));
        let memory = words.find_map(|word| word.strip_prefix("skmem:(")?.strip_suffix(')'));
        let count = memory.and_then(|memory| memory.rsplit_once(",d")?.1.parse::<u64>().ok());
        if let Some((device, count)) = device.zip(count) {
            *dropped.entry(device.to_owned()).or_default() += count;
        }
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ports_of_a_vnf_are_joined_in_the_datapath_of_the_path() {
        let words = wiring(Path::OvsKernel, 1);
        assert!(words.contains("datapath_type=system fail-mode=secure -- add-port b port0"), "{words}");
        assert!(words.ends_with("add-port b port1 -- set interface port1 ofport_request=2"), "{words}");
        assert!(wiring(Path::OvsNetdev, 1).contains("datapath_type=netdev"));
        let expected = ["1,actions=output:2", "2,actions=output:1", "3,actions=output:4", "4,actions=output:3"];
        assert_eq!(rules(2), expected.map(|rule| format!("in_port={rule}")));
    }

    #[test]
    fn what_was_lost_on_the_way_into_the_switch_is_read() {
        // As Open vSwitch 3.1 and ss of iproute2 6.1 print it.
        assert_eq!(lost("netdev@ovs-netdev:\n  lookups: hit:38760 missed:1 lost:7\n  flows: 1\n"), Some(7));
        assert_eq!(lost("system@ovs-system:\n  flows: 1\n"), None);
        let told = "Netid Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\n\
            p_raw 0 0 *:port1 * skmem:(r0,rb212992,t0,tb212992,f0,w0,o176,bl0,d0)\n\
            p_raw 0 0 *:port0 * skmem:(r0,rb212992,t0,tb212992,f0,w0,o176,bl0,d211943)\n\
            p_raw 0 0 [0]:* * skmem:(r0,rb212992,t0,tb212992,f0,w0,o0,bl0,d3)\n";
        let expected = [("port0".to_owned(), 211_943), ("port1".to_owned(), 0)];
        assert_eq!(socket_drops(told), BTreeMap::from(expected));
    }
}
