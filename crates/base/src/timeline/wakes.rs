//! Who woke the thread of a lane, when, and when it got a CPU?
//!
//! ```text
//! lane 3   ...  sleeping  | waiting for a CPU | running ...
//!                     woken_ns              ran_ns            16 bytes: when, the delay, and a row of a table
//! rows     | task 170 -> CPU 1 | irq 24 -> CPU 0 | ...        each pair of waker and CPU once
//! ```
//! Kept beside the slices and not in them: few slices end with a wake-up, and lanes that nobody asks about who woke them pay nothing.

use super::LaneId;
use crate::Span;
use std::collections::HashMap;

/// Who made a thread ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waker {
    /// A task in its own time; the idle task too.
    Task {
        /// As slices name it.
        name: String,
        /// The lane that shows it, if one does.
        lane: Option<LaneId>,
    },
    /// An interrupt or softirq, whatever task it interrupted.
    Interrupt(String),
    /// The recording does not tell.
    Unknown,
}

/// One wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeUp {
    /// When the thread was ready.
    pub woken_ns: u64,
    /// When it got a CPU.
    pub ran_ns: u64,
    /// Who woke it, by the number that the owner of the wake-ups knows it by.
    pub by: u32,
    /// The CPU that it got, if it is known which.
    pub cpu: Option<u32>,
}

/// The wake-ups of lanes, in time order.
#[derive(Debug, Clone, Default)]
pub struct WakeUps {
    lanes: Vec<Vec<Packed>>,
    rows: Vec<Row>,
    numbers: HashMap<Row, u32>,
}

/// A wake-up of which the rest is in its row.
#[derive(Debug, Clone, Copy)]
struct Packed {
    woken_ns: u64,
    /// The lower half of the delay.
    delay_ns: u32,
    row: u32,
}

/// What many wake-ups have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Row {
    by: u32,
    cpu: Option<u32>,
    /// The upper half of the delay: of all that wait less than 4 seconds it is 0.
    delay_above: u32,
}

impl WakeUps {
    /// The thread of `lane` was woken. Times before those of the lane's last wake-up count as its last one.
    pub fn push(&mut self, lane: usize, wake: WakeUp) {
        if lane >= self.lanes.len() {
            self.lanes.resize_with(lane + 1, Vec::new);
        }
        let before_ns = self.lanes[lane].last().map_or(0, |last| self.unpacked(last).ran_ns);
        let woken_ns = wake.woken_ns.max(before_ns);
        let delay_ns = wake.ran_ns.saturating_sub(woken_ns);
        let row = Row { by: wake.by, cpu: wake.cpu, delay_above: (delay_ns >> 32) as u32 };
        let row = *self.numbers.entry(row).or_insert_with(|| {
            self.rows.push(row);
            self.rows.len() as u32 - 1
        });
        self.lanes[lane].push(Packed { woken_ns, delay_ns: delay_ns as u32, row });
    }

    /// The wake-ups of `lane`.
    pub fn of(&self, lane: usize) -> impl Iterator<Item = WakeUp> {
        self.lanes.get(lane).into_iter().flatten().map(|wake| self.unpacked(wake))
    }

    /// Those of which the wait touches `window`, its ends included: a thread that ran at once waited for no time.
    pub fn within(&self, lane: usize, window: Span) -> impl Iterator<Item = WakeUp> {
        let of_lane = self.lanes.get(lane).map_or(&[][..], Vec::as_slice);
        let first = of_lane.partition_point(|wake| self.unpacked(wake).ran_ns < window.from_ns);
        let after = of_lane.partition_point(|wake| wake.woken_ns <= window.to_ns);
        of_lane[first..after.max(first)].iter().map(|wake| self.unpacked(wake))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lanes.iter().map(Vec::len).sum()
    }

    fn unpacked(&self, wake: &Packed) -> WakeUp {
        let Row { by, cpu, delay_above } = self.rows[wake.row as usize];
        let delay_ns = u64::from(delay_above) << 32 | u64::from(wake.delay_ns);
        WakeUp { woken_ns: wake.woken_ns, ran_ns: wake.woken_ns + delay_ns, by, cpu }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn wake(woken_ns: u64, ran_ns: u64) -> WakeUp {
        WakeUp { woken_ns, ran_ns, by: 7, cpu: Some(2) }
    }

    /// The second one waits for longer than 32 bits of nanoseconds, the third one for nothing.
    const SOME: [WakeUp; 4] = [
        wake(10, 25),
        WakeUp { by: u32::MAX, cpu: None, ..wake(40, 40 + (5 << 32) + 3) },
        wake(30_000_000_000, 30_000_000_000),
        wake(30_000_000_010, 30_000_000_020),
    ];

    fn filled() -> WakeUps {
        let mut wakes = WakeUps::default();
        SOME.iter().for_each(|wake| wakes.push(1, *wake));
        wakes
    }

    #[test]
    fn what_is_kept_in_sixteen_bytes_comes_back_whole() {
        assert_eq!(size_of::<Packed>(), 16);
        let wakes = filled();
        assert_eq!(wakes.of(1).collect::<Vec<_>>(), SOME);
        assert_eq!((wakes.count(), wakes.rows.len()), (4, 2), "what several have in common is kept once");
        assert_eq!(wakes.of(0).count() + wakes.of(2).count(), 0);
    }

    #[test]
    fn a_window_has_those_whose_wait_touches_it() {
        let wakes = filled();
        for from_ns in (0..60).chain(29_999_999_990..30_000_000_030) {
            for to_ns in [from_ns, from_ns + 1, from_ns + 7, 40_000_000_000] {
                let found: Vec<_> = wakes.within(1, Span { from_ns, to_ns }).collect();
                let touches = |wake: &&WakeUp| wake.woken_ns <= to_ns && wake.ran_ns >= from_ns;
                assert_eq!(found, SOME.iter().filter(touches).copied().collect::<Vec<_>>(), "{from_ns} to {to_ns}");
            }
        }
        assert_eq!(wakes.within(9, Span { from_ns: 0, to_ns: u64::MAX }).count(), 0);
    }

    #[test]
    fn a_clock_that_steps_back_loses_no_wake_up_and_no_order() {
        let mut wakes = filled();
        wakes.push(1, wake(5, 8));
        let all: Vec<_> = wakes.of(1).collect();
        assert_eq!(all.len(), 5);
        assert!(all.windows(2).all(|pair| pair[0].ran_ns <= pair[1].woken_ns), "{all:?}");
    }
}
