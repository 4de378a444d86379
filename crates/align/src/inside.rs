//! What does it say of a guest's clock that the guest ran when it wrote its events?
//!
//! ```text
//! below   |--window--|          |--window--|        |--window--|
//! event        [.....low ............. high.....]                  by the bounds so far
//!                               [..........]                       by the windows: no other one is near
//! ```
//! The lowest time moves up to the next window, the highest down to the one before: those are bounds too, which say more
//! of the next event, until nothing changes. Beyond the first and the last window nothing moves: the trace below did not
//! see what was there. Bounds that no window can hold are left alone: they are what `outside` counts. Order alone gains
//! nothing: its bounds lie at the ends of windows already.

use super::host_side::{HostVcpu, Window};
use super::lines::{Bound, Lines};

/// Rounds; each one costs a look at every event. What is gained becomes small quickly.
const ROUNDS: usize = 4;

/// Stretches in which a vCPU's guest itself can have written, in order.
pub(crate) struct Inside {
    windows: Vec<(u64, u64)>,
}

impl Inside {
    /// Windows of the guest, and stretches of which nothing is known; times may be off by `slack` because files round.
    pub(crate) fn of(vcpu: &HostVcpu, slack: u64) -> Self {
        let both = vcpu.windows.iter().chain(&vcpu.unknown);
        let mut windows: Vec<(u64, u64)> =
            both.map(|Window { from, to, .. }| (from.saturating_sub(slack), to.saturating_add(slack))).collect();
        windows.sort_unstable();
        // Ends rise as well, so that they can be looked up.
        let mut latest = 0;
        for (_, to) in &mut windows {
            latest = latest.max(*to);
            *to = latest;
        }
        Self { windows }
    }

    /// The first time from `at` on at which the guest can have run.
    pub(crate) fn from(&self, at: u64) -> Option<u64> {
        let next = self.windows.get(self.windows.partition_point(|(_, to)| *to < at))?;
        Some(next.0.max(at))
    }

    /// The last time up to `at` at which the guest can have run.
    pub(crate) fn until(&self, at: u64) -> Option<u64> {
        let last = self.windows.partition_point(|(from, _)| *from <= at).checked_sub(1)?;
        Some(self.windows[last].1.min(at))
    }

    /// The part of an interval in which the guest can have run; `None` if there is none.
    pub(crate) fn narrowed(&self, (low, high): (u64, u64)) -> Option<(u64, u64)> {
        let (first, last) = (self.windows.first()?, self.windows.last()?);
        let up = self.windows.get(self.windows.partition_point(|(_, to)| *to < low));
        let down = self.windows.partition_point(|(from, _)| *from <= high).checked_sub(1);
        let low = if low < first.0 { low } else { low.max(up.map_or(low, |(from, _)| *from)) };
        let high = if high > last.1 { high } else { high.min(down.map_or(high, |place| self.windows[place].1)) };
        (low <= high).then_some((low, high))
    }

    /// Bounds of the events at `times`, by what `lines` say of them; only those that say more.
    fn more(&self, times: &[u64], lines: &Lines) -> Vec<Bound> {
        let mut bounds = Vec::new();
        for x in times.iter().copied() {
            let known = lines.at(x);
            let Some((low, high)) = self.narrowed(known) else { continue };
            bounds.extend((low > known.0).then_some(Bound { x, y: low, is_lower: true }));
            bounds.extend((high < known.1).then_some(Bound { x, y: high, is_lower: false }));
        }
        bounds
    }

    /// One line that obeys `bounds`, narrowed; `None` if the windows leave none: then the clock is no line.
    pub(crate) fn line(&self, bounds: &mut Vec<Bound>, times: &[u64], slopes: (f64, f64)) -> Option<Lines> {
        let mut lines = Lines::one(bounds, slopes)?;
        for _ in 0..ROUNDS {
            let more = self.more(times, &lines);
            if more.is_empty() {
                break;
            }
            add(bounds, more);
            lines = Lines::one(bounds, slopes)?;
        }
        Some(lines)
    }
}

/// Adds bounds, in order of the guest's time.
pub(super) fn add(bounds: &mut Vec<Bound>, more: Vec<Bound>) {
    bounds.extend(more);
    bounds.sort_by_key(|bound| bound.x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_shrinks_to_what_its_windows_leave() {
        let window = |from, to| Window { from, to, cpu: 0 };
        let windows = vec![window(100, 200), window(300, 400), window(500, 600)];
        let vcpu = HostVcpu { windows, unknown: vec![window(410, 420)], ..HostVcpu::default() };
        let inside = Inside::of(&vcpu, 0);
        assert_eq!(inside.narrowed((250, 405)), Some((300, 400)));
        assert_eq!(inside.narrowed((320, 350)), Some((320, 350)));
        assert_eq!(inside.narrowed((50, 450)), Some((50, 420)), "what came before the first is not known");
        assert_eq!(inside.narrowed((590, 700)), Some((590, 700)));
        assert_eq!(inside.narrowed((210, 290)), None, "a violation");
        assert_eq!(inside.narrowed((405, 450)), Some((410, 420)), "it may have run unseen");
        assert_eq!((inside.from(201), inside.from(350), inside.from(601)), (Some(300), Some(350), None));
        assert_eq!((inside.until(299), inside.until(350), inside.until(99)), (Some(200), Some(350), None));
    }
}
