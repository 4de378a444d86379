//! A recording's timeline added up at the zooms that a page will have: nothing of it can be asked further.

use super::{Condensed, Coverage, Lane, Marker, State, StateId, VcpuLane, Zooms};
use crate::Span;
use std::sync::Arc;

/// Columns of a vCPU's lane. A page is seldom wider than this in pixels, and paper prints no more.
pub const COLUMNS: u32 = 1_200;

/// Columns of other lanes, which are lower too.
pub const COLUMNS_BESIDE: u32 = 600;

/// A timeline that is added up.
#[derive(Debug, Clone, Default)]
pub struct Overview {
    /// The states that occur.
    pub states: Vec<State>,
    /// Lanes: of vCPUs first, then those of other kinds.
    pub lanes: Vec<LaneSums>,
    /// The vCPUs of the first lanes, by lane.
    pub vcpus: Vec<VcpuLane>,
    /// Named instants, in time order.
    pub markers: Vec<Marker>,
    /// What is not drawn and why, in sentences.
    pub notes: Vec<String>,
    /// What is not in it because the recording is too long, in sentences.
    pub bounds: Vec<String>,
    /// Where it ends; it begins at 0.
    pub end_ns: u64,
}

/// A lane that is added up.
#[derive(Debug, Clone)]
pub struct LaneSums {
    /// The lane.
    pub lane: Lane,
    /// Its sums.
    pub sums: Condensed,
    /// The number of each state of the sums in the overview's table.
    pub states: Arc<[StateId]>,
    /// Its chains.
    pub chains: u64,
}

impl Overview {
    /// From the first lane's begin to the last one's end.
    pub fn span(&self) -> Span {
        Span { from_ns: 0, to_ns: self.end_ns }
    }

    /// The zooms of its first `lanes` lanes, coarse to fine.
    pub fn zooms(&self, lanes: usize) -> Vec<u32> {
        if self.end_ns == 0 || lanes == 0 {
            return Vec::new();
        }
        let zooms = Zooms::of(self.end_ns);
        zooms.down_to(zooms.finest_of(self.states.len(), lanes)).collect()
    }

    /// What the pixels of `zoom` cover.
    pub fn window(&self, zoom: u32) -> Span {
        Zooms::of(self.end_ns).window(zoom)
    }

    /// How many pixels that are.
    pub fn width(&self, zoom: u32) -> u32 {
        Zooms::of(self.end_ns).width(zoom)
    }

    /// The pixels of `lane` at `zoom`, one of [`zooms`](Self::zooms).
    pub fn pixels(&self, lane: usize, zoom: u32) -> Coverage {
        let of = &self.lanes[lane];
        let own = of.sums.pixels();
        let own_ns = own.window().length_ns() / u64::from(own.width());
        let times = (1 << zoom) / own_ns.max(1);
        own.coarser(self.window(zoom), times as u32).coverage(self.states.len(), &of.states)
    }

    /// The whole of `lane` in columns.
    pub fn columns(&self, lane: usize) -> Coverage {
        let of = &self.lanes[lane];
        of.sums.columns(self.states.len(), &of.states)
    }

    /// The time of `lane` in each state.
    pub fn totals_ns(&self, lane: usize) -> Vec<u64> {
        let of = &self.lanes[lane];
        of.sums.totals_ns(self.states.len(), &of.states)
    }
}
