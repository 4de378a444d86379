//! One lane of the timeline as shapes: states stacked by their exact share, and ticks for those too thin to be seen.
//!
//! ```text
//! ┌──────────────────────────┐   each state is one path: the lower edge of everything down to it, drawn from the bottom
//! │████████████████████▇▇▇███│   state up, so that the next path covers what lies above its own edge
//! │▒▒▒▒▓▓▓▓▒▒▒▒▒▒▒▒▓▓▓▓▓▓▓▓▓▓│
//! └──────────────────────────┘
//!      '   '                       a tick below a column: a state was there for less than a pixel's height of it
//! ```

use super::escape::Safe;
use super::look;
use base::Span;
use base::timeline::{Coverage, State, pixel_start};
use std::fmt::{Result, Write};

/// Units of a lane's height in its path.
pub(super) const HEIGHT: u64 = 200;

/// Units below that, for ticks.
pub(super) const TICKS: u64 = 14;

/// A lane's columns, and how they are drawn.
pub(super) struct Stack<'a> {
    pub states: &'a [State],
    /// Their order in a stack, from the top.
    pub order: &'a [usize],
    /// Time of each column in each state.
    pub cover: &'a Coverage,
    /// What all columns together show.
    pub span: Span,
    /// How high the lane is on a screen (style.css).
    pub pixels: u64,
}

impl Stack<'_> {
    /// Draws one path per state, the bottom of the stack first, and then the ticks.
    pub(super) fn render(&self, out: &mut String) -> Result {
        for bottom in (0..self.order.len()).rev() {
            let mut path = String::new();
            let (mut level, mut run) = (0u64, 0u32);
            for (column, times) in self.columns().enumerate() {
                let above: u64 = self.order[..=bottom].iter().map(|state| times[*state]).sum();
                let depth = self.units(column, above);
                if depth != level {
                    if run > 0 {
                        write!(path, "h{run}")?;
                    }
                    write!(path, "v{}", depth as i64 - level as i64)?;
                    (level, run) = (depth, 0);
                }
                run += 1;
            }
            if !path.is_empty() {
                let state = &self.states[self.order[bottom]];
                write!(
                    out,
                    "<path fill=\"{}\" d=\"M0 0{path}h{run}V0z\"><title>{}</title></path>",
                    look::fill(&state.name),
                    Safe(&state.title)
                )?;
            }
        }
        self.ticks(out)
    }

    /// A tick below each column that has a state too thin to be seen; of several the one that is rarest in the lane.
    fn ticks(&self, out: &mut String) -> Result {
        let mut totals = vec![0u64; self.cover.states];
        self.columns().for_each(|times| totals.iter_mut().zip(times).for_each(|(total, ns)| *total += ns));
        let mut paths = vec![String::new(); self.cover.states];
        for (column, times) in self.columns().enumerate() {
            let thin = |ns: u64| ns > 0 && self.units(column, ns) * self.pixels < HEIGHT;
            let thin = self.order.iter().filter(|state| thin(times[**state]));
            if let Some(rarest) = thin.min_by_key(|state| totals[**state]) {
                write!(paths[*rarest], "M{column} {}h1v{}h-1z", HEIGHT + 2, TICKS - 2)?;
            }
        }
        for (state, path) in self.states.iter().zip(&paths).filter(|(_, path)| !path.is_empty()) {
            let (fill, title) = (look::fill(&state.name), Safe(&state.title));
            write!(out, "<path class=\"tick\" fill=\"{fill}\" d=\"{path}\"><title>{title}, briefly</title></path>")?;
        }
        Ok(())
    }

    fn columns(&self) -> impl Iterator<Item = &[u64]> {
        self.cover.time_ns.chunks(self.cover.states.max(1))
    }

    /// `ns` of a column as units of the lane's height, rounded.
    fn units(&self, column: usize, ns: u64) -> u64 {
        let (width, column) = (self.cover.count.len() as u32, column as u32);
        let length_ns = pixel_start(self.span, column + 1, width) - pixel_start(self.span, column, width);
        ((u128::from(ns) * u128::from(HEIGHT) + u128::from(length_ns / 2)) / u128::from(length_ns.max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_thinner_than_a_pixel_gets_a_tick_and_one_that_is_seen_does_not() {
        let state = |name: &str| State { name: name.into(), title: name.into() };
        let states = ["guest_l1", "preempted", "nmi"].map(state);
        // Column 0: all guest. Column 1: a nanosecond pre-empted. Column 2: seen well. Column 3: both thin, NMI rarer.
        let times = [[1_000, 0, 0], [999, 1, 0], [500, 500, 0], [989, 10, 1]];
        let cover = Coverage { states: 3, time_ns: times.concat(), longest: vec![None; 4], count: vec![1; 4] };
        let span = Span { from_ns: 0, to_ns: 4_000 };
        let stack = Stack { states: &states, order: &[0, 1, 2], cover: &cover, span, pixels: 72 };
        let mut out = String::new();
        stack.render(&mut out).unwrap();
        let ticks: Vec<&str> = out.split("<path class=\"tick\"").skip(1).collect();
        assert_eq!(ticks.len(), 2, "{out}");
        assert!(ticks[0].contains("d=\"M1 202h1v12h-1z\"") && ticks[0].contains("preempted, briefly"), "{out}");
        assert!(ticks[1].contains("d=\"M3 202h1v12h-1z\"") && ticks[1].contains("nmi, briefly"), "{out}");
    }
}
