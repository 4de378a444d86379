//! The words for Open vSwitch: bridges with their ports, polling threads with the queues that each serves.
//!
//! A polling thread (PMD) takes a whole CPU, busy or not. Its thread stands among the machine's threads as [`super::Role::Pmd`]
//! with the mask in force; here stands what the switch was asked for and what it says of itself. Names are those of
//! ovs-vswitchd.conf.db(5) and of `ovs-appctl dpif-netdev/pmd-rxq-show`, Open vSwitch 3.1.

use super::Fact;
use base::CpuSet;
use std::collections::BTreeMap;

/// Open vSwitch on a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Switch {
    pub bridges: Vec<Bridge>,
    /// CPUs for polling threads, as asked for (`other_config:pmd-cpu-mask`); `None`: one on each node.
    pub pmd_mask: Option<Fact<CpuSet>>,
    /// True if its options were read: then a mask that they lack is not set.
    pub options_read: bool,
    /// CPUs for its other threads (`other_config:dpdk-lcore-mask`).
    pub lcore_mask: Option<Fact<CpuSet>>,
    /// Whether it uses DPDK (`other_config:dpdk-init`).
    pub dpdk: Option<Fact<bool>>,
    /// Polling threads, as the switch itself lists them.
    pub pmds: Vec<Pmd>,
    /// Counters of interfaces.
    pub statistics: Vec<Fact<PortCounters>>,
}

/// Counters of an interface, by the names that the switch has for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortCounters {
    pub port: String,
    pub counters: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bridge {
    /// `br0`.
    pub name: String,
    /// True where packets stay in user space (`datapath_type` is `netdev`), so that polling threads serve its ports.
    pub user_space: bool,
    pub ports: Vec<SwitchPort>,
}

/// An interface of a bridge's port.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SwitchPort {
    /// `dpdk0`, `vhu2b4d1ae8-1e`.
    pub name: String,
    /// `dpdk`, `dpdkvhostuserclient`, `internal`, `system`.
    pub kind: String,
    /// The device on the PCI bus (`options:dpdk-devargs`), the socket (`options:vhost-server-path`).
    pub backing: Option<String>,
    /// The node of its device or of its guest's memory, where the switch tells (`status:numa_id`).
    pub node: Option<Fact<u32>>,
    /// Receive queues that were asked for (`options:n_rxq`).
    pub rx_queues: Option<u32>,
    /// Queues that were tied to CPUs (`other_config:pmd-rxq-affinity`), which then serve no other queue.
    pub rx_affinity: Vec<(u32, u32)>,
}

/// A polling thread, as the switch lists it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pmd {
    /// Its CPU (`core_id` is the kernel's CPU, not a core).
    pub cpu: u32,
    /// The node of that CPU.
    pub node: Option<u32>,
    /// Whether it serves only queues that were tied to it.
    pub isolated: bool,
    pub queues: Vec<PmdQueue>,
    /// Share of its CPU that served no queue in particular.
    pub overhead: Option<f64>,
    pub place: String,
}

/// A receive queue of a polling thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PmdQueue {
    pub port: String,
    pub queue: u32,
    /// Whether the guest uses it.
    pub enabled: bool,
    /// Share of the CPU that it took; `None`: not measured.
    pub usage: Option<f64>,
}

impl Pmd {
    /// Share of its CPU that served packets: the rest was polling for them.
    pub fn busy(&self) -> Option<f64> {
        let used: Vec<f64> = self.queues.iter().filter_map(|queue| queue.usage).collect();
        (!used.is_empty()).then(|| used.iter().sum::<f64>() + self.overhead.unwrap_or(0.0))
    }
}

impl Switch {
    /// Adds what was told of it elsewhere; what is told now counts where both tell.
    pub fn add(&mut self, told: Switch) {
        self.pmd_mask = told.pmd_mask.or_else(|| self.pmd_mask.take());
        self.options_read |= told.options_read;
        self.lcore_mask = told.lcore_mask.or_else(|| self.lcore_mask.take());
        self.dpdk = told.dpdk.or_else(|| self.dpdk.take());
        if !told.pmds.is_empty() {
            self.pmds = told.pmds;
        }
        for bridge in told.bridges {
            self.bridges.retain(|known| known.name != bridge.name);
            self.bridges.push(bridge);
        }
    }

    /// The mask for polling threads, empty where none is set; `None` if nobody read it.
    pub fn mask_in_force(&self) -> Option<String> {
        let mask = self.pmd_mask.as_ref().map(|mask| mask.value.to_string());
        mask.or_else(|| self.options_read.then(String::new))
    }

    /// The port of that name, on whichever bridge.
    pub fn port(&self, name: &str) -> Option<&SwitchPort> {
        self.bridges.iter().flat_map(|bridge| &bridge.ports).find(|port| port.name == name)
    }

    /// CPUs that polling threads have: as the switch lists them, else as it was asked for.
    pub fn pmd_cpus(&self) -> CpuSet {
        let listed: CpuSet = self.pmds.iter().map(|pmd| pmd.cpu).collect();
        let asked = || self.pmd_mask.as_ref().map(|mask| mask.value.clone()).unwrap_or_default();
        if listed.is_empty() { asked() } else { listed }
    }
}
