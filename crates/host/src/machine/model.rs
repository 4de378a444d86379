//! The words for a machine whose threads have places.

use super::{
    Cgroup, Channel, Complaint, DiskLimit, DiskMove, Domain, Gauge, Interface, Irq, LISTED, Nic, Quota, Quoted, Switch,
    Throughput, Topology,
};
use crate::processor::Vendor;
use base::CpuSet;
use base::setting::ThreadId;
use std::collections::BTreeMap;
use std::fmt;

/// Something that was told, and the file or line that told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact<T> {
    pub value: T,
    /// `ticket.txt:12`, `proc/12/task/13/status`.
    pub place: String,
}

impl<T> Fact<T> {
    pub fn new(value: T, place: impl Into<String>) -> Self {
        Self { value, place: place.into() }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Machine {
    pub topology: Topology,
    /// What its kernel says of itself: its release and who built it, where that is told.
    pub kernel: Option<String>,
    /// Who made the processor.
    pub vendor: Option<Fact<Vendor>>,
    /// NUMA nodes, by number.
    pub nodes: BTreeMap<u32, Node>,
    /// Whether any process was listed: else nobody knows that no VM runs.
    pub lists_processes: bool,
    /// Threads that belong to VMs or carry their packets, and others that were told to be busy.
    pub threads: Vec<Thread>,
    /// Domains, as libvirt defines them.
    pub domains: Vec<Domain>,
    pub nics: Vec<Nic>,
    pub irqs: Vec<Irq>,
    /// Interrupts of each CPU's own timer, a second.
    pub timer_interrupts: Option<Fact<BTreeMap<u32, f64>>>,
    /// Channels of Hyper-V's VMBus, which interrupt a CPU each.
    pub channels: Vec<Channel>,
    pub switch: Switch,
    /// Groups with a set of CPUs of their own, by their paths below the cgroup's root (`/machine.slice/web`).
    pub cgroups: BTreeMap<String, Cgroup>,
    /// Groups whose CPU time is limited, by their paths below the root of the CPU controller.
    pub quotas: BTreeMap<String, Quota>,
    /// Weights of groups that threads are in, by the same paths: `cpu.weight`, in version 1 `cpu.shares`.
    pub weights: BTreeMap<String, Fact<u64>>,
    /// Bytes of each VM's memory by node, where its pages were counted.
    pub vm_memory: BTreeMap<String, Fact<BTreeMap<u32, u64>>>,
    /// Bytes of it on pages of 4 KiB, those of transparent huge pages among them.
    pub vm_small_pages: BTreeMap<String, Fact<u64>>,
    /// The nodes to which most of its memory is bound, where its mappings tell a policy.
    pub vm_bound: BTreeMap<String, Fact<CpuSet>>,
    /// Processes of no VM that have most memory, the largest first, where the host swaps.
    pub holders: Vec<Holder>,
    /// The same of processes of which nobody told whose they are.
    pub process_memory: Vec<ProcessMemory>,
    /// Nodes of devices on the PCI bus that a VM or a switch has, by their places there.
    pub pci_nodes: BTreeMap<String, Fact<u32>>,
    /// What runs of iperf3 carried.
    pub throughput: Vec<Throughput>,
    /// How each CPU was used.
    pub cpu_use: BTreeMap<u32, CpuUse>,
    /// How all CPUs together were used, each time it was told.
    pub total_use: Vec<Fact<TotalUse>>,
    /// Whether the kernel can carry packets of virtio cards: vhost_net is loaded or built in.
    pub vhost_net: Option<Fact<bool>>,
    /// What the host says of itself as a whole besides its CPUs, in the order of the texts.
    pub gauges: Vec<Gauge>,
    /// Limits of disks that groups of VMs have, with what these did.
    pub disk_limits: Vec<DiskLimit>,
    /// Disks that are copied to another node.
    pub disk_moves: Vec<DiskMove>,
    /// Values that no question uses, in the order of the texts.
    pub quoted: Vec<Quoted>,
    /// Sentences that sum up what programs printed of whom no question knows more, in the order of the texts.
    pub summaries: Vec<Fact<String>>,
    /// Lines of the kernel's log that say what is wrong.
    pub complaints: Vec<Fact<Complaint>>,
    /// How many of its other lines were given.
    pub kernel_lines: u64,
    /// Pages that NUMA balancing moved, a second.
    pub pages_moved_per_s: Option<Fact<f64>>,
    /// Screens of `top`, in the order in which they were given.
    pub screens: Vec<Screen>,
    /// Settings by their paths (`proc/sys/vm/swappiness`), as read.
    pub settings: BTreeMap<String, Fact<String>>,
    /// How long the machine was looked at between two samples, for every rate here; `None`: one moment only.
    pub span_ns: Option<u64>,
    /// Threads seen in one sample only: appeared, vanished.
    pub passing: (u64, u64),
    /// What was there and could not be read or understood, as sentences.
    pub unread: Vec<String>,
    /// Of each pasted text with lines that were not understood a sentence: how many, and the first of them.
    pub strange: Vec<String>,
    /// Files that were read, and for pasted text the lines of each that were understood and that were not.
    pub sources: Vec<(String, u64, u64)>,
}

/// A NUMA node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    pub total_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    /// Distances to all nodes by number, as the firmware tells them; 10 is itself.
    pub distances: BTreeMap<u32, u32>,
    /// Huge pages set aside: size in KiB, how many, how many of them free.
    pub huge_pages: Vec<(u64, u64, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Runs the guest's CPU of that number.
    Vcpu(u32),
    /// Carries packets between a tap and a guest's queue.
    Vhost,
    /// QEMU's main loop and helpers.
    Emulator,
    /// An iothread of that number.
    IoThread(u32),
    /// A polling thread of a user-space switch.
    Pmd,
    /// None of these.
    Other,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Vcpu(number) => write!(f, "vcpu {number}"),
            Role::Vhost => f.write_str("vhost"),
            Role::Emulator => f.write_str("emulator"),
            Role::IoThread(number) => write!(f, "iothread {number}"),
            Role::Pmd => f.write_str("pmd"),
            Role::Other => f.write_str("other"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    pub name: String,
    pub role: Role,
    /// True if the role was concluded rather than told.
    pub assumed: bool,
    /// The VM it serves.
    pub vm: Option<String>,
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    /// When it started, in clock ticks from boot, where its `stat` was read.
    pub start_ticks: Option<u64>,
    /// CPUs it may run on: the mask in force, else the pin that libvirt was asked for.
    pub affinity: Option<Fact<CpuSet>>,
    /// The CPU it was last seen on.
    pub last_cpu: Option<Fact<u32>>,
    /// Share of one CPU that it ran.
    pub run_share: Option<Fact<f64>>,
    /// Share of the time that it was runnable and did not run.
    pub wait_share: Option<Fact<f64>>,
    /// How often a second it was pushed off a CPU.
    pub pushed_off_per_s: Option<f64>,
    /// Scheduling policy by its number (`sched.h`): 0 normal, 1 FIFO, 2 RR.
    pub policy: Option<u32>,
    /// Its nice value, from -20, which counts most, to 19.
    pub nice: Option<i32>,
    /// True if the kernel refuses another CPU mask for it, as for threads that it has for each CPU.
    pub is_fixed: bool,
    /// The cgroup that its CPU set comes from.
    pub cgroup: Option<String>,
    /// The cgroup that its CPU time comes from: another one only in version 1.
    pub time_group: Option<String>,
    pub memory_nodes: Option<CpuSet>,
}

impl Thread {
    /// A thread of which nothing but its role is known.
    pub fn new(role: Role, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            role,
            assumed: false,
            vm: None,
            pid: None,
            tid: None,
            start_ticks: None,
            affinity: None,
            last_cpu: None,
            run_share: None,
            wait_share: None,
            pushed_off_per_s: None,
            policy: None,
            nice: None,
            is_fixed: false,
            cgroup: None,
            time_group: None,
            memory_nodes: None,
        }
    }

    /// What tells it from other threads, where its id is known. Names that a person pasted may be cut or made up, so the
    /// name counts only beside a start time.
    pub fn id(&self) -> Option<ThreadId> {
        let comm = self.start_ticks.map(|_| self.name.clone());
        Some(ThreadId { tid: self.tid?, start_ticks: self.start_ticks, comm })
    }

    /// Starvation: the part of its wish to run in which it waited. `None` where waiting was not measured.
    pub fn starvation(&self) -> Option<f64> {
        let (run, wait) = (self.run_share.as_ref()?.value, self.wait_share.as_ref()?.value);
        (run + wait > 0.0).then(|| wait / (run + wait))
    }
}

/// A process of no VM with much memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: i32,
    pub name: String,
    /// What of its memory is in RAM, in bytes.
    pub resident: Fact<u64>,
    /// The cgroup that its memory counts in.
    pub group: Option<String>,
}

/// Memory of a process by node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessMemory {
    pub pid: i32,
    pub name: String,
    /// Bytes by node.
    pub bytes: Fact<BTreeMap<u32, u64>>,
}

