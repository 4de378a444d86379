//! Slices added up pixel by pixel while they come, so that none of them has to be kept.
//!
//! ```text
//! slices   [ a   ][ b ][ a        ][ c ]      come in time order, each once
//! pixels   |      |      |      |      |      exact time in each state, longest slice, how many touch it
//! ```
//! What a grid knows is what [`Timeline::coverage`](super::Timeline::coverage) says of the same window and width. Its memory is
//! its width, whatever comes.

use super::{Coverage, StateId, pixel_start};
use crate::Span;

/// Sums of one lane over a window that is cut into pixels.
#[derive(Debug, Clone)]
pub struct Grid {
    window: Span,
    width: u32,
    /// Time of each pixel in each kind of state, a row per kind, made when the kind occurs.
    time_ns: Vec<Vec<u64>>,
    /// Length and number of each pixel's longest slice, the first of equals; no length, no slice.
    longest: Vec<(u64, u32)>,
    /// How many slices touch each pixel.
    count: Vec<u32>,
    /// Whether a slice crosses into the pixel out of the one before.
    crossed: Vec<bool>,
    /// The pixel where the next slice begins, and where that pixel ends.
    pixel: u32,
    end_ns: u64,
}

impl Grid {
    /// An empty grid of `width` pixels, at least one.
    pub fn new(window: Span, width: u32) -> Self {
        let width = width.max(1);
        Self {
            window,
            width,
            time_ns: Vec::new(),
            longest: vec![(0, 0); width as usize],
            count: vec![0; width as usize],
            crossed: vec![false; width as usize],
            pixel: 0,
            end_ns: pixel_start(window, 1, width),
        }
    }

    /// Its pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// What all pixels together show.
    pub fn window(&self) -> Span {
        self.window
    }

    /// Adds slice `number`, which was in state `kind`; it begins where the last one ended, or later. What of it lies outside
    /// of the window is left out.
    pub fn add(&mut self, slice: Span, kind: usize, number: u32) {
        let to_ns = slice.to_ns.min(self.window.to_ns);
        let mut from_ns = slice.from_ns.max(self.window.from_ns);
        if kind >= self.time_ns.len() {
            self.time_ns.resize_with(kind + 1, Vec::new);
        }
        if self.time_ns[kind].is_empty() {
            self.time_ns[kind] = vec![0; self.width as usize];
        }
        while from_ns < to_ns {
            while self.end_ns <= from_ns {
                self.step();
            }
            let pixel = self.pixel as usize;
            let until_ns = to_ns.min(self.end_ns);
            self.time_ns[kind][pixel] += until_ns - from_ns;
            self.count[pixel] = self.count[pixel].saturating_add(1);
            if slice.length_ns() > self.longest[pixel].0 {
                self.longest[pixel] = (slice.length_ns(), number);
            }
            if until_ns < to_ns {
                self.step();
                self.crossed[self.pixel as usize] = true;
            }
            from_ns = until_ns;
        }
    }

    /// Goes to the next pixel; the last one ends with the window, behind which nothing is added.
    fn step(&mut self) {
        self.pixel += 1;
        self.end_ns = pixel_start(self.window, self.pixel + 1, self.width);
    }

    /// The same over `window`, whose pixels are `times` whole ones of this grid each, the last one perhaps fewer.
    pub fn coarser(&self, window: Span, times: u32) -> Self {
        let times = times.max(1) as usize;
        let width = self.count.len().div_ceil(times);
        let mut coarse = Self::new(window, width as u32);
        coarse.time_ns =
            self.time_ns.iter().map(|row| row.chunks(times).map(|pixels| pixels.iter().sum()).collect()).collect();
        for (into, (longest, (count, crossed))) in
            self.longest.chunks(times).zip(self.count.chunks(times).zip(self.crossed.chunks(times))).enumerate()
        {
            // The first of equals stands first.
            coarse.longest[into] =
                longest.iter().copied().fold((0, 0), |best, next| if next.0 > best.0 { next } else { best });
            // A slice that crosses from one pixel into the next was counted in both.
            let twice = crossed[1..].iter().filter(|crossed| **crossed).count() as u32;
            coarse.count[into] =
                count.iter().fold(0, |sum: u32, count| sum.saturating_add(*count)).saturating_sub(twice);
            coarse.crossed[into] = crossed[0];
        }
        coarse.pixel = self.pixel / times as u32;
        coarse.end_ns = pixel_start(window, coarse.pixel + 1, coarse.width);
        coarse
    }

