//! Where was every vCPU, at every instant and every zoom?
//!
//! What interactive views, exports to other viewers and Python share. A lane is a row of slices that touch, each in
//! one of the timeline's named states; markers name instants; chains are a list of their own. Built on request only: text and
//! JSON reports never need it.
//!
//! ```text
//! lane 0   [ guest_l1 ][ handling ][ guest_l2 ][handling]...      window [from, to) cut into `width` pixels:
//! lane 1   [ halted            ][ guest_l1       ]...             exact time per state, longest slice, count
//! ```
//! Coverage is exact and not sampled: exits last microseconds and come by the thousand, so a pixel that showed only
//! its longest slice would paint a vCPU that spends a third of its time in L0 as solid guest.

mod chain;
mod columns;
mod condensed;
mod drawn;
mod grid;
mod overview;
mod ranking;
mod reasons;
mod search;
mod stacks;
pub mod tile;
mod wakes;
mod zooms;

pub use chain::{Chain, ChainRequest, ChainSlices, ChainSums, is_undisturbed};
pub use columns::Columns;
pub use condensed::Condensed;
pub use drawn::{Cut, Drawn, VcpuLane};
pub use grid::Grid;
pub use overview::{COLUMNS, COLUMNS_BESIDE, LaneSums, Overview};
pub use ranking::{ChainRanks, Ranked, RanksOfReason, lead_ns};
pub use reasons::ReasonSum;
pub use search::{Found, Search};
pub use stacks::{StackSum, Stacks, VcpuStacks};
pub use wakes::{WakeUp, WakeUps, Waker};
pub use zooms::Zooms;

use crate::Span;
use serde::Serialize;

/// Position of a lane in [`Timeline::lanes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct LaneId(pub u32);

/// Position of a state in [`Timeline::states`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub u8);

/// A slice by its lane and its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceId {
    /// Its lane.
    pub lane: LaneId,
    /// Its position.
    pub index: u32,
}

/// One state of the table that all lanes share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct State {
    /// Stable name, that of the ledger's column without its unit: `guest_l2`, `preempted`.
    pub name: String,
    /// What people read: `L2 guest`.
    pub title: String,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// Whose time it shows.
    pub kind: LaneKind,
    /// What it stands below, such as a VM.
    pub group: String,
    /// What it is, such as a vCPU.
    pub title: String,
    /// The thread whose time it is, if it is one's.
    pub tid: Option<i32>,
}

crate::named! {
    /// Whose time a lane shows. Lanes of one time line overlap: a vCPU's time is a CPU's time too, so nobody adds them up.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum LaneKind {
        /// A vCPU thread of the recorded machine.
        Vcpu = "vcpu",
        /// A CPU of the recorded machine.
        Cpu = "cpu",
        /// A vhost worker.
        Vhost = "vhost",
        /// Another thread of the VMM: its main thread, or one that is neither vCPU nor iothread.
        Emulator = "emulator",
        /// A thread on which the VMM serves devices.
        Iothread = "iothread",
        /// A vCPU that a guest runs, as the guest's own trace tells.
        GuestVcpu = "guest_vcpu",
        /// A CPU of a guest, as the guest's own trace tells.
        GuestCpu = "guest_cpu",
    }
}

/// One stay in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// By which it is asked for again.
    pub id: SliceId,
    /// When.
    pub span: Span,
    /// In which state.
    pub state: StateId,
}

/// A named instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Marker {
    /// The lane it belongs to, or all of them.
    pub lane: Option<LaneId>,
    /// When.
    pub at_ns: u64,
    /// What happened: lost events, a migration's phase.
    pub label: String,
}

/// Slices of a window, as many as were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slices {
    /// In time order.
    pub slices: Vec<Slice>,
    /// How many more the window holds.
    pub left_out: u64,
}

/// What a window holds, pixel by pixel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Number of states.
    pub states: usize,
    /// Exact time of each pixel in each state: pixel `p`, state `s` at `p * states + s`. What a pixel's states do not
    /// fill lies before the lane's first slice or after its last.
    pub time_ns: Vec<u64>,
    /// Each pixel's slice that lasts longest, whole and not only inside the pixel; the first of equals.
    pub longest: Vec<Option<u32>>,
    /// How many slices each pixel touches.
    pub count: Vec<u32>,
}

/// The most pixels answered at once: eight 8K screens side by side.
pub const WIDEST: u32 = 1 << 16;

/// A timeline. A lane, slice or window that is not there is empty, never an error.
pub trait Timeline {
    /// The state table.
    fn states(&self) -> &[State];
    /// The lanes, in the order in which they are shown.
    fn lanes(&self) -> &[Lane];
    /// Named instants, in time order.
    fn markers(&self) -> &[Marker];
    /// From the first slice's start to the last one's end, over all lanes.
    fn span(&self) -> Span;
    /// The first `most` slices of `lane` that touch `window`.
    fn slices(&self, lane: LaneId, window: Span, most: usize) -> Slices;
    /// What `lane` did in `window`, cut into `width` pixels (at most [`WIDEST`]) that differ by at most 1 ns.
    fn coverage(&self, lane: LaneId, window: Span, width: u32) -> Coverage;
    /// One slice with what is known of it, such as its exit reason; empty where nothing more is known.
    fn detail(&self, id: SliceId) -> Option<(Slice, &str)>;
}

/// Where pixel `index` of `width` starts: pixels tile the window without gap and without rest.
pub fn pixel_start(window: Span, index: u32, width: u32) -> u64 {
    let offset = u128::from(window.length_ns()) * u128::from(index) / u128::from(width.max(1));
    // No more than the window's length, which fits.
    window.from_ns + offset as u64
}
