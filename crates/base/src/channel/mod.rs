//! What one run over a path between two machines carried, what each side saw meanwhile, and how it was disturbed. `bench channel` writes
//! it into a result of a [`Bench`](crate::Bench).
//!
//! Time is cut into slices. A slice is clean if neither side saw a gap in it: between two looks at the ring, the counter of its CPU moved
//! by more than [`GAP_NS`], and by more than [`GAP_BATCHES`] batches usually take, so that somebody else had that CPU, or the hypervisor
//! below had it.

mod delays;
mod faults;
mod flows;

pub use delays::{Delays, GIVEN, LOSS_10_PPM, NO_LOSS, Search};
pub use faults::{Fault, Faults, RULES};
pub use flows::FlowRun;

use serde::{Deserialize, Serialize};

/// The name of the bench.
pub const BENCH: &str = "channel";
/// A side looked away for longer than a batch takes.
pub const GAP_NS: u64 = 5_000;
/// And for longer than so many batches usually take this side: a large one takes its time.
pub const GAP_BATCHES: u64 = 4;
/// Packets are counted for each such slice of the time, unless [`Run::slice_ns`] says otherwise.
pub const SLICE_NS: u64 = 100_000;
/// With fewer clean slices than this share nothing can be said of the path.
pub const LEAST_CLEAN: f64 = 0.2;
/// What the thread is called that sends, so that people find it among others.
pub const SENDER: &str = "channel-send";
/// And the one that receives.
pub const RECEIVER: &str = "channel-recv";
/// And one of more than two machines, which does both.
pub const MACHINE: &str = "channel-vm";
/// A switch between them, or who writes their flow table.
pub const SWITCH: &str = "channel-switch";
/// In the environment of such a bench: the second-level cache of the CPU that receives, as `size` below `/sys` has it.
pub const L2_CACHE: &str = "L2 cache";
/// Where it tells windows that somebody gave a price of, to be modelled: `vmfunc=196, mine=20`, in ns.
pub const GIVEN_WINDOWS: &str = "windows to be modelled";
/// Whether processes have protection keys: `yes`, `no`.
pub const PROTECTION_KEYS: &str = "protection keys";
/// CPUs that are online, as a list.
pub const ONLINE: &str = "online CPUs";
/// Gaps that are kept of each side, the longest.
pub const MOST_GAPS: usize = 2_000;

/// Paths of DPDK. Its programs keep them busy and count frames; nobody looks at what stands in a frame.
pub const DPDK_PATHS: [&str; 3] = [MEMIF, RTE_RING, VHOST_USER];
/// Shared memory interface: one side copies frames into the memory of the other, or out of it.
pub const MEMIF: &str = "memif";
/// A ring of pointers within one process: no frame is copied.
pub const RTE_RING: &str = "rte-ring";
/// A virtio device in user space, and the vhost port behind it.
pub const VHOST_USER: &str = "vhost-user";
/// What [`RTE_RING`] moves of a frame: a pointer.
pub const POINTER_BYTES: u32 = 8;

/// How the two CPUs are related, in [`Run::pair`].
pub const PAIRS: [&str; 5] = ["same CPU", "same core", "same last-level cache", "same node", "other node"];

/// How a run was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setup {
    /// `ring`, `ring-ro`, `switch`, `ivshmem-plain`, `ivshmem-doorbell`, or one of [`DPDK_PATHS`].
    pub path: String,
    /// `none`, `pkey`, `mprotect`.
    pub window: String,
    /// Of a frame.
    pub size_bytes: u32,
    /// Frames that go at once, at most.
    pub batch: u32,
    /// `poll`, `kick`, `adaptive`.
    pub policy: String,
    /// Machines that take part.
    pub vms: u32,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// How it was made.
    #[serde(flatten)]
    pub setup: Setup,
    /// Slots of the ring, and bytes that each frame moves between CPUs.
    pub slots: u32,
    /// See there.
    pub moved_bytes: u32,
    /// Bytes of the whole ring.
    pub ring_bytes: u64,
    /// How long was measured.
    pub ns: u64,
    /// Frames that arrived meanwhile.
    pub packets: u64,
    /// Slices that were measured.
    pub slices: u64,
    /// How long a slice is; where they differ, the mean of the clean ones, and of all if none is clean.
    #[serde(default = "slice_ns")]
    pub slice_ns: u64,
    /// Those without a gap of either side, and what arrived in them.
    pub clean_slices: u64,
    /// See there.
    pub clean_packets: u64,
    /// Whether each frame's number and checksum were looked at where it arrived.
    pub verified: bool,
    /// Whether both ends counted their frames, so that `lost` is known although nobody looked at them.
    #[serde(default)]
    pub counted: bool,
    /// Frames that were sent and never arrived.
    pub lost: u64,
    /// Arrived twice.
    pub duplicated: u64,
    /// Arrived after a later one.
    pub reordered: u64,
    /// Their checksum was not that of their contents.
    pub torn: u64,
    /// Frames that a switch had no room for in the ring of their machine: it waits for nobody.
    #[serde(default)]
    pub dropped: u64,
    /// One opening and closing of the window with nothing inside, the median; 0 without a window.
    pub window_ns: f64,
    /// Kicks of both sides.
    pub kicks: u64,
    /// From the first step of connecting the two sides until the first frame arrived, where that was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_ns: Option<u64>,
    /// Its parts in order, behind that in which both processes came up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup_parts: Vec<SetupPart>,
    /// How the two CPUs are related: one of [`PAIRS`].
    pub pair: String,
    /// Who sends.
    pub producer: Side,
    /// Who receives.
    pub consumer: Side,
    /// More machines than two, the switch last: each sends and receives, as the first two then do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Side>,
    /// Both sides ran in guests that QEMU emulated (TCG): times are the emulator's.
    #[serde(default)]
    pub emulated: bool,
}