/// How a CPU was used, as shares of the time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuUse {
    /// Programs and the kernel for them, guests among them.
    pub busy: f64,
    pub irq: f64,
    pub softirq: f64,
    /// Taken by the machine below.
    pub steal: f64,
    pub idle: f64,
}

/// How all CPUs together were used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TotalUse {
    /// Shares of the time of all CPUs.
    pub shares: CpuUse,
    /// Idle, with a task that waits for a disk: part of `shares.idle`.
    pub wait: f64,
}

/// A screen of `top`, `ps` or `pidstat`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Screen {
    pub place: String,
    pub rows: Vec<TopRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TopRow {
    pub place: String,
    pub pid: i32,
    /// The process that the thread is of; `None`: not told.
    pub process: Option<i32>,
    /// `R`, `S`.
    pub state: char,
    /// Share of one CPU; above 1 the row is a process with its threads added up.
    pub share: Option<f64>,
    /// Whether that is of the whole time since it began, as `ps` has it.
    pub average: bool,
    /// Share of the time that it was runnable and did not run.
    pub wait: Option<f64>,
    /// CPU time since it began, in hundredths of a second.
    pub time_cs: Option<u64>,
    pub command: String,
    /// The CPU it was last seen on (`P`).
    pub last_cpu: Option<u32>,
}

