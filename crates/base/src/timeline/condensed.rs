//! A lane whose slices are added up while they come, at the widths that are wanted, and not kept.
//!
//! ```text
//! push, push, push ... end  -->  columns: the whole span in a fixed number of columns, as a static page draws it
//!                           -->  pixels:  the finest zoom that is wanted, of which all coarser ones are sums
//! ```

use super::{Coverage, Grid, StateId};
use crate::Span;

/// The sums of one lane. A state is the number by which the lane's owner knows it.
#[derive(Debug, Clone)]
pub struct Condensed {
    /// The slice that has not ended: when it began, in which state.
    open: Option<(u64, u8)>,
    /// Where the lane ends, as far as that is known.
    end_ns: u64,
    ended: u32,
    /// Time in each state.
    total_ns: Vec<u64>,
    columns: Grid,
    pixels: Grid,
}

impl Condensed {
    /// A lane without slices, to be added up in these grids.
    pub fn new(columns: Grid, pixels: Grid) -> Self {
        Self { open: None, end_ns: 0, ended: 0, total_ns: Vec::new(), columns, pixels }
    }

    /// From `at_ns` on the lane is in `state`, under the rules of [`Columns::push`](super::Columns::push).
    pub fn push(&mut self, at_ns: u64, state: u8) {
        match &mut self.open {
            Some((from_ns, open)) if at_ns <= *from_ns => *open = state,
            _ => {
                self.close(at_ns);
                self.open = Some((at_ns, state));
                self.end_ns = self.end_ns.max(at_ns);
            }
        }
    }

    /// The last slice ends at `at_ns`, or where it began if that is later.
    pub fn end(&mut self, at_ns: u64) {
        let end_ns = self.end_ns.max(at_ns);
        self.close(end_ns);
        self.end_ns = end_ns;
    }

    fn close(&mut self, to_ns: u64) {
        // A slice that ends where it begins has no time in it.
        let Some((from_ns, state)) = self.open.take().filter(|(from_ns, _)| *from_ns < to_ns) else { return };
        let kind = usize::from(state);
        if kind >= self.total_ns.len() {
            self.total_ns.resize(kind + 1, 0);
        }
        self.total_ns[kind] += to_ns - from_ns;
        let slice = Span { from_ns, to_ns };
        self.columns.add(slice, kind, self.ended);
        self.pixels.add(slice, kind, self.ended);
        self.ended += 1;
    }

    /// Replaces the pixels by coarser ones.
    pub fn coarsen(&mut self, window: Span, times: u32) {
        self.pixels = self.pixels.coarser(window, times);
    }

    /// Slices, once it has ended.
    pub fn slices(&self) -> u32 {
        self.ended
    }

    /// Time in each of `states`, of which `of_kind` has the number of each state that was pushed.
    pub fn totals_ns(&self, states: usize, of_kind: &[StateId]) -> Vec<u64> {
        let mut totals = vec![0; states];
        for (ns, state) in self.total_ns.iter().zip(of_kind) {
            totals[usize::from(state.0)] += ns;
        }
        totals
    }

    /// The whole span in columns.
    pub fn columns(&self, states: usize, of_kind: &[StateId]) -> Coverage {
        self.columns.coverage(states, of_kind)
    }

    /// The pixels.
    pub fn pixels(&self) -> &Grid {
        &self.pixels
    }
}
