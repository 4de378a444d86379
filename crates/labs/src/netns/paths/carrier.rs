//! Who carries frames through the VNFs of a bed, and what they count.

use super::bed::{Bed, Making, Path};
use super::ledger::ports;
use super::macvtap::{self, Carried};
use super::vnfs::Vnfs;
use lab::Error;
use lab::journal::network::ip;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What joins the two ports of each VNF.
#[derive(Debug)]
pub(super) enum Carrier {
    /// The kernel, which counts at its devices only.
    Kernel,
    /// Files of macvtaps, and what their threads count on the way to the sink.
    Macvtaps(Vec<Arc<Carried>>),
    Testpmd(Vnfs),
}

impl Carrier {
    /// Joins the ports of all VNFs of a bed.
    pub(super) fn start(bed: &Bed<'_>, making: &mut Making<'_>) -> Result<Self, Error> {
        let mut vnfs = (0..bed.vnfs).map(|vnf| (vnf, ports(vnf)));
        match bed.path {
            Path::Veth => {
                vnfs.try_for_each(|(_, [near, far])| both_ways(&bed.chain, &near, &far))?;
                Ok(Carrier::Kernel)
            }
            Path::Bridge => {
                vnfs.try_for_each(|(vnf, ports)| bridge(&bed.chain, vnf, &ports))?;
                Ok(Carrier::Kernel)
            }
            Path::Macvtap => {
                let (cpu, workers) = (bed.cpus.chain, &mut *making.workers);
                let join = |(vnf, [near, far]): (u32, [String; 2])| {
                    macvtap::join(&bed.chain, vnf, [&near, &far], cpu, workers)
                };
                Ok(Carrier::Macvtaps(vnfs.map(join).collect::<Result<_, _>>()?))
            }
            Path::VhostNet => Vnfs::start(bed, making).map(Carrier::Testpmd),
        }
    }

    /// What has been counted beside the statistics of devices.
    pub(super) fn counters(&self, bed: &Bed<'_>) -> Result<BTreeMap<String, u64>, Error> {
        let mut counters = BTreeMap::new();
        match self {
            Carrier::Kernel => {}
            Carrier::Macvtaps(all) => {
                for (vnf, carried) in (0..).zip(all) {
                    counters.extend(THREAD.map(|what| of_thread(vnf, what)).into_iter().zip(carried.read()));
                }
            }
            Carrier::Testpmd(vnfs) => counters = vnfs.counters(bed)?,
        }
        Ok(counters)
    }
}

/// What a thread between two macvtaps counts.
const THREAD: [&str; 3] = ["read", "wrote", "refused"];

pub(super) fn of_thread(vnf: u32, what: &str) -> String {
    format!("vnf-{vnf} {what}")
}

/// Traffic control redirects what comes into one device out of the other.
pub(super) fn both_ways(namespace: &str, near: &str, far: &str) -> Result<(), Error> {
    for (from, to) in [(near, far), (far, near)] {
        let exec = ["netns", "exec", namespace, "tc"];
        ip(&[&exec[..], &["qdisc", "add", "dev", from, "clsact"]].concat())?;
        let filter = ["filter", "add", "dev", from, "ingress", "protocol", "all", "u32", "match", "u32", "0", "0"];
        let action = ["action", "mirred", "egress", "redirect", "dev", to];
        ip(&[&exec[..], &filter, &action].concat())?;
    }
    Ok(())
}

fn bridge(namespace: &str, vnf: u32, ports: &[String; 2]) -> Result<(), Error> {
    let bridge = format!("bridge{vnf}");
    ip(&["-n", namespace, "link", "add", "name", &bridge, "type", "bridge", "mcast_snooping", "0"])?;
    for port in ports {
        ip(&["-n", namespace, "link", "set", port, "master", &bridge])?;
    }
    ip(&["-n", namespace, "link", "set", &bridge, "up"]).map(drop)
}