impl Machine {
    /// How many VMs `virsh list` has that run.
    pub fn listed_running(&self) -> usize {
        self.quoted.iter().filter(|told| told.what == LISTED && told.value == "running").count()
    }

    /// The domain of that name, made if it is not there yet.
    pub(crate) fn domain_mut(&mut self, name: &str) -> &mut Domain {
        let index = self.domains.iter().position(|domain| domain.name == name).unwrap_or_else(|| {
            self.domains.push(Domain { name: name.to_owned(), ..Domain::default() });
            self.domains.len() - 1
        });
        &mut self.domains[index]
    }

    /// The network device that an interrupt is of: by the device's own list, else by the interrupt's name.
    pub fn nic_of(&self, irq: &Irq) -> Option<&Nic> {
        let named =
            |nic: &&Nic| irq.name.strip_prefix(&nic.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        self.nics.iter().find(|nic| nic.irqs.contains(&irq.number)).or_else(|| self.nics.iter().find(named))
    }

    /// The cards of hardware behind a VM's interface: a macvtap's, a bridge's, those of a user-space switch.
    pub fn cards_of<'a>(&'a self, interface: &'a Interface) -> Vec<&'a Nic> {
        let Some(source) = interface.source.as_deref() else { return Vec::new() };
        let mut names: Vec<&str> = vec![source];
        // A tap has the cards of its bridge.
        let bridge = self.nics.iter().find(|nic| nic.name == source).and_then(|nic| nic.master.as_deref());
        let ports = self
            .nics
            .iter()
            .filter(|nic| nic.master.is_some() && [Some(source), bridge].contains(&nic.master.as_deref()));
        names.extend(ports.map(|nic| nic.name.as_str()));
        let lower: Vec<&str> = self
            .nics
            .iter()
            .filter(|nic| names.contains(&nic.name.as_str()))
            .flat_map(|nic| &nic.lower)
            .map(String::as_str)
            .collect();
        names.extend(lower);
        self.nics.iter().filter(|nic| nic.is_physical() && names.contains(&nic.name.as_str())).collect()
    }

    pub fn setting(&self, path: &str) -> Option<&str> {
        self.settings.get(path).map(|fact| fact.value.as_str())
    }

    /// Threads of a VM.
    pub fn threads_of<'a>(&'a self, vm: &'a str) -> impl Iterator<Item = &'a Thread> {
        self.threads.iter().filter(move |thread| thread.vm.as_deref() == Some(vm))
    }

    /// Whether anything here is only where VMs run: then it is their host.
    pub fn runs_vms(&self) -> bool {
        let is_of_vms = |thread: &Thread| thread.vm.is_some() || thread.role != Role::Other;
        !self.domains.is_empty()
            || self.threads.iter().any(is_of_vms)
            || self.switch != Switch::default()
            || !self.disk_moves.is_empty()
    }

    /// Whether anything was told at all.
    pub fn is_empty(&self) -> bool {
        self.topology.cpus.is_empty()
            && self.threads.is_empty()
            && self.domains.is_empty()
            && self.screens.is_empty()
            && self.irqs.is_empty()
            && self.cpu_use.is_empty()
            && self.total_use.is_empty()
            && self.switch == Switch::default()
            && self.throughput.is_empty()
            && self.nics.is_empty()
            && self.gauges.is_empty()
            && self.quoted.is_empty()
            && self.disk_moves.is_empty()
            && self.complaints.is_empty()
            && self.kernel_lines == 0
            && self.process_memory.is_empty()
            && self.settings.is_empty()
    }
}
