//! What carries frames from one port to the other, in threads that can be pinned.
//!
//! ```text
//! vhost     vhost-PID: port1 -> port2; vhost-PID: port2 -> port1        threads of ours
//! kernel    napi/port1-N, napi/port2-N: routed                          threaded NAPI of the veth ports
//! bridge    the same threads, with a bridge above the ports
//! tap       a guest: see [`super::guest`]
//! ```
//! Threaded NAPI moves a device's receive work out of the softirq of whoever sent, into a kernel thread of its own
//! (`/sys/class/net/DEV/threaded`, Linux 5.12; Documentation/networking/napi.rst). A veth has NAPI where generic receive
//! offload is on, and uses it for peers without segmentation offload.

use super::inside::{Stop, WorkerThreads};
use super::packet::Port;
use super::{APPEARS, pin};
use lab::Error;
use lab::journal::network::ip;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest frame with its header: 64 KB of segments and some headers.
pub(super) const LONGEST_FRAME: usize = 128 << 10;
/// virtio-net's header without merged buffers (struct virtio_net_hdr, VIRTIO 1.2, 5.1.6).
pub(super) const HEADER_BYTES: usize = 10;

pub(super) struct Forwarding<'a> {
    pub(super) namespace: &'a str,
    pub(super) cpu: u32,
    pub(super) proc: &'a Path,
}

impl Forwarding<'_> {
    /// Threads of ours, one for each direction, named as vhost's are.
    pub(super) fn vhost(&self, workers: &mut WorkerThreads) -> Result<Vec<u32>, Error> {
        let name = format!("vhost-{}", std::process::id());
        let mut tids = Vec::new();
        for (from, to) in [("port1", "port2"), ("port2", "port1")] {
            let tid = workers.start(
                &name,
                Some(self.namespace),
                move || Ok((Port::open(from)?, Port::open(to)?)),
                |(from, to), stop| carry(&from, &to, stop),
            )?;
            pin(tid, self.cpu)?;
            tids.push(tid);
        }
        Ok(tids)
    }

    /// The kernel routes between the ports, which get the two gateways' addresses.
    pub(super) fn route(&self, (to_client, to_server): (&str, &str)) -> Result<Vec<u32>, Error> {
        for (port, gateway) in [("port1", to_client), ("port2", to_server)] {
            ip(&["-n", self.namespace, "addr", "add", &format!("{gateway}/24"), "dev", port])?;
        }
        self.shell("echo 1 > /proc/sys/net/ipv4/ip_forward")?;
        self.napi()
    }

    /// A bridge joins the ports.
    pub(super) fn bridge(&self) -> Result<Vec<u32>, Error> {
        ip(&["-n", self.namespace, "link", "add", "bridge0", "type", "bridge"])?;
        for port in ["port1", "port2"] {
            ip(&["-n", self.namespace, "link", "set", port, "master", "bridge0"])?;
        }
        ip(&["-n", self.namespace, "link", "set", "bridge0", "up"])?;
        self.napi()
    }

    /// Gives both ports a NAPI thread, and finds those.
    fn napi(&self) -> Result<Vec<u32>, Error> {
        let known = named(self.proc, "napi/port");
        for port in ["port1", "port2"] {
            offloads(self.namespace, port, &["gro", "on"])?;
            self.shell(&format!("echo 1 > /sys/class/net/{port}/threaded"))?;
        }
        let since = Instant::now();
        let mut tids = Vec::new();
        while tids.is_empty() && since.elapsed() < APPEARS {
            std::thread::sleep(Duration::from_millis(20));
            tids = named(self.proc, "napi/port");
            tids.retain(|tid| !known.contains(tid));
        }
        if tids.is_empty() {
            return Err(Error::Absent(
                "the kernel made no NAPI threads for the ports, so there is nothing to pin; use --forwarder vhost"
                    .to_owned(),
            ));
        }
        tids.iter().try_for_each(|tid| pin(*tid, self.cpu))?;
        Ok(tids)
    }

    /// `ip netns exec` gives the command a /sys of the namespace, which a thread of ours would not have.
    fn shell(&self, script: &str) -> Result<(), Error> {
        ip(&["netns", "exec", self.namespace, "sh", "-c", script]).map(|_| ())
    }
}

/// Switches offloads of a device.
pub(super) fn offloads(namespace: &str, device: &str, switches: &[&str]) -> Result<(), Error> {
    let words = [&["netns", "exec", namespace, "ethtool", "-K", device], switches].concat();
    ip(&words).map(drop).map_err(|error| match error {
        Error::Failed { program, status, said } => {
            Error::Failed { program, status, said: format!("{said}; install the Debian package ethtool") }
        }
        other => other,
    })
}

/// Carries frames one way until it is told to end.
pub(super) fn carry(from: &Port, to: &Port, stop: &Stop) -> Result<(), Error> {
    let gone = |error| Error::refused("the forwarder's port is gone", error);
    let mut frame = vec![0; LONGEST_FRAME];
    while !stop.asked() {
        let length = from.receive(&mut frame).map_err(gone)?;
        if length > HEADER_BYTES {
            to.send(&frame[..length]).map_err(gone)?;
        }
    }
    Ok(())
}

/// Ids of processes whose name begins so; kernel threads are processes of one thread.
pub(super) fn named(proc: &Path, start: &str) -> Vec<u32> {
    let processes = std::fs::read_dir(proc).into_iter().flatten().flatten();
    processes
        .filter(|process| {
            std::fs::read_to_string(process.path().join("comm")).is_ok_and(|name| name.starts_with(start))
        })
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .collect()
}
