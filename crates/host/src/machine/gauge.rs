//! What a host says of itself as a whole besides its CPUs: memory, swap, disks, and what its tasks wait for.

use super::Fact;

/// One value, and the line that told it.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    pub kind: GaugeKind,
    /// The resource, the disk, the vCPU; empty: the host.
    pub subject: String,
    /// In the unit of its kind.
    pub value: f64,
    pub place: String,
}

/// A value that no question uses, as the program that printed it calls and writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted {
    pub what: String,
    /// The VM, the container, the device; empty: the host.
    pub subject: String,
    pub value: String,
    pub place: String,
}

/// A disk that Proxmox copies to another node while its VM runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiskMove {
    /// `scsi0`.
    pub disk: String,
    /// How far it was when it was told last, and for how long it had been copied.
    pub sent_bytes: f64,
    pub total_bytes: f64,
    pub seconds: f64,
    pub place: String,
    /// What somebody allows it to send in a second.
    pub limit_bytes_per_s: Option<Fact<f64>>,
}

/// A limit of what a group may do on a disk, and what it did.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskLimit {
    /// The group, by its path.
    pub group: String,
    /// `8:16` as the limit names it, and `sdb` where that is known.
    pub number: String,
    pub disk: Option<String>,
    pub kind: DiskLimitKind,
    /// Bytes or requests in a second.
    pub most: u64,
    pub did: f64,
    pub place: String,
}

/// What a group is limited in (Documentation/admin-guide/cgroup-v2.rst, io.max, Linux 6.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskLimitKind {
    ReadBytes,
    WrittenBytes,
    Reads,
    Writes,
}

impl DiskLimitKind {
    pub(crate) const ALL: [Self; 4] = [Self::ReadBytes, Self::WrittenBytes, Self::Reads, Self::Writes];

    /// Its key in `io.max`.
    pub fn key(self) -> &'static str {
        ["rbps", "wbps", "riops", "wiops"][self as usize]
    }

    /// The counter in `io.stat` that it limits.
    pub(crate) fn counter(self) -> &'static str {
        ["rbytes", "wbytes", "rios", "wios"][self as usize]
    }
}

/// What [`Quoted`] values are called that `virsh list` has: the state of each VM.
pub(crate) const LISTED: &str = "virsh list";

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GaugeKind {
    MemoryTotal,
    MemoryAvailable,
    SwapUsed,
    /// Memory of files without a disk (tmpfs, System V, memfd), among which memory of guests may be.
    SharedMemory,
    /// Memory of the kernel's own objects that it cannot give back.
    KernelObjects,
    /// What ZFS keeps of its disks in memory.
    ZfsCache,
    SwappedIn,
    SwappedOut,
    /// Page faults that waited for a disk.
    MajorFaults,
    /// Allocations that moved pages together before they went on.
    CompactionStalls,
    /// Allocations that freed pages themselves before they went on.
    ReclaimStalls,
    /// CPU time for which KVM polled on behalf of halted vCPUs.
    HaltPolling,
    TasksBlocked,
    /// Tasks that run or want to.
    RunQueue,
    /// Some tasks waited (`some` of PSI).
    PressureSome,
    /// All tasks that were not idle waited at once (`full` of PSI).
    PressureFull,
    DiskBusy,
    /// Time of all CPUs that was idle while a task waited for a disk.
    DiskWait,
    DiskRead,
    DiskWrite,
    DiskFlush,
    DiskQueue,
    HugePages,
    HugePagesFree,
    /// How often a group was at its limit of memory, and that limit.
    LimitReached,
    MemoryLimit,
    /// Memory on transparent huge pages.
    HugeAnonymous,
    /// CPU time that a vCPU may use.
    VcpuQuota,
    /// Periods in which a group had used up the CPU time that it may use.
    Throttled,
    /// Waiting for a CPU, by all that a thread ran and waited since it began.
    Waited,
    /// The same between two copies of these sums.
    WaitedBetween,
}

impl GaugeKind {
    /// What it is called, and its unit.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            GaugeKind::MemoryTotal => ("memory", "B"),
            GaugeKind::MemoryAvailable => ("memory available", "B"),
            GaugeKind::SwapUsed => ("swap used", "B"),
            GaugeKind::SharedMemory => ("memory of files without a disk", "B"),
            GaugeKind::KernelObjects => ("memory of the kernel's objects that it keeps", "B"),
            GaugeKind::ZfsCache => ("memory that ZFS caches with", "B"),
            GaugeKind::SwappedIn => ("swapped in", "B/s"),
            GaugeKind::SwappedOut => ("swapped out", "B/s"),
            GaugeKind::MajorFaults => ("page faults that waited for a disk", "1/s"),
            GaugeKind::CompactionStalls => ("allocations that waited for compaction", "1/s"),
            GaugeKind::ReclaimStalls => ("allocations that waited until they had freed pages", "1/s"),
            GaugeKind::HaltPolling => ("polling for halted vCPUs", "CPUs"),
            GaugeKind::TasksBlocked => ("tasks blocked", "tasks"),
            GaugeKind::RunQueue => ("tasks that run or want to", "tasks"),
            GaugeKind::PressureSome => ("some tasks waited", "share"),
            GaugeKind::PressureFull => ("all tasks waited", "share"),
            GaugeKind::DiskBusy => ("disk busy", "share"),
            GaugeKind::DiskWait => ("all CPUs idle, with a task that waits for a disk", "share"),
            GaugeKind::DiskRead => ("a read takes", "ns"),
            GaugeKind::DiskWrite => ("a write takes", "ns"),
            GaugeKind::DiskFlush => ("a flush takes", "ns"),
            GaugeKind::DiskQueue => ("requests in the disk's queue", "requests"),
            GaugeKind::HugePages => ("huge pages set aside", "pages"),
            GaugeKind::HugePagesFree => ("huge pages free", "pages"),
            GaugeKind::LimitReached => ("at its limit of memory", "1/s"),
            GaugeKind::MemoryLimit => ("limit of memory", "B"),
            GaugeKind::HugeAnonymous => ("memory on transparent huge pages", "B"),
            GaugeKind::VcpuQuota => ("CPU time allowed", "CPUs"),
            GaugeKind::Throttled => ("throttled, of its periods", "share"),
            GaugeKind::Waited => ("waiting for a CPU since it began, of running and waiting", "share"),
            GaugeKind::WaitedBetween => ("waiting for a CPU between two copies, of running and waiting", "share"),
        }
    }
}
