//! Three namespaces, a chain of VNFs between two of them, and what carries frames through each VNF.

use super::super::forward::offloads;
use super::super::inside::WorkerThreads;
use super::super::{APPEARS, pin};
use super::Cpus;
use super::carrier::Carrier;
use lab::Error;
use lab::journal::network::ip;
use lab::journal::{Entry, Step};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

base::named! {
    /// What carries frames through a VNF.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Path {
        /// The kernel's traffic control redirects from one veth to the next.
        Veth = "veth",
        /// A bridge joins two veths.
        Bridge = "bridge",
        /// A thread copies between the files of two macvtaps.
        Macvtap = "macvtap",
        /// testpmd, on taps that the kernel's vhost-net serves.
        VhostNet = "vhost-net",
    }
}

impl Path {
    /// True if a thread spins on the chain's CPU: a polling thread of the kernel beside it would wait for its turn, and the ring
    /// before it would overflow meanwhile.
    fn spins(self) -> bool {
        self == Path::VhostNet
    }
}

/// Where the two ends of streams are (RFC 2544, C.2.2).
pub(super) const SOURCE_ADDRESS: &str = "198.18.0.1";
pub(super) const SINK_ADDRESS: &str = "198.18.0.2";

/// What building a bed takes.
pub(super) struct Making<'a> {
    /// Notes what has to be removed.
    pub(super) entry: &'a mut Entry,
    pub(super) workers: &'a mut WorkerThreads,
    pub(super) proc: &'a std::path::Path,
    pub(super) stop: &'a AtomicBool,
}

impl Making<'_> {
    /// Makes a directory for the sockets and files of programs.
    pub(super) fn run_directory(&mut self) -> Result<PathBuf, Error> {
        let path = std::path::Path::new("/run").join(format!("kvmscope-{}", self.entry.id));
        self.entry.intend(Step::RunDirectory { path: path.clone() })?;
        base::recording::make_private(&path).map_err(|error| Error::io(&path, error))?;
        Ok(path)
    }
}

#[derive(Debug)]
pub(super) struct Bed<'a> {
    pub(super) path: Path,
    pub(super) vnfs: u32,
    pub(super) cpus: Cpus,
    pub(super) source: String,
    pub(super) chain: String,
    pub(super) sink: String,
    pub(super) carrier: Carrier,
    /// Set by who has had enough.
    pub(super) stop: &'a AtomicBool,
}

impl<'a> Bed<'a> {
    pub(super) fn build(path: Path, vnfs: u32, cpus: Cpus, making: &mut Making<'a>) -> Result<Self, Error> {
        let name = |role: &str| format!("{}-{role}", making.entry.id);
        let [source, chain, sink] = ["source", "chain", "sink"].map(name);
        for namespace in [&source, &chain, &sink] {
            making.entry.intend(Step::NetNamespace { name: namespace.clone() })?;
            ip(&["netns", "add", namespace])?;
            // Nothing but what is sent by the bench may be on its links.
            shell(namespace, "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")?;
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
        }
        let mut bed = Self { path, vnfs, cpus, source, chain, sink, carrier: Carrier::Kernel, stop: making.stop };
        let last = format!("port{}", 2 * vnfs - 1);
        bed.link(&bed.source, "source0", "port0")?;
        for vnf in 1..vnfs {
            bed.link(&bed.chain, &format!("port{}", 2 * vnf - 1), &format!("port{}", 2 * vnf))?;
        }
        bed.link(&bed.sink, "sink0", &last)?;
        for (namespace, device, address) in
            [(&bed.source, "source0", SOURCE_ADDRESS), (&bed.sink, "sink0", SINK_ADDRESS)]
        {
            ip(&["-n", namespace, "addr", "add", &format!("{address}/24"), "dev", device])?;
            ip(&["-n", namespace, "link", "set", device, "up"])?;
            // A veth hands frames to its peer's NAPI only where it does not segment itself (drivers/net/veth.c,
            // `veth_skb_is_eligible_for_gro`, Linux 6.12).
            offloads(namespace, device, &["tso", "off", "gso", "off", "tx", "off"])?;
        }
        for port in 0..2 * vnfs {
            let port = format!("port{port}");
            offloads(&bed.chain, &port, &["gro", "on", "tso", "off", "gso", "off", "tx", "off"])?;
        }
        bed.carrier = Carrier::start(&bed, making)?;
        if !path.spins() {
            bed.poll(making.proc)?;
        }
        Ok(bed)
    }

    fn link(&self, end: &str, device: &str, port: &str) -> Result<(), Error> {
        ip(&["link", "add", "name", device, "netns", end, "type", "veth", "peer", "name", port, "netns", &self.chain])?;
        if end == self.chain {
            ip(&["-n", &self.chain, "link", "set", device, "up"])?;
        }
        ip(&["-n", &self.chain, "link", "set", port, "up"]).map(|_| ())
    }

    /// Gives each port a polling thread of the kernel, on the chain's CPU.
    fn poll(&self, proc: &std::path::Path) -> Result<(), Error> {
        let ports: Vec<String> = (0..2 * self.vnfs).map(|port| format!("port{port}")).collect();
        let known = kernel_threads(proc);
        for port in &ports {
            shell(&self.chain, &format!("echo 1 > /sys/class/net/{port}/threaded"))?;
        }
        let since = Instant::now();
        loop {
            let mut polling = kernel_threads(proc);
            polling.retain(|tid| !known.contains(tid));
            if polling.len() >= ports.len() {
                return polling.into_iter().try_for_each(|tid| pin(tid, self.cpus.chain));
            }
            if since.elapsed() > APPEARS {
                let why = "the kernel made no NAPI threads for the ports; this needs Linux 5.12";
                return Err(Error::Absent(why.to_owned()));
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// Ids of the kernel's threads that poll ports named as ours are.
fn kernel_threads(proc: &std::path::Path) -> Vec<u32> {
    super::super::forward::named(proc, "napi/port")
}

/// `ip netns exec` gives the command a /sys of the namespace, which a thread of ours would not have.
pub(super) fn shell(namespace: &str, script: &str) -> Result<String, Error> {
    ip(&["netns", "exec", namespace, "sh", "-c", script])
}
