//! What libvirt was asked for: a domain, as its XML or `virsh` tells it.

use super::Fact;
use base::CpuSet;
use std::collections::{BTreeMap, BTreeSet};

/// A domain; what was not told is missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Domain {
    pub name: String,
    /// libvirt's number, which only a running domain has.
    pub id: Option<u32>,
    /// Its process, as libvirt has noted it.
    pub pid: Option<i32>,
    /// Its vCPUs' threads by their numbers, as libvirt has noted them.
    pub vcpu_threads: BTreeMap<u32, i32>,
    /// Whether its whole XML was read: only then does an element that is not there mean that there is none.
    pub whole: Option<String>,
    pub vcpus: Option<u32>,
    /// CPUs of all vCPUs without a pin of their own (`vcpu@cpuset`).
    pub cpuset: Option<Fact<CpuSet>>,
    pub vcpu_pins: BTreeMap<u32, Fact<CpuSet>>,
    /// CPUs that vCPUs were last seen on, as libvirt told it.
    pub vcpu_last_cpus: BTreeMap<u32, Fact<u32>>,
    /// Pin of the emulator, as often as it was told, the last one in force.
    pub emulator_pins: Vec<Fact<CpuSet>>,
    pub iothreads: u32,
    /// Their numbers, where they were told one by one; else they are counted from 1.
    pub iothread_ids: BTreeSet<u32>,
    pub iothread_pins: BTreeMap<u32, Fact<CpuSet>>,
    pub memory_nodes: Option<(CpuSet, String)>,
    pub memory_bytes: Option<u64>,
    /// Whether its memory is of huge pages.
    pub huge_pages: bool,
    /// What says that QEMU translates it, without KVM.
    pub translated: Option<Fact<String>>,
    /// Features of the CPU that the definition asks for or takes away, by name: `topoext`, `x2apic`.
    pub features: BTreeMap<String, Fact<bool>>,
    /// What of Hyper-V it is shown, where that is told: `vpindex`, `synic`.
    pub hyperv: Option<Fact<BTreeSet<String>>>,
    /// Its timers that the definition names, and whether each is there: `hpet`, `kvmclock`, `hypervclock`.
    pub timers: BTreeMap<String, Fact<bool>>,
    /// CPU time that each vCPU may use, in CPUs, and its weight, as libvirt was asked for.
    pub vcpu_quota: Option<Fact<f64>>,
    pub cpu_shares: Option<Fact<u64>>,
    /// vCPUs with a real-time policy: which, the policy, its priority.
    pub realtime: Vec<Fact<(CpuSet, String, u32)>>,
    /// What the balloon leaves it.
    pub current_memory_bytes: Option<u64>,
    /// Whether other processes may map its memory, as a switch in user space has to.
    pub shared_memory: bool,
    /// Whether the command that started it was read.
    pub by_command: bool,
    /// Lines of its definition by Proxmox, where that was read: `net0`, `scsihw`, `boot`.
    pub options: BTreeMap<String, String>,
    /// Proxmox's number of it, where its own definition was read; 0: not told.
    pub proxmox: Option<u32>,
    /// Its namespace and name, where KubeVirt's own definition was read.
    pub kubevirt: Option<(String, String)>,
    /// Fields of that definition by their paths below `spec.domain`: `cpu.dedicatedCpuPlacement`.
    pub fields: BTreeMap<String, Fact<String>>,
    /// Whether another object adds to that definition, or it is of one kind of machine (`spec.preference`).
    pub is_completed: bool,
    /// What its balloon says of its memory.
    pub balloon: Option<Fact<Balloon>>,
    /// What says that its memory is to be of small pages.
    pub small_pages: Option<Fact<String>>,
    /// Names that OpenStack has for it and its flavour.
    pub nova: Option<Nova>,
    /// The file from which QEMU takes further options, as Incus and LXD start it.
    pub read_config: Option<String>,
    /// The program that runs it, where that is a monitor other than QEMU.
    pub monitor: Option<&'static str>,
    /// What says that Windows runs in it.
    pub windows: Option<Fact<String>>,
    /// `cpu@mode`: `host-passthrough`, `host-model`, `custom`.
    pub cpu_mode: Option<Fact<String>>,
    /// Sockets, cores and threads that the guest is shown.
    pub topology: Option<Fact<GuestTopology>>,
    /// NUMA nodes that the guest is shown; 0: it is shown none.
    pub guest_nodes: u32,
    /// What each of them has, by number, as far as that is told.
    pub cells: BTreeMap<u32, GuestCell>,
    pub interfaces: Vec<Interface>,
    pub disks: Vec<Disk>,
    /// Devices that a server has no use for, and where each stands.
    pub unused: Vec<Fact<String>>,
    /// Devices of the host that were given to it: their places on the PCI bus, and where that stands.
    pub host_devices: Vec<Fact<String>>,
}

