//! The user's own NICs as the two ends, moved into namespaces and back.
//!
//! ```text
//! host: DEV1 DEV2  -->  namespace -client: DEV1 with IP1, route to the other network through GW1
//!                       namespace -server: DEV2 with IP2, route back through GW2        --> load --> moved back
//! ```
//! What a NIC was (addresses, routes, up or down) is noted before it is moved, and given back after.

use super::inside::WorkerThreads;
use super::load::{Ends, Load, LoadKind};
use super::testbed::{Built, Testbed};
use base::CpuSet;
use lab::Error;
use lab::journal::network::{Nic, ip};
use lab::journal::{Entry, Step};
use std::path::Path;

#[derive(Debug, Clone)]
pub struct End {
    /// The NIC.
    pub device: String,
    /// Its address on the bench, with the length of its network: `10.1.72.62/16`.
    pub address: String,
    /// What carries it to the other end.
    pub gateway: String,
}

/// How the load between the ends is run.
#[derive(Debug, Clone)]
pub struct Traffic {
    pub kind: LoadKind,
    /// TCP connections.
    pub streams: usize,
    /// The CPUs of its two ends.
    pub cpus: CpuSet,
}

/// Moves both NICs and starts the load.
///
/// # Errors
/// If a NIC is not there or the load does not get through; the NICs are back by then.
pub fn start(ends: &[End; 2], traffic: &Traffic, entry: Entry, proc: &Path) -> Result<Testbed, Error> {
    Testbed::start(entry, proc, |entry, workers| {
        let load = build(ends, traffic, entry, workers)?;
        Ok(Built { load, forwarders: Vec::new(), busy: Vec::new(), guest: None })
    })
}

fn build(ends: &[End; 2], traffic: &Traffic, entry: &mut Entry, workers: &mut WorkerThreads) -> Result<Load, Error> {
    let names = [format!("{}-client", entry.id), format!("{}-server", entry.id)];
    let hosts = ends.each_ref().map(|end| end.address.split_once('/').map(|(host, _)| host.to_owned()));
    let [Some(client), Some(server)] = hosts else {
        return Err(Error::WrongUse("write the address with its prefix length: --ip1 10.1.72.62/16".to_owned()));
    };
    // All are looked at before any is moved.
    let nics = [Nic::read(&ends[0].device)?, Nic::read(&ends[1].device)?];
    for ((end, nic), (namespace, other)) in ends.iter().zip(nics).zip(names.iter().zip([&server, &client])) {
        entry.intend(Step::NetNamespace { name: namespace.clone() })?;
        ip(&["netns", "add", namespace])?;
        ip(&["-n", namespace, "link", "set", "lo", "up"])?;
        entry.intend(Step::NicMoved { nic, namespace: namespace.clone() })?;
        ip(&["link", "set", "dev", &end.device, "netns", namespace])?;
        ip(&["-n", namespace, "addr", "add", &end.address, "dev", &end.device])?;
        ip(&["-n", namespace, "link", "set", "dev", &end.device, "up"])?;
        ip(&["-n", namespace, "route", "replace", other, "via", &end.gateway, "dev", &end.device])?;
    }
    let ends = Ends { client: &names[0], server: &names[1], server_address: &server };
    Load::start(traffic.kind, workers, &ends, traffic.streams, &traffic.cpus)
}
