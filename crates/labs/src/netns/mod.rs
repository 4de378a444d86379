//! A bench for placement on one machine: a client, a server, and between them a forwarder that can be starved.
//!
//! ```text
//! namespace -client        namespace -forward                     namespace -server
//! client0 --- veth --- port1 = [ the forwarder ] = port2 --- veth --- server0
//! load-client threads       vhost: our threads vhost-PID, AF_PACKET      load-server threads
//!                           kernel: routed, bridge: bridged; both in napi/ threads
//!                           tap: a QEMU guest that routes, between taps instead of veths
//!                           + busy threads "CPU n/KVM" on the forwarder's CPU: the fault
//! ```
//! In: [`Settings`]. Out: a [`Testbed`] that carries load, tells how many bytes arrived, and can be put into its faulty state.
//! Workers, busy threads and load are threads of this process, QEMU and iperf3 its children: they end with it, also after
//! kill -9. Namespaces stand in the journal, and everything else lies inside them: the host's own network, routes and
//! `ip_forward` are never touched.
//!
//! The vhost-like workers do what vhost-net does with a tap: frames with a virtio-net header in front go from one side to
//! the other unchanged, so segmentation offload stays on and a frame can have 64 KB (packet(7), PACKET_VNET_HDR).
//! With `--dev1`, `--dev2` the ends are the user's own NICs, moved in and back ([`own`]), and the forwarder is whatever lies
//! between them.

mod busy;
mod forward;
mod guest;
pub(crate) mod inside;
mod load;
pub mod own;
mod packet;
pub mod paths;
pub(crate) mod router;
pub(crate) mod tap;
mod testbed;

pub use guest::Places;
pub use load::{Load, LoadKind, Run};
pub use testbed::Testbed;

use base::CpuSet;
use forward::Forwarding;
use guest::Guest;
use inside::WorkerThreads;
use lab::Error;
use lab::journal::network::ip;
use lab::journal::{Entry, Step};
use lab::setting::thread;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use testbed::Built;

/// How long a kernel thread may take to appear after it was asked for.
const APPEARS: Duration = Duration::from_secs(2);

base::named! {
    /// What carries frames between the two ends.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Forwarder {
        /// Threads of ours, as vhost workers are.
        Vhost = "vhost",
        Kernel = "kernel",
        Bridge = "bridge",
        /// A guest that QEMU emulates routes.
        Tap = "tap",
    }
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub forwarder: Forwarder,
    pub load: LoadKind,
    /// TCP connections.
    pub streams: usize,
    /// Busy threads beside the forwarder.
    pub busy: usize,
    /// The CPU on which forwarder and busy threads fight.
    pub fault_cpu: u32,
    /// The CPUs of the load's two ends.
    pub load_cpus: CpuSet,
    /// Where a forwarding guest comes from.
    pub places: Places,
}

/// The three namespaces of a bench.
#[derive(Debug, Clone)]
struct Names {
    client: String,
    forward: String,
    server: String,
}

/// Addresses of the two ends, and the forwarder's where it routes.
struct Addresses {
    client: &'static str,
    server: &'static str,
    gateways: Option<(&'static str, &'static str)>,
}

impl Forwarder {
    fn addresses(self) -> Addresses {
        // 198.18.0.0/15 is set apart for benches of network devices (RFC 2544, C.2.2).
        match self {
            Forwarder::Vhost | Forwarder::Bridge => {
                Addresses { client: "198.18.0.1", server: "198.18.0.2", gateways: None }
            }
            Forwarder::Kernel | Forwarder::Tap => {
                Addresses { client: "198.18.1.2", server: "198.18.2.2", gateways: Some(("198.18.1.1", "198.18.2.1")) }
            }
        }
    }
}

/// Builds the bench and starts its load; `entry` notes what has to be removed, `stop` ends it early.
///
/// # Errors
/// If the machine lacks something; what was built by then is removed.
pub fn start(settings: &Settings, entry: Entry, proc: &Path, stop: &AtomicBool) -> Result<Testbed, Error> {
    Testbed::start(entry, proc, |entry, workers| build(settings, entry, workers, proc, stop))
}

