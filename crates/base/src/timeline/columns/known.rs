//! What is known of slices beside their state: searched through, and added up over a window.

use super::{Columns, Track};
use crate::Span;
use crate::timeline::search::{Fitting, Met};
use crate::timeline::{Found, LaneId, ReasonSum, Search, SliceId, StateId};
use std::collections::HashMap;

impl Columns {
    /// Slices of which a text that `fits` is known, or whose state has a title that does.
    pub fn search(&self, search: &Search<'_>, fits: impl Fn(&str) -> bool) -> Found {
        let fitting = Fitting {
            texts: self.details.texts.iter().map(|text| fits(text)).collect(),
            states: self.states.iter().map(|state| fits(&state.title)).collect(),
        };
        let mut met = Met::default();
        for lane in search.lanes {
            let Some(track) = self.track(*lane) else { continue };
            track.search(*lane, search, &fitting, &mut met);
        }
        met.into()
    }

    /// The slices of `lanes` of which anything is known, cut at the ends of `window` and added up; what took longest first.
    pub fn reasons(&self, lanes: &[LaneId], window: Span) -> Vec<ReasonSum<'_>> {
        let mut sums: HashMap<(u8, u32), (u64, u64)> = HashMap::new();
        for lane in lanes {
            let Some(track) = self.track(*lane) else { continue };
            for (kind, number, ns) in track.known(window) {
                let (slices, time_ns) = sums.entry((kind, number)).or_default();
                (*slices, *time_ns) = (*slices + 1, *time_ns + ns);
            }
        }
        let sum = |((state, number), (slices, time_ns)): ((u8, u32), (u64, u64))| ReasonSum {
            state: StateId(state),
            detail: &self.details.texts[number as usize],
            slices,
            time_ns,
        };
        let mut sums: Vec<_> = sums.into_iter().map(sum).collect();
        sums.sort_by_key(|sum| (std::cmp::Reverse(sum.time_ns), sum.detail, sum.state.0));
        sums
    }
}

impl Track {
    fn search(&self, lane: LaneId, search: &Search<'_>, fitting: &Fitting, met: &mut Met) {
        let kinds: Vec<bool> = self.kinds.iter().map(|kind| fitting.state(StateId(*kind))).collect();
        let hit = |(index, number): &(u32, u32)| fitting.texts[*number as usize].then_some(*index);
        let mut hits = self.details.iter().filter_map(hit).peekable();
        let mut meet = |index: u32| search.meet(met, self.starts[index as usize], SliceId { lane, index });
        if !kinds.contains(&true) {
            return hits.for_each(meet);
        }
        for (index, kind) in (0..).zip(&self.states) {
            let is_hit = hits.next_if_eq(&index).is_some();
            if is_hit || kinds[usize::from(*kind)] {
                meet(index);
            }
        }
    }

    /// Of each slice in `window` of which anything is known its state, what is known, and its time in there.
    fn known(&self, window: Span) -> impl Iterator<Item = (u8, u32, u64)> {
        let started = |at_ns| self.starts.partition_point(|start| *start < at_ns);
        let touching = self.touching(window, started(window.from_ns)..started(window.to_ns));
        let first = self.details.partition_point(|(index, _)| (*index as usize) < touching.start);
        let inside = self.details[first..].iter().take_while(move |(index, _)| (*index as usize) < touching.end);
        inside.map(move |(index, number)| {
            let index = *index as usize;
            let (from_ns, to_ns) = (self.starts[index].max(window.from_ns), self.slice_end(index).min(window.to_ns));
            (self.kinds[usize::from(self.states[index])], *number, to_ns.saturating_sub(from_ns))
        })
    }
}
