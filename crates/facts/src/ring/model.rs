//! What does a batch cost? A straight line over the frames in it, and what it leaves.
//!
//! ```text
//! T(n) = t_window + t_index + n * t_copy          T(n) = n * 1000 / Mpps ns, of clean slices
//!        |          |             `- per frame: copying it, and its line that travels
//!        |          `- per batch: publishing and reading an index
//!        `- per batch: opening and closing the window, measured by itself and not fitted
//! ```
//! `t_index` and `t_copy` are those with the least squares of relative errors, for the rates of small and of large batches to count alike,
//! and none of them is below 0. What the line leaves is kept for each batch. It says nothing of batches outside the swept ones.

/// Two constants go through any two points: only a third one can contradict them.
const FEWEST: usize = 3;
/// A number of frames this little above a whole one is that one: what is left of the arithmetic.
const DUST: f64 = 1e-9;

/// The line of one series.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Opening and closing a window, of a batch.
    pub window_ns: f64,
    /// What a batch costs whatever is in it.
    pub index_ns: f64,
    /// What each frame costs.
    pub copy_ns: f64,
    /// The smallest batch that was measured.
    pub least: u32,
    pub most: u32,
}

/// Why a model does not answer.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Refused {
    /// Any line goes through two points.
    #[error("a model needs clean rates of {} batches, and there are {batches}", FEWEST)]
    TooFewBatches {
        /// Batches with a clean rate.
        batches: usize,
    },
    #[error("batch {batch} lies outside the measured ones, {least} to {most}")]
    OutsideSwept {
        batch: u64,
        /// The smallest that was measured.
        least: u32,
        most: u32,
    },
    /// No batch is large enough.
    #[error("no batch reaches {mpps} Mpps: copying alone takes {copy_ns:.2} ns per packet")]
    Unreachable {
        mpps: f64,
        /// What each frame costs in a batch of any size.
        copy_ns: f64,
    },
}

impl Model {
    /// The line through batches and their times in ns, of which `window_ns` is the window's.
    pub fn fit(points: &[(u32, f64)], window_ns: f64) -> Result<Self, Refused> {
        let mut batches: Vec<u32> = points.iter().map(|point| point.0).collect();
        batches.sort_unstable();
        batches.dedup();
        if batches.len() < FEWEST {
            return Err(Refused::TooFewBatches { batches: batches.len() });
        }
        // Sums of weighted least squares, of what is left of a batch's time without its window.
        let (mut w, mut wn, mut wnn, mut wy, mut wny) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (batch, ns) in points {
            let (n, y, weight) = (f64::from(*batch), ns - window_ns, 1.0 / (ns * ns));
            w += weight;
            wn += weight * n;
            wnn += weight * n * n;
            wy += weight * y;
            wny += weight * n * y;
        }
        let copy_ns = (w * wny - wn * wy) / (w * wnn - wn * wn);
        let index_ns = (wy - copy_ns * wn) / w;
        // A step that would cost less than nothing costs nothing, and the other one is fitted alone.
        let (index_ns, copy_ns) = match (index_ns < 0.0, copy_ns < 0.0) {
            (true, _) => (0.0, (wny / wnn).max(0.0)),
            (false, true) => ((wy / w).max(0.0), 0.0),
            (false, false) => (index_ns, copy_ns),
        };
        Ok(Self { window_ns, index_ns, copy_ns, least: batches[0], most: batches[batches.len() - 1] })
    }

    /// The same path with another window.
    pub fn with_window(&self, window_ns: f64) -> Self {
        Self { window_ns, ..self.clone() }
    }

    pub fn batch_ns(&self, batch: u32) -> Result<f64, Refused> {
        self.swept(u64::from(batch))?;
        Ok(self.window_ns + self.index_ns + f64::from(batch) * self.copy_ns)
    }

    /// Millions of frames per second in batches of that size.
    pub fn mpps(&self, batch: u32) -> Result<f64, Refused> {
        Ok(f64::from(batch) * 1_000.0 / self.batch_ns(batch)?)
    }

    /// The smallest batch that reaches so many millions of frames per second.
    pub fn smallest_batch(&self, mpps: f64) -> Result<u32, Refused> {
        let left_ns = 1_000.0 / mpps - self.copy_ns;
        if left_ns <= 0.0 || left_ns.is_nan() {
            return Err(Refused::Unreachable { mpps, copy_ns: self.copy_ns });
        }
        self.swept(whole((self.window_ns + self.index_ns) / left_ns))
    }

    /// The smallest batch in which the window takes no more than `share` of the time.
    pub fn batch_with_window(&self, share: f64) -> Result<u32, Refused> {
        if self.copy_ns <= 0.0 {
            // The time of a batch does not depend on what is in it.
            return Err(Refused::OutsideSwept { batch: u64::MAX, least: self.least, most: self.most });
        }
        self.swept(whole((self.window_ns / share - self.window_ns - self.index_ns) / self.copy_ns))
    }

    fn swept(&self, batch: u64) -> Result<u32, Refused> {
        let (least, most) = (self.least, self.most);
        let known = u32::try_from(batch).ok().filter(|batch| (least..=most).contains(batch));
        known.ok_or(Refused::OutsideSwept { batch, least, most })
    }
}