/// What a guest says of its own memory, in bytes (`virsh dommemstat`); swapped since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Balloon {
    pub usable: Option<u64>,
    pub swapped_out: Option<u64>,
}

/// What nova writes into a definition (`nova:instance` in `<metadata>`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nova {
    pub server: String,
    pub flavor: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GuestTopology {
    pub sockets: u32,
    pub dies: u32,
    pub cores: u32,
    pub threads: u32,
}

/// A NUMA node that a guest is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestCell {
    pub vcpus: CpuSet,
    pub memory_bytes: Option<u64>,
    /// The host's nodes that its memory is bound to.
    pub nodes: Option<Fact<CpuSet>>,
}

/// A network device of a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    pub place: String,
    /// `net1`, else the target's name, else its position.
    pub name: String,
    /// `bridge`, `network`, `direct`, `vhostuser`, `hostdev`.
    pub kind: String,
    /// The bridge, network or lower device.
    pub source: Option<String>,
    /// How a macvtap passes packets: `vepa`, `bridge`, `private`, `passthrough`.
    pub mode: Option<String>,
    /// `virtio`, `e1000`.
    pub model: Option<String>,
    /// `vhost`, `qemu`.
    pub driver: Option<String>,
    pub queues: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    pub place: String,
    /// `vda`.
    pub target: String,
    /// `virtio`, `ide`, `scsi`, `sata`.
    pub bus: Option<String>,
    /// `none`, `writeback`, `unsafe`.
    pub cache: Option<String>,
    /// `native`, `threads`, `io_uring`.
    pub io: Option<String>,
    pub iothread: Option<u32>,
    /// `raw`, `qcow2`.
    pub format: Option<String>,
    /// What limits its rate (`iotune`): `total_iops_sec 100`.
    pub throttle: Option<String>,
}

impl Interface {
    /// Workers in the host's kernel: one for each pair of queues. `None`: vhost if `/dev/vhost-net` opens, else none.
    pub fn workers(&self) -> Option<u32> {
        let queues = self.queues.unwrap_or(1);
        match (self.kind.as_str(), self.model.as_deref(), self.driver.as_deref()) {
            ("vhostuser" | "hostdev", ..) | (_, _, Some("qemu")) => Some(0),
            (_, Some("virtio" | "virtio-transitional" | "virtio-non-transitional"), Some("vhost")) => Some(queues),
            (_, Some("virtio" | "virtio-transitional" | "virtio-non-transitional"), _) => None,
            _ => Some(0),
        }
    }
}

impl Domain {
    /// The pin of the emulator that holds: the last that was told; else what libvirt falls back to, the vCPUs' set.
    pub fn emulator_pin(&self) -> Option<&Fact<CpuSet>> {
        self.emulator_pins.last().or(self.cpuset.as_ref())
    }

    pub fn vcpu_pin(&self, vcpu: u32) -> Option<&Fact<CpuSet>> {
        self.vcpu_pins.get(&vcpu).or(self.cpuset.as_ref())
    }

    /// Whether the guest is shown groups of CPUs: several nodes, or several sockets or dies of more than one CPU.
    pub fn shows_groups(&self) -> bool {
        let groups = |shown: &Fact<GuestTopology>| {
            let shown = shown.value;
            shown.sockets.max(shown.dies) > 1 && shown.cores.max(shown.threads) > 1
        };
        self.guest_nodes > 1 || self.topology.as_ref().is_some_and(groups)
    }

    /// How many vCPUs: told, else the highest that is pinned. More than a host may have CPUs are a typing error.
    pub fn vcpu_count(&self) -> u32 {
        let pinned = self.vcpu_pins.keys().last().map_or(0, |last| last.saturating_add(1));
        let count = match (&self.whole, self.vcpus) {
            // A whole definition says how many there are; pins beyond are nobody's.
            (Some(_), Some(told)) => told,
            (_, told) => told.unwrap_or(0).max(pinned),
        };
        count.min(base::cpus::MOST_CPUS)
    }

