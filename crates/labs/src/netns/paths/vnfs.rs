//! VNFs of testpmd: one thread on the chain's CPU polls for all of them and forwards from one port of each to the other.
//!
//! ```text
//! vhost-net   virtio-user with the kernel's vhost-net behind it, which makes a tap; traffic control joins tap and port
//! ```
//! Source: doc/guides/howto/virtio_user_as_exception_path.rst (DPDK 22.11). Memory is ordinary: the kernel copies each frame anyway, and no
//! huge page has to be asked for.

use super::super::inside::within;
use super::bed::{Bed, Making};
use super::carrier::both_ways;
use crate::testpmd::{Console, PROGRAM};
use base::CpuSet;
use lab::Error;
use lab::journal::network::ip;
use lab::journal::{Owner, Step};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::Command;

/// What DPDK takes at once, in MiB: buffers and rings of sixteen ports.
const MEMORY_MIB: u32 = 512;
/// Buffers of 2,304 bytes: of the program, and more than the rings of a VNF have on either side.
const BUFFERS: u32 = 8_192;
const BUFFERS_OF_VNF: u32 = 8_192;
/// Entries of a ring of virtio-user.
const RING: u32 = 1_024;

/// What testpmd counts of a port.
const COUNTS: [&str; 4] = ["RX-packets", "RX-dropped", "TX-packets", "TX-dropped"];

/// testpmd at work; dropping it ends it.
#[derive(Debug)]
pub(super) struct Vnfs {
    // Asking it needs its standard input.
    console: RefCell<Console>,
    ports: u32,
}

/// testpmd's words for its ports.
pub(super) fn devices(vnfs: u32) -> Vec<String> {
    let device = |port| {
        let tap = tap_of(port);
        format!("--vdev=net_virtio_user{port},path=/dev/vhost-net,queues=1,queue_size={RING},iface={tap}")
    };
    (0..2 * vnfs).map(device).collect()
}

/// The tap of a port of testpmd.
pub(super) fn tap_of(port: u32) -> String {
    format!("tap{port}")
}

/// The counter of a port of testpmd.
pub(super) fn counter(port: u32, what: &str) -> String {
    format!("testpmd port {port} {what}")
}

/// DPDK does not know devices whose driver is not installed: the sentence names the Debian package that brings it.
fn with_package(error: Error) -> Error {
    match error {
        Error::Died(why) if why.contains("failed to parse device") => {
            Error::Absent(format!("{why}; DPDK's driver is in the Debian package librte-net-virtio23"))
        }
        other => other,
    }
}

impl Vnfs {
    /// Starts it in the namespace of the chain, and waits until it forwards.
    pub(super) fn start(bed: &Bed, making: &mut Making<'_>) -> Result<Self, Error> {
        let directory = making.run_directory()?;
        let mut command = Command::new("stdbuf");
        command.args(["-oL", PROGRAM, "--no-huge", "-m", &MEMORY_MIB.to_string(), "--no-pci", "--no-telemetry"]);
        command.args(["--file-prefix=vnfs", "--lcores", &format!("0@{},1@{}", bed.cpus.sender, bed.cpus.chain)]);
        command.args(devices(bed.vnfs)).args(["--", "-i", "--no-mlockall", "--forward-mode=io"]);
        command.args(["--nb-cores=1", "--no-lsc-interrupt", "--disable-link-check"]);
        command.arg(format!("--total-num-mbufs={}", BUFFERS + BUFFERS_OF_VNF * bed.vnfs));
        command.env("RUNTIME_DIRECTORY", &directory);
        let cpus = CpuSet::from_iter([bed.cpus.sender, bed.cpus.chain]);
        let mut console = Console::start(within(&bed.chain, &command), &cpus)?;
        making.entry.intend(Step::Process(Owner::of(making.proc, console.pid())?))?;
        console.command("start")?;
        let forwards = console.until("testpmd forwards", making.stop, |console| Ok(console.forwards()));
        forwards.map_err(with_package)?;
        for port in 0..2 * bed.vnfs {
            ip(&["-n", &bed.chain, "link", "set", &tap_of(port), "up"])?;
            both_ways(&bed.chain, &tap_of(port), &format!("port{port}"))?;
        }
        Ok(Self { console: RefCell::new(console), ports: 2 * bed.vnfs })
    }

    pub(super) fn counters(&self, bed: &Bed) -> Result<BTreeMap<String, u64>, Error> {
        let (told, _) = self.console.borrow_mut().statistics(bed.stop)?;
        let mut counters = BTreeMap::new();
        for port in 0..self.ports {
            let of = told.forwarded.get(&port).copied().unwrap_or_default();
            let counts = COUNTS.into_iter().zip([of.rx_packets, of.rx_dropped, of.tx_packets, of.tx_dropped]);
            counters.extend(counts.filter_map(|(what, count)| Some((counter(port, what), count?))));
        }
        Ok(counters)
    }
}