/// A part of setting a path up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupPart {
    /// `processes`, `attach`, `link`, `first frame`.
    pub name: String,
    /// How long it took.
    pub ns: u64,
}

/// What [`Run::slice_ns`] was before runs said so.
fn slice_ns() -> u64 {
    SLICE_NS
}

/// What one side saw while it was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Its thread.
    pub tid: i32,
    /// The CPU that it was bound to.
    pub cpu: u32,
    /// Between the two moments that the counts below are of: the first and the last look of this side, which may sleep at both ends of
    /// the measured time.
    #[serde(default)]
    pub ns: u64,
    /// Time that it ran.
    pub cpu_ns: u64,
    /// Time that it was ready and did not run (`schedstat`).
    pub waited_ns: u64,
    /// Times that it gave its CPU away.
    pub voluntary: u64,
    /// Times that its CPU was taken.
    pub involuntary: u64,
    /// Pages that it touched first.
    pub faults: u64,
    /// Windows, and the time that they were open: median, 99th percentile, longest, sum. 0 where there are none.
    pub windows: u64,
    /// See there.
    pub open_p50_ns: u64,
    /// See there.
    pub open_p99_ns: u64,
    /// See there.
    pub open_max_ns: u64,
    /// See there.
    pub open_ns: u64,
    /// From here on a stretch between two looks was a gap.
    #[serde(default)]
    pub gap_from_ns: u64,
    /// Gaps that it saw, all of them.
    pub gap_count: u64,
    /// Their lengths together.
    pub gap_ns: u64,
    /// When the longest began, since the first look, and how long each was; in order of time.
    pub gaps: Vec<(u64, u64)>,
    /// The time-stamp counter at the first look, that gaps count from, and at the end of [`Run::ns`]: by these two a trace of the machine
    /// explains the gaps. `None` where nothing relates the two.
    #[serde(default)]
    pub tsc: Option<(u64, u64)>,
}

impl Run {
    /// All that took part.
    pub fn sides(&self) -> impl Iterator<Item = &Side> {
        [&self.producer, &self.consumer].into_iter().chain(&self.others)
    }

    /// Millions of frames per second, over all of the time.
    pub fn raw_mpps(&self) -> f64 {
        self.packets as f64 * 1e3 / self.ns.max(1) as f64
    }

    /// Over clean slices; `None` where too few of them were.
    pub fn clean_mpps(&self) -> Option<f64> {
        let enough = self.clean_share() >= LEAST_CLEAN;
        enough.then(|| self.clean_packets as f64 * 1e3 / (self.clean_slices as f64 * self.slice_ns as f64))
    }

    /// Of all slices, those that were clean.
    pub fn clean_share(&self) -> f64 {
        self.clean_slices as f64 / self.slices.max(1) as f64
    }

    /// What the time-stamp counter showed so long after the first look of one of its sides.
    pub fn tsc_at(&self, side: &Side, at_ns: u64) -> Option<u64> {
        let (from, until) = side.tsc.filter(|(from, until)| from < until && self.ns > 0)?;
        let ticks = u128::from(at_ns) * u128::from(until - from) / u128::from(self.ns);
        u64::try_from(u128::from(from) + ticks).ok()
    }

    /// Frames that did not arrive as they were sent.
    pub fn wrong(&self) -> u64 {
        [self.duplicated, self.reordered, self.torn].into_iter().fold(self.lost, u64::saturating_add)
    }
}