    /// Numbers of all iothreads: those that were told, then the lowest that are free, as libvirt gives them.
    pub fn iothread_numbers(&self) -> BTreeSet<u32> {
        let mut numbers = self.iothread_ids.clone();
        let mut free = (1..).filter(|number| !self.iothread_ids.contains(number));
        while numbers.len() < self.iothreads as usize {
            numbers.extend(free.next());
        }
        numbers
    }

    /// Vhost workers by the definition: at least, at most.
    pub fn workers(&self) -> (u32, u32) {
        self.interfaces.iter().fold((0, 0), |(least, most), interface| match interface.workers() {
            Some(workers) => (least.saturating_add(workers), most.saturating_add(workers)),
            None => (least, most.saturating_add(interface.queues.unwrap_or(1))),
        })
    }

    /// Takes from the command that started it what its definition leaves to QEMU: a CPU model, disks and cards of which it has none.
    pub(super) fn complete(&mut self, started: Domain) {
        self.cpu_mode = self.cpu_mode.take().or(started.cpu_mode);
        self.translated = self.translated.take().or(started.translated);
        self.read_config = self.read_config.take().or(started.read_config);
        if self.whole.is_none() && self.cells.is_empty() {
            (self.cells, self.guest_nodes) = (started.cells, self.guest_nodes.max(started.guest_nodes));
        }
        if self.interfaces.is_empty() {
            self.interfaces = started.interfaces;
        }
        if self.disks.is_empty() {
            self.disks = started.disks;
        }
    }

    /// Adds what was told of the same domain elsewhere; what is new counts where both tell.
    pub fn add(&mut self, told: Domain) {
        fn replace<T>(old: &mut Option<T>, new: Option<T>) {
            if new.is_some() {
                *old = new;
            }
        }
        replace(&mut self.whole, told.whole);
        replace(&mut self.id, told.id);
        replace(&mut self.pid, told.pid);
        self.vcpu_threads.extend(told.vcpu_threads);
        replace(&mut self.vcpus, told.vcpus);
        replace(&mut self.cpuset, told.cpuset);
        self.options.extend(told.options);
        replace(&mut self.memory_nodes, told.memory_nodes);
        replace(&mut self.memory_bytes, told.memory_bytes);
        replace(&mut self.cpu_mode, told.cpu_mode);
        replace(&mut self.topology, told.topology);
        self.vcpu_pins.extend(told.vcpu_pins);
        self.vcpu_last_cpus.extend(told.vcpu_last_cpus);
        self.emulator_pins.extend(told.emulator_pins);
        self.iothreads = self.iothreads.max(told.iothreads);
        self.iothread_ids.extend(told.iothread_ids);
        self.iothread_pins.extend(told.iothread_pins);
        self.huge_pages |= told.huge_pages;
        replace(&mut self.translated, told.translated);
        self.features.extend(told.features);
        replace(&mut self.hyperv, told.hyperv);
        self.timers.extend(told.timers);
        replace(&mut self.vcpu_quota, told.vcpu_quota);
        replace(&mut self.cpu_shares, told.cpu_shares);
        self.realtime.extend(told.realtime);
        replace(&mut self.current_memory_bytes, told.current_memory_bytes);
        self.shared_memory |= told.shared_memory;
        self.by_command |= told.by_command;
        replace(&mut self.proxmox, told.proxmox);
        replace(&mut self.kubevirt, told.kubevirt);
        self.fields.extend(told.fields);
        self.is_completed |= told.is_completed;
        replace(&mut self.balloon, told.balloon);
        replace(&mut self.small_pages, told.small_pages);
        replace(&mut self.nova, told.nova);
        replace(&mut self.read_config, told.read_config);
        replace(&mut self.windows, told.windows);
        self.guest_nodes = self.guest_nodes.max(told.guest_nodes);
        for (number, cell) in told.cells {
            let known = self.cells.entry(number).or_default();
            known.vcpus = known.vcpus.or(&cell.vcpus);
            replace(&mut known.memory_bytes, cell.memory_bytes);
            replace(&mut known.nodes, cell.nodes);
        }
        self.interfaces.extend(told.interfaces);
        self.disks.extend(told.disks);
        self.unused.extend(told.unused);
        self.host_devices.extend(told.host_devices);
    }
}