    /// What the pixels hold, in a table of `states`, of which `of_kind` has the number of each kind.
    pub fn coverage(&self, states: usize, of_kind: &[StateId]) -> Coverage {
        let mut time_ns = vec![0; self.count.len() * states];
        for (row, state) in self.time_ns.iter().zip(of_kind) {
            for (pixel, ns) in row.iter().enumerate() {
                time_ns[pixel * states + usize::from(state.0)] += ns;
            }
        }
        let longest = self.longest.iter().map(|(length_ns, number)| (*length_ns > 0).then_some(*number)).collect();
        Coverage { states, time_ns, longest, count: self.count.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Columns, Lane, LaneKind, State, Timeline};
    use proptest::prelude::*;

    /// Slices of these lengths and states, in a grid and in columns.
    fn both(slices: &[(u64, u8)], window: Span, width: u32) -> (Grid, Columns) {
        let state = |name: &str| State { name: name.into(), title: name.into() };
        let mut columns = Columns::new(vec![state("a"), state("b"), state("c")]);
        let lane = Lane { kind: LaneKind::Vcpu, group: "vm".into(), title: "vCPU 0".into(), tid: None };
        let lane = columns.add_lane(lane);
        let mut grid = Grid::new(window, width);
        let mut at_ns = 0;
        for ((length_ns, state), number) in slices.iter().zip(0..) {
            columns.push(lane, at_ns, StateId(*state), "");
            grid.add(Span { from_ns: at_ns, to_ns: at_ns + length_ns }, usize::from(*state), number);
            at_ns += length_ns;
        }
        columns.end(lane, at_ns);
        (grid, columns)
    }

    const STATES: [StateId; 3] = [StateId(0), StateId(1), StateId(2)];

    proptest! {
        #[test]
        fn a_grid_knows_what_columns_say_of_its_pixels(
            slices in prop::collection::vec((1u64..5_000, 0u8..3), 0..200),
            width in 1u32..300,
            length_ns in 1u64..400_000,
        ) {
            let window = Span { from_ns: 0, to_ns: length_ns };
            let (grid, columns) = both(&slices, window, width);
            prop_assert_eq!(grid.coverage(3, &STATES), columns.coverage(crate::timeline::LaneId(0), window, width));
        }

        #[test]
        fn a_coarser_grid_is_what_it_would_have_been(
            slices in prop::collection::vec((1u64..50_000, 0u8..3), 1..200),
            pixels in 1u64..200,
            after in 0usize..200,
        ) {
            let (fine, coarse) = (
                Span { from_ns: 0, to_ns: pixels * 4_096 },
                Span { from_ns: 0, to_ns: pixels.div_ceil(4) * 16_384 },
            );
            let (wanted, _) = both(&slices, coarse, pixels.div_ceil(4) as u32);
            // Made coarser on the way, it goes on as a coarse one.
            let after = after.min(slices.len());
            let (begun, _) = both(&slices[..after], fine, pixels as u32);
            let mut begun = begun.coarser(coarse, 4);
            let mut at_ns: u64 = slices[..after].iter().map(|(length_ns, _)| length_ns).sum();
            for ((length_ns, state), number) in slices[after..].iter().zip(after as u32..) {
                begun.add(Span { from_ns: at_ns, to_ns: at_ns + length_ns }, usize::from(*state), number);
                at_ns += length_ns;
            }
            let inside = |grid: &Grid| {
                let mut cover = grid.coverage(3, &STATES);
                // The last coarse pixel may reach further than the fine ones did.
                cover.time_ns.truncate((pixels as usize / 4) * 3);
                cover.longest.truncate(pixels as usize / 4);
                cover.count.truncate(pixels as usize / 4);
                cover
            };
            prop_assert_eq!(inside(&begun), inside(&wanted));
        }
    }
}
