//! A time axis whose end nobody knows while it is filled.
//!
//! ```text
//! |.|.|.|.|.|.|.|.|          as many slices as there may be, and time goes on:
//! |. .|. .|. .|. .|.|        neighbours become one, slices are twice as long
//! |  .  .  .  |  .  .  .  |  at the end: windows of whole slices, nearly equal
//! ```
//! So one walk over a trace is enough to cut it into windows.

use base::Span;

/// Most slices: eight windows then have 64 to 128 of them each, and differ by less than a sixtieth in length.
const MOST: usize = 1024;

/// The shortest slice: 2^10 ns, less than most exits take.
const SHORTEST: u32 = 10;

/// What can be added up.
pub(super) trait Merge: Default {
    /// Adds what `other` holds.
    fn merge(&mut self, other: Self);
}

/// Sums by slice of time.
#[derive(Debug)]
pub(super) struct Slices<T> {
    within: Span,
    /// Slices are 2^shift ns long.
    shift: u32,
    sums: Vec<T>,
}

impl<T: Merge> Slices<T> {
    /// An empty axis; what lies outside `within` is left out.
    pub(super) fn new(within: Span) -> Self {
        Self { within, shift: SHORTEST, sums: Vec::new() }
    }

    /// The sums of the slice that holds `at_ns`.
    pub(super) fn at(&mut self, at_ns: u64) -> Option<&mut T> {
        (self.within.from_ns..self.within.to_ns).contains(&at_ns).then(|| self.slice(at_ns))
    }

    /// Gives each slice its part of a stretch of time.
    pub(super) fn spread(&mut self, from_ns: u64, to_ns: u64, mut add: impl FnMut(&mut T, u64)) {
        let (mut from_ns, to_ns) = (from_ns.max(self.within.from_ns), to_ns.min(self.within.to_ns));
        if from_ns >= to_ns {
            return;
        }
        // The last one first: it decides how long slices are.
        self.slice(to_ns - 1);
        while from_ns < to_ns {
            let number = (from_ns - self.within.from_ns) >> self.shift;
            // Damaged times may lie at the end of all that a number holds.
            let begin_ns = self.within.from_ns + (number << self.shift);
            let end_ns = begin_ns.saturating_add(1 << self.shift).min(to_ns);
            add(self.slice(from_ns), end_ns - from_ns);
            from_ns = end_ns;
        }
    }

    fn slice(&mut self, at_ns: u64) -> &mut T {
        let since_ns = at_ns - self.within.from_ns;
        while since_ns >> self.shift >= MOST as u64 {
            self.double();
        }
        let number = (since_ns >> self.shift) as usize;
        if number >= self.sums.len() {
            self.sums.resize_with(number + 1, T::default);
        }
        &mut self.sums[number]
    }

    fn double(&mut self) {
        self.shift += 1;
        let mut old = std::mem::take(&mut self.sums).into_iter();
        while let Some(mut sum) = old.next() {
            if let Some(next) = old.next() {
                sum.merge(next);
            }
            self.sums.push(sum);
        }
    }

    /// `count` windows of nearly equal length, from the axis' begin to `end_ns`.
    pub(super) fn windows(self, count: usize, end_ns: u64) -> Vec<(Span, T)> {
        let Self { within, shift, sums } = self;
        let end_ns = end_ns.clamp(within.from_ns, within.to_ns);
        // Behind the last event may be time in which nothing was summed up.
        let slices = ((end_ns - within.from_ns) >> shift) as usize + 1;
        let edge = |number: usize| slices * number / count;
        let length_ns = 1_u64 << shift;
        let at = |slice: usize| within.from_ns.saturating_add((slice as u64).saturating_mul(length_ns)).min(end_ns);
        let mut sums = sums.into_iter();
        (0..count)
            .map(|number| {
                let mut window = T::default();
                let own = sums.by_ref().take(edge(number + 1) - edge(number));
                own.for_each(|sum| window.merge(sum));
                (Span { from_ns: at(edge(number)), to_ns: at(edge(number + 1)) }, window)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Merge for u64 {
        fn merge(&mut self, other: Self) {
            *self += other;
        }
    }

    #[test]
    fn every_nanosecond_is_in_one_window_however_long_the_axis_becomes() {
        for length_ns in [1, 1_000, 1 << 20, (1 << 33) + 12_345, 86_400_000_000_000] {
            let within = Span { from_ns: 500, to_ns: u64::MAX };
            let (mut slices, mut counted) = (Slices::<u64>::new(within), Slices::<u64>::new(within));
            let step_ns = (length_ns / 10_000).max(1);
            let mut at_ns = 500;
            while at_ns < 500 + length_ns {
                let next_ns = (at_ns + step_ns).min(500 + length_ns);
                slices.spread(at_ns, next_ns, |sum, ns| *sum += ns);
                *counted.at(at_ns).unwrap() += 1;
                at_ns = next_ns;
            }
            let windows = slices.windows(8, 500 + length_ns);
            assert!(windows.iter().all(|(span, sum)| span.length_ns() == *sum), "{length_ns}: {windows:?}");
            assert_eq!(windows.iter().map(|(_, sum)| sum).sum::<u64>(), length_ns);
            let counts: Vec<u64> = counted.windows(8, 500 + length_ns).into_iter().map(|(_, count)| count).collect();
            assert_eq!(counts.iter().sum::<u64>(), length_ns.div_ceil(step_ns));
            if length_ns > 1 << 20 {
                let lengths = windows.iter().map(|(span, _)| span.length_ns());
                let (least, most) = (lengths.clone().min().unwrap(), lengths.max().unwrap());
                assert!(most < least + least / 60, "{length_ns}: {least} to {most}");
            }
        }
    }

    #[test]
    fn damaged_times_at_the_end_of_all_that_a_number_holds_are_slices_too() {
        for from_ns in [0, 77, 1 << 63, u64::MAX - 3] {
            let mut slices = Slices::<u64>::new(Span { from_ns: 0, to_ns: u64::MAX });
            slices.spread(from_ns, u64::MAX, |sum, ns| *sum += ns);
            let windows = slices.windows(8, u64::MAX);
            assert_eq!(windows.iter().map(|(_, sum)| sum).sum::<u64>(), u64::MAX - from_ns);
            assert!(windows.iter().all(|(span, _)| span.from_ns <= span.to_ns), "{windows:?}");
        }
    }

    #[test]
    fn what_lies_outside_is_left_out_and_silence_at_the_end_is_time() {
        let mut slices = Slices::<u64>::new(Span { from_ns: 1_000_000, to_ns: 9_000_000 });
        assert!(slices.at(999_999).is_none() && slices.at(9_000_000).is_none());
        slices.spread(0, 2_000_000, |sum, ns| *sum += ns);
        let windows = slices.windows(8, 20_000_000);
        assert_eq!(windows.iter().map(|(_, sum)| sum).sum::<u64>(), 1_000_000);
        assert_eq!((windows[0].0.from_ns, windows[7].0.to_ns), (1_000_000, 9_000_000));
    }
}
