//! Where is the next slice that a word is known of?

use super::{LaneId, SliceId, StateId};
use crate::Span;

/// What a search has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// Slices that begin in the window and fit.
    pub count: u64,
    /// How many of them begin before the place that was searched from.
    pub earlier: u64,
    /// How many begin later.
    pub later: u64,
    /// The last of those before.
    pub before: Option<SliceId>,
    /// The first that begins later.
    pub after: Option<SliceId>,
}

/// What is looked for, and from where.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The lanes that are looked at.
    pub lanes: &'a [LaneId],
    /// Slices that begin in it.
    pub window: Span,
    /// From which instant.
    pub at_ns: u64,
    /// At that instant, from which lane: what begins then in an earlier lane is before, in a later one after it, and in this
    /// one neither. `None`: all that begins then is after it.
    pub at_lane: Option<LaneId>,
}

/// A place among slices of several lanes: by time, then by lane.
type Place = (u64, LaneId);

impl Search<'_> {
    /// Goes on with a slice that fits and begins at `from_ns`.
    pub(super) fn meet(&self, found: &mut Met, from_ns: u64, id: SliceId) {
        if from_ns < self.window.from_ns || from_ns >= self.window.to_ns {
            return;
        }
        let place = (from_ns, id.lane);
        found.count += 1;
        let here = self.at_lane.map(|lane| (self.at_ns, lane));
        let is_before = here.map_or(from_ns < self.at_ns, |here| place < here);
        if is_before {
            found.earlier += 1;
            if found.before.is_none_or(|(known, _)| known < place) {
                found.before = Some((place, id));
            }
        } else if Some(place) != here {
            found.later += 1;
            if found.after.is_none_or(|(known, _)| place < known) {
                found.after = Some((place, id));
            }
        }
    }
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Met {
    count: u64,
    earlier: u64,
    later: u64,
    before: Option<(Place, SliceId)>,
    after: Option<(Place, SliceId)>,
}

impl From<Met> for Found {
    fn from(met: Met) -> Self {
        let id = |found: Option<(Place, SliceId)>| found.map(|(_, id)| id);
        let Met { count, earlier, later, before, after } = met;
        Self { count, earlier, later, before: id(before), after: id(after) }
    }
}

/// Which texts and which states fit.
pub(super) struct Fitting {
    pub texts: Vec<bool>,
    pub states: Vec<bool>,
}

impl Fitting {
    pub(super) fn state(&self, state: StateId) -> bool {
        self.states.get(usize::from(state.0)).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Columns, Lane, LaneKind, State};

    fn columns() -> Columns {
        let state = |title: &str| State { name: title.to_lowercase(), title: title.into() };
        let mut columns = Columns::new(vec![state("Guest"), state("Handling")]);
        for first in [0, 5] {
            let lane = Lane { kind: LaneKind::Vcpu, group: String::new(), title: String::new(), tid: None };
            let lane = columns.add_lane(lane);
            for round in 0..200u64 {
                columns.push(lane, first + round * 100, StateId(0), "");
                columns.push(lane, first + round * 100 + 50, StateId(1), if round % 10 == 3 { "CPUID" } else { "MSR" });
            }
            columns.end(lane, first + 20_000);
        }
        columns
    }

    #[test]
    fn hits_are_counted_and_have_neighbours_in_time_over_all_lanes() {
        let columns = columns();
        let all = [LaneId(0), LaneId(1)];
        let search = |lanes, at_ns, at_lane, word: &str| {
            let window = Span { from_ns: 0, to_ns: 20_000 };
            columns.search(&Search { lanes, window, at_ns, at_lane }, |text| text.to_lowercase().contains(word))
        };
        // 350 + 1000 n in the first lane, 355 + 1000 n in the second.
        let found = search(&all, 350, Some(LaneId(0)), "cpuid");
        assert_eq!((found.count, found.earlier, found.later, found.before), (40, 0, 39, None));
        assert_eq!(found.after, Some(SliceId { lane: LaneId(1), index: 7 }));
        let found = search(&all, 1_350, None, "cpuid");
        assert_eq!(found.earlier, 2);
        assert_eq!(found.before, Some(SliceId { lane: LaneId(1), index: 7 }));
        assert_eq!(found.after, Some(SliceId { lane: LaneId(0), index: 27 }));
        let found = search(&all[1..], 19_900, None, "cpuid");
        assert_eq!((found.count, found.earlier, found.after), (20, 20, None));
        // The name of a state is found too.
        assert_eq!(search(&all, 0, None, "handl").count, 400);
        assert_eq!(search(&all, 0, None, "vmread"), Found::default());
    }
}