/// The next whole number of frames, at least one.
fn whole(frames: f64) -> u64 {
    (frames - DUST).ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(window: f64, index: f64, copy: f64, batches: &[u32]) -> Vec<(u32, f64)> {
        batches.iter().map(|batch| (*batch, window + index + copy * f64::from(*batch))).collect()
    }

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn what_follows_the_line_gives_its_constants_back() {
        let model = Model::fit(&line(28.8, 60.0, 14.0, &[1, 8, 32, 64]), 28.8).unwrap();
        assert!(is_near(model.index_ns, 60.0) && is_near(model.copy_ns, 14.0), "{model:?}");
        assert!(is_near(model.mpps(32).unwrap(), 32_000.0 / 536.8));
        // 196 ns instead of 28.8.
        assert!(is_near(model.with_window(196.0).mpps(32).unwrap(), 32_000.0 / 704.0));
    }

    #[test]
    fn errors_count_by_their_share_and_not_by_their_size() {
        // The quiet ring of docs/labs/channel.md: 77, 24, 21 and 15 ns per packet. No line goes through all four.
        let points = [(1, 77.0), (8, 192.0), (32, 672.0), (64, 960.0)];
        let model = Model::fit(&points, 0.0).unwrap();
        let errors = points.map(|(batch, ns)| (model.batch_ns(batch).unwrap() / ns - 1.0).abs());
        assert!(errors[0] < 0.12 && errors.iter().all(|error| *error < 0.2), "{errors:?} by {model:?}");
        let sum = |model: &Model| -> f64 {
            points.iter().map(|(batch, ns)| (model.batch_ns(*batch).unwrap() / ns - 1.0).powi(2)).sum()
        };
        for (index, copy) in [(0.1, 0.0), (-0.1, 0.0), (0.0, 0.01), (0.0, -0.01)] {
            let other = Model { index_ns: model.index_ns + index, copy_ns: model.copy_ns + copy, ..model.clone() };
            assert!(sum(&other) > sum(&model), "no other line is nearer");
        }
    }

    #[test]
    fn no_step_costs_less_than_nothing() {
        let index = Model::fit(&[(1, 10.0), (8, 100.0), (32, 420.0)], 0.0).unwrap();
        assert!(index.index_ns == 0.0 && (11.0..12.0).contains(&index.copy_ns), "{index:?}");
        let copy = Model::fit(&[(1, 120.0), (8, 110.0), (32, 100.0)], 0.0).unwrap();
        assert!(copy.copy_ns == 0.0 && (100.0..120.0).contains(&copy.index_ns), "{copy:?}");
        let neither = Model::fit(&[(1, 10.0), (8, 11.0), (32, 12.0)], 50.0).unwrap();
        assert_eq!((neither.index_ns, neither.copy_ns), (0.0, 0.0));
    }

    #[test]
    fn two_batches_make_no_model_and_the_same_one_again_is_no_other() {
        let refused = Model::fit(&line(0.0, 60.0, 14.0, &[1, 8, 8]), 0.0);
        assert_eq!(refused, Err(Refused::TooFewBatches { batches: 2 }));
        assert!(Model::fit(&line(0.0, 60.0, 14.0, &[1, 8, 9]), 0.0).is_ok());
    }

    #[test]
    fn nothing_is_said_outside_the_swept_batches() {
        let model = Model::fit(&line(28.8, 60.0, 14.0, &[8, 32, 64]), 28.8).unwrap();
        let outside = |batch| Err(Refused::OutsideSwept { batch, least: 8, most: 64 });
        assert_eq!((model.mpps(7), model.mpps(65)), (outside(7), outside(65)));
        assert!(model.mpps(8).is_ok() && model.mpps(64).is_ok());
        let words = model.mpps(65).unwrap_err().to_string();
        assert_eq!(words, "batch 65 lies outside the measured ones, 8 to 64");
    }

    #[test]
    fn the_smallest_batch_for_a_rate_is_the_first_that_reaches_it() {
        let model = Model::fit(&line(28.8, 60.0, 14.0, &[1, 32, 64]), 28.8).unwrap();
        // 88.8 / (20 - 14) = 14.8.
        assert_eq!(model.smallest_batch(50.0), Ok(15));
        assert!(model.mpps(15).unwrap() >= 50.0 && model.mpps(14).unwrap() < 50.0);
        assert!(matches!(model.smallest_batch(1_000.0 / 13.9), Err(Refused::Unreachable { .. })));
        // 88.8 / (15 - 14) = 88.8.
        assert_eq!(model.smallest_batch(1_000.0 / 15.0), Err(Refused::OutsideSwept { batch: 89, least: 1, most: 64 }));
    }

    #[test]
    fn the_batch_that_halves_a_windows_share_is_inside_the_swept_ones_or_none() {
        let model = Model::fit(&line(28.8, 60.0, 14.0, &[1, 32, 64]), 28.8).unwrap();
        // 28.8 of 288 ns: 199.2 ns are left for copies.
        assert_eq!(model.batch_with_window(0.1), Ok(15));
        assert!(matches!(model.batch_with_window(0.02), Err(Refused::OutsideSwept { .. })));
    }
}
