//! What is known of the slices of a window, added up: which exit reasons took how much of it.

use super::StateId;

/// Slices of one state of which the same is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasonSum<'a> {
    /// Their state.
    pub state: StateId,
    /// What is known of them, such as the reason of an exit.
    pub detail: &'a str,
    /// How many touch the window.
    pub slices: u64,
    /// Their time inside the window.
    pub time_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use crate::timeline::{Columns, Lane, LaneId, LaneKind, State};

    #[test]
    fn slices_are_cut_at_the_window_and_summed_over_lanes_by_state_and_text() {
        let state = |name: &str| State { name: name.into(), title: name.into() };
        let mut columns = Columns::new(vec![state("guest"), state("handling")]);
        for _ in 0..2 {
            let lane = Lane { kind: LaneKind::Vcpu, group: String::new(), title: String::new(), tid: None };
            let lane = columns.add_lane(lane);
            for (at, state, detail) in [(0, 1, "MSR"), (40, 0, ""), (50, 1, "CPUID"), (80, 0, ""), (90, 1, "MSR")] {
                columns.push(lane, at, StateId(state), detail);
            }
            columns.end(lane, 100);
        }
        let sum = |detail, slices, time_ns| ReasonSum { state: StateId(1), detail, slices, time_ns };
        let window = Span { from_ns: 30, to_ns: 95 };
        assert_eq!(columns.reasons(&[LaneId(0), LaneId(1)], window), [sum("CPUID", 2, 60), sum("MSR", 4, 30)]);
        assert_eq!(columns.reasons(&[LaneId(1)], Span { from_ns: 40, to_ns: 51 }), [sum("CPUID", 1, 1)]);
        assert_eq!(columns.reasons(&[LaneId(7)], window), []);
    }
}