fn build(
    settings: &Settings,
    entry: &mut Entry,
    workers: &mut WorkerThreads,
    proc: &Path,
    stop: &AtomicBool,
) -> Result<Built, Error> {
    let name = |role: &str| format!("{}-{role}", entry.id);
    let names = Names { client: name("client"), forward: name("forward"), server: name("server") };
    for namespace in [&names.client, &names.forward, &names.server] {
        entry.intend(Step::NetNamespace { name: namespace.clone() })?;
        ip(&["netns", "add", namespace])?;
        ip(&["-n", namespace, "link", "set", "lo", "up"])?;
    }
    let addresses = settings.forwarder.addresses();
    let mut guest = None;
    if settings.forwarder == Forwarder::Tap {
        let (ends, all) = ([names.client.as_str(), &names.server], thread::affinity(thread::own())?);
        guest = Some(Guest::boot(&settings.places, ends, &addresses, &all, proc, stop)?);
        give(&names.client, "client0", addresses.client)?;
        give(&names.server, "server0", addresses.server)?;
    } else {
        wire(&names.client, "client0", &names.forward, "port1", addresses.client)?;
        wire(&names.server, "server0", &names.forward, "port2", addresses.server)?;
    }
    if let Some((to_client, to_server)) = addresses.gateways {
        for (namespace, gateway) in [(&names.client, to_client), (&names.server, to_server)] {
            ip(&["-n", namespace, "route", "add", "default", "via", gateway])?;
        }
    }
    if let Forwarder::Kernel | Forwarder::Bridge = settings.forwarder {
        // A veth hands a frame to its peer's NAPI only where it has no segmentation offload itself (drivers/net/veth.c,
        // `veth_skb_is_eligible_for_gro`, Linux 6.12).
        for (namespace, device) in [(&names.client, "client0"), (&names.server, "server0")] {
            forward::offloads(namespace, device, &["tso", "off", "gso", "off"])?;
        }
    }
    let forwarding = Forwarding { namespace: &names.forward, cpu: settings.fault_cpu, proc };
    let forwarders = match settings.forwarder {
        Forwarder::Vhost => forwarding.vhost(workers)?,
        Forwarder::Bridge => forwarding.bridge()?,
        Forwarder::Kernel => forwarding.route(addresses.gateways.unwrap_or_default())?,
        Forwarder::Tap => guest.as_ref().map_or(Ok(Vec::new()), |guest| guest.threads(settings.fault_cpu))?,
    };
    let busy = (0..settings.busy).map(|index| busy::start(workers, index, settings.fault_cpu));
    let busy = busy.collect::<Result<Vec<u32>, Error>>()?;
    let ends = load::Ends { client: &names.client, server: &names.server, server_address: addresses.server };
    let load = Load::start(settings.load, workers, &ends, settings.streams, &settings.load_cpus)?;
    Ok(Built { load, forwarders, busy, guest })
}

/// A veth pair between an end and the forwarder, both up.
fn wire(end: &str, device: &str, forward: &str, port: &str, address: &str) -> Result<(), Error> {
    ip(&["link", "add", device, "netns", end, "type", "veth", "peer", "name", port, "netns", forward])?;
    give(end, device, address)?;
    ip(&["-n", forward, "link", "set", port, "up"])?;
    Ok(())
}

/// Gives the device of an end its address, and switches it on.
fn give(end: &str, device: &str, address: &str) -> Result<(), Error> {
    ip(&["-n", end, "addr", "add", &format!("{address}/24"), "dev", device])?;
    ip(&["-n", end, "link", "set", device, "up"]).map(|_| ())
}

/// Pins a thread of the bench.
fn pin(tid: u32, cpu: u32) -> Result<(), Error> {
    thread::set_affinity(tid, &CpuSet::one(cpu))
}

#[cfg(test)]
mod tests;
