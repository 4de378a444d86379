//! How many events of a kind fell into the busiest stretch of a recording? A rate over all of it hides a storm of some ms.
//!
//! ```text
//! quarters of WINDOW   |  3  |  0  | 240 | 260 |  90 |  0  |  1  |     a storm of three quarters lies in one window
//! busiest window             |-------- 590 ---------|
//! ```

/// Length of a window: a guest's tick at 100 Hz, and more than a turn that the scheduler gives a task (`sched_base_slice`,
/// 3 ms on 8 CPUs and more, kernel/sched/fair.c, Linux 6.12).
pub const WINDOW_NS: u64 = 10_000_000;

const PARTS: usize = 4;

const PART_NS: u64 = WINDOW_NS / PARTS as u64;

/// A window, and what fell into it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Burst {
    /// Its begin, on the trace's own clock.
    pub from_ns: u64,
    pub count: u64,
}

/// Finds the busiest window of events that come in time order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bursts {
    /// Number of the last part that had an event.
    part: u64,
    /// Events in it and in the parts before it, the last one last.
    counts: [u64; PARTS],
    worst: Burst,
}

impl Bursts {
    /// One event at `at_ns`.
    #[inline]
    pub fn add(&mut self, at_ns: u64) {
        let part = at_ns / PART_NS;
        if part > self.part {
            let passed = (part - self.part).min(PARTS as u64) as usize;
            self.counts.rotate_left(passed % PARTS);
            self.counts[PARTS - passed..].fill(0);
            self.part = part;
        }
        self.counts[PARTS - 1] += 1;
        let count = self.counts.iter().sum();
        if count > self.worst.count {
            let empty = self.counts.iter().take_while(|count| **count == 0).count();
            let from_ns = (self.part + 1).saturating_sub((PARTS - empty) as u64) * PART_NS;
            self.worst = Burst { from_ns, count };
        }
    }

    /// The busiest window so far.
    pub fn worst(&self) -> Burst {
        self.worst
    }

    /// Joins what was counted apart: the busier of both, for what they had in one window is no longer known.
    pub fn merge(&mut self, other: &Self) {
        if other.worst.count > self.worst.count {
            self.worst = other.worst;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(times_ns: impl IntoIterator<Item = u64>) -> Burst {
        let mut bursts = Bursts::default();
        times_ns.into_iter().for_each(|at_ns| bursts.add(at_ns));
        bursts.worst()
    }

    #[test]
    fn a_storm_is_found_wherever_it_lies() {
        let calm = (0..1_000).map(|number| number * 10_000_000);
        assert_eq!(worst(calm.clone()).count, 1, "one in each window");
        for start_ns in [20_000_000, 23_000_000, 24_999_999] {
            let storm = (0..500).map(|number| start_ns + 10_000 * number);
            let mut all: Vec<u64> = calm.clone().chain(storm).collect();
            all.sort_unstable();
            let found = worst(all);
            assert!((500..=502).contains(&found.count), "{found:?}");
            assert!((start_ns - WINDOW_NS..=start_ns).contains(&found.from_ns), "{found:?}");
        }
    }

    #[test]
    fn of_two_parts_the_busier_counts() {
        let mut one = Bursts::default();
        one.add(1);
        let mut other = Bursts::default();
        [PART_NS * 7, PART_NS * 9].into_iter().for_each(|at_ns| other.add(at_ns));
        one.merge(&other);
        assert_eq!(one.worst(), Burst { from_ns: PART_NS * 7, count: 2 });
    }
}
