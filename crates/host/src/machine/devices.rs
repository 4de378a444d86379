//! The words for what carries packets and interrupts: network devices with their queues, interrupts, VMBus channels.

use super::Fact;
use base::CpuSet;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Nic {
    /// `eth0`.
    pub name: String,
    pub kind: NicKind,
    /// Its node; unknown where the firmware does not say (-1).
    pub node: Option<Fact<u32>>,
    /// Its place on the PCI bus: `0000:04:00.0`.
    pub address: Option<String>,
    /// The device it sits on: of a macvtap, a VLAN, a bond's member.
    pub lower: Vec<String>,
    /// The bridge, bond or switch that it is a port of.
    pub master: Option<String>,
    pub irqs: Vec<u32>,
    pub rx_queues: u32,
    /// Receive queues whose packets are steered to CPUs (`rps_cpus`).
    pub rps: Vec<Steering>,
    pub tx_queues: u32,
    /// Send queues that certain CPUs use (`xps_cpus`).
    pub xps: Vec<Steering>,
    pub packets_per_s: Option<f64>,
    pub bytes_per_s: Option<f64>,
    /// Virtual functions switched on, and how many there could be.
    pub virtual_functions: Option<(u32, u32)>,
    /// The virtual functions that are there, by their places on the PCI bus.
    pub functions: Vec<String>,
    /// Of a virtual function the device that it is a part of.
    pub physical_function: Option<String>,
    /// How long interrupts wait for more packets (`ethtool -c`), by the names that ethtool prints: `rx-usecs`.
    pub coalescing: BTreeMap<String, Fact<String>>,
    /// What the card does for the kernel (`ethtool -k`): true where it is on.
    pub offloads: BTreeMap<String, Fact<bool>>,
    /// Queues switched on and how many there could be (`ethtool -l`), by `combined`, `rx`, `tx`.
    pub channels: BTreeMap<String, (Fact<u32>, u32)>,
    /// Packets that its rings hold and could hold (`ethtool -g`), by `rx`, `tx`.
    pub rings: BTreeMap<String, (Fact<u32>, u32)>,
    /// What it counted (`ethtool -S`): the first look at it and the last.
    pub counters: Vec<Fact<BTreeMap<String, u64>>>,
    /// Seconds between these two, where that was told.
    pub counters_apart_s: Option<f64>,
}

/// What a network device is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NicKind {
    /// A device of hardware stands behind it.
    Physical,
    /// A card of a guest: virtio, netvsc.
    Paravirtual,
    Bridge,
    /// A tap whose other end is a file.
    Tap,
    /// A tap on another device.
    Macvtap,
    /// None of these.
    #[default]
    Other,
}

/// CPUs that a queue is tied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steering {
    pub queue: u32,
    pub cpus: Fact<CpuSet>,
}

impl Nic {
    /// Whether a device of hardware stands behind it.
    pub(crate) fn is_physical(&self) -> bool {
        self.kind == NicKind::Physical
    }

    /// CPUs of all `rps_cpus`.
    pub fn rps_cpus(&self) -> CpuSet {
        all(&self.rps)
    }

    /// CPUs of all `xps_cpus`.
    pub fn xps_cpus(&self) -> CpuSet {
        all(&self.xps)
    }
}

fn all(steered: &[Steering]) -> CpuSet {
    steered.iter().fold(CpuSet::default(), |all, queue| all.or(&queue.cpus.value))
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Irq {
    pub number: u32,
    /// Who asked for it: `eth0-TxRx-3`.
    pub name: String,
    pub affinity: Option<Fact<CpuSet>>,
    pub effective: Option<CpuSet>,
    /// The node of its device; unknown where the firmware does not say.
    pub node: Option<u32>,
    /// How often a second, by CPU.
    pub per_s: BTreeMap<u32, f64>,
    /// How often since boot, by CPU.
    pub counts: BTreeMap<u32, u64>,
}

/// Interrupts of these drivers refuse another mask: the kernel manages them itself, one for each CPU's queue
/// (Documentation/core-api/irq/managed_irq.rst and `IRQD_AFFINITY_MANAGED`, include/linux/irq.h, Linux 6.12).
const MANAGED: &[&str] = &["nvme", "megasas", "mpt3sas", "virtio"];

impl Irq {
    /// Whether the kernel manages its CPUs itself, by the driver in its name: then it refuses another mask.
    pub fn is_managed(&self) -> bool {
        MANAGED.iter().any(|driver| self.name.starts_with(driver))
    }
}

/// A channel of Hyper-V's VMBus: it interrupts one CPU, whichever irqbalance would like.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Channel {
    /// The device's id, by which sysfs knows it: `0d74d2a5-...`.
    pub device: String,
    /// What the device is: `Synthetic network adapter`, else its class.
    pub kind: String,
    /// The channel's number (`Rel_ID`).
    pub number: u32,
    /// The CPU it interrupts.
    pub cpu: Option<Fact<u32>>,
    pub interrupts: Option<u64>,
    pub per_s: Option<f64>,
}

/// What a run of iperf3 carried.
#[derive(Debug, Clone, PartialEq)]
pub struct Throughput {
    /// Bits a second that arrived, of all streams together.
    pub bits_per_s: Fact<f64>,
    pub streams: u32,
    pub seconds: f64,
    /// Segments that were sent again.
    pub retransmits: Option<u64>,
    /// `out`, `in` where both ways were measured at once; empty: one way.
    pub direction: &'static str,
}

/// A group of tasks with a set of CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// CPUs that it was given; `None`: it has those of the group above.
    pub cpus: Option<Fact<CpuSet>>,
    /// CPUs that are left of them under the groups above.
    pub effective: Option<Fact<CpuSet>>,
    pub memory_nodes: Option<CpuSet>,
    /// `member`, `root`, `isolated` (version 2).
    pub partition: Option<String>,
}

/// How much CPU time a group of tasks may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// Time in each period by the length of the period: 0.5 is half a CPU.
    pub cpus: Fact<f64>,
    pub since_start: Option<Throttled>,
    /// How often between two samples.
    pub measured: Option<Fact<Throttled>>,
}

/// What a quota took from its group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Throttled {
    pub periods: u64,
    /// Those of them in which its time was used up.
    pub throttled: u64,
    /// How long it could not run, ns: all CPUs that it was stopped on together.
    pub ns: u64,
    /// The same by the time between the samples, in CPUs; 0 where there is one sample.
    pub cpus: f64,
}

impl Throttled {
    /// The part of its periods in which it was throttled.
    pub fn share(&self) -> f64 {
        self.throttled as f64 / self.periods.max(1) as f64
    }
}
