//! What the clocks of a machine showed at one instant: what puts traces of different machines, which share no clock, on one axis.
//!
//! ```text
//! CLOCK_MONOTONIC --- CLOCK_REALTIME, time-stamp counter --- CLOCK_MONOTONIC    the narrowest of many tries
//!                  |<------------- error_ns -------------->|
//! ```
//! Recorders write a pair when they begin and one when they end. CLOCK_REALTIME minus CLOCK_MONOTONIC changes only where
//! somebody sets the time (kernel/time/timekeeping.c, Linux 6.12: both get the same rate from NTP), so a difference between the
//! two pairs is such a step, of which nobody knows when it came: all of it counts as error.
//!
//! How far two hosts' CLOCK_REALTIME were apart is in no recording: NTP keeps them within milliseconds, PTP within microseconds.

use super::Recording;
use serde::{Deserialize, Serialize};

/// A reading of all clocks of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPair {
    /// Id of the machine.
    pub machine: String,
    /// When it was taken.
    pub at: Moment,
    /// CLOCK_REALTIME.
    pub realtime_ns: u64,
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// The time-stamp counter, where the machine has one.
    #[serde(default)]
    pub tsc: Option<u64>,
    /// All were read within this time, so none is further from the others.
    pub error_ns: u64,
    /// How far CLOCK_REALTIME may be from UTC by the kernel's own account (`maxerror` of adjtimex(2), which NTP or PTP keeps small); `None` where
    /// nobody sets that clock by another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utc_error_ns: Option<u64>,
}

/// When clocks were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Moment {
    /// Before the first event.
    Begin,
    /// After the last one.
    End,
}

/// A machine's CLOCK_REALTIME, by its pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WallClock {
    pub(super) first: ClockPair,
    pub(super) last: Option<ClockPair>,
}

/// An instant of CLOCK_REALTIME.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallTime {
    /// Since 1970.
    pub realtime_ns: u64,
    /// How far that may be from what the machine's own clock showed.
    pub error_ns: u64,
}

impl Recording {
    /// The wall clock of the machine called `id`, if its recorder read it.
    pub fn wall_clock(&self, id: &str) -> Option<WallClock> {
        let of = |at| self.clock_pairs.iter().find(|pair| pair.machine == id && pair.at == at).cloned();
        match (of(Moment::Begin), of(Moment::End)) {
            (Some(first), last) => Some(WallClock { first, last }),
            (None, Some(first)) => Some(WallClock { first, last: None }),
            (None, None) => None,
        }
    }

    /// By how much CLOCK_REALTIME of two machines may differ: nothing where both are one, and else what both may be from UTC, if both
    /// are known.
    pub fn apart_ns(&self, one: &str, other: &str) -> Option<u64> {
        let of = |id: &str| {
            let pairs = self.clock_pairs.iter().filter(|pair| pair.machine == id);
            pairs.map(|pair| pair.utc_error_ns).reduce(|a, b| Some(a?.max(b?)))?
        };
        if one == other { Some(0) } else { of(one)?.checked_add(of(other)?) }
    }

    /// How long a tick of the time-stamp counter of the machine called `id` is, by its pairs or, if it is a guest without its own,
    /// by those of the machines below.
    pub fn ns_per_tick(&self, id: &str) -> Option<f64> {
        let mut id = id;
        // As many steps as there are machines, whatever a manifest says of their parents.
        for _ in 0..=self.machines.len() {
            if let Some(length) = self.wall_clock(id).and_then(|clock| clock.ns_per_tick()) {
                return Some(length);
            }
            id = self.machines.iter().find(|machine| machine.id == id)?.parent.as_deref()?;
        }
        None
    }
}

impl WallClock {
    /// What it showed when CLOCK_MONOTONIC was `monotonic_ns`.
    pub fn of_monotonic(&self, monotonic_ns: u64) -> WallTime {
        let ahead_ns = |pair: &ClockPair| i128::from(pair.realtime_ns) - i128::from(pair.monotonic_ns);
        let first_ns = ahead_ns(&self.first);
        let step_ns = self.last.as_ref().map_or(0, |last| bounded(ahead_ns(last).abs_diff(first_ns)));
        let width_ns = self.last.as_ref().map_or(0, |last| last.error_ns).max(self.first.error_ns);
        WallTime {
            realtime_ns: bounded((i128::from(monotonic_ns) + first_ns).max(0).unsigned_abs()),
            error_ns: width_ns.saturating_add(step_ns),
        }
    }

    /// What it showed of CLOCK_MONOTONIC when that of CLOCK_REALTIME was `realtime_ns`.
    pub fn monotonic_of(&self, realtime_ns: u64) -> (u64, u64) {
        let known = self.of_monotonic(0);
        (realtime_ns.saturating_sub(known.realtime_ns), known.error_ns)
    }

    /// How long a tick of the time-stamp counter was between the two pairs.
    pub fn ns_per_tick(&self) -> Option<f64> {
        let last = self.last.as_ref()?;
        let passed = last.tsc?.checked_sub(self.first.tsc?).filter(|passed| *passed > 0)?;
        Some(last.monotonic_ns.checked_sub(self.first.monotonic_ns)? as f64 / passed as f64)
    }

    /// The time-stamp counter when CLOCK_MONOTONIC was `monotonic_ns`, by a line through both pairs, and how far that may be off:
    /// by what each pair is, and outside of both by more, the further the more. Where there is one pair alone, nothing tells.
    pub fn tsc_of(&self, monotonic_ns: u64) -> Option<(u64, u64)> {
        let (from_ticks, ns_per_tick) = (self.first.tsc?, self.ns_per_tick().filter(|length| *length > 0.0)?);
        let passed_ns = monotonic_ns as f64 - self.first.monotonic_ns as f64;
        // The first tick in whole numbers: a counter of years has more digits than a float.
        let ticks = i128::from(from_ticks) + (passed_ns / ns_per_tick).round() as i128;
        Some((bounded(ticks.max(0).unsigned_abs()), self.width_ns(monotonic_ns)?))
    }

    /// CLOCK_MONOTONIC when the time-stamp counter was `ticks`, in the same way.
    pub fn monotonic_at(&self, ticks: u64) -> Option<(u64, u64)> {
        let passed = i128::from(ticks) - i128::from(self.first.tsc?);
        let passed_ns = (passed as f64 * self.ns_per_tick()?).round() as i128;
        let monotonic_ns = bounded((i128::from(self.first.monotonic_ns) + passed_ns).max(0).unsigned_abs());
        Some((monotonic_ns, self.width_ns(monotonic_ns)?))
    }

    /// How far the line through both pairs may be off when CLOCK_MONOTONIC was `monotonic_ns`.
    fn width_ns(&self, monotonic_ns: u64) -> Option<u64> {
        let last = self.last.as_ref()?;
        let width_ns = last.error_ns.max(self.first.error_ns);
        let span_ns = last.monotonic_ns.checked_sub(self.first.monotonic_ns).filter(|span_ns| *span_ns > 0)?;
        let before_ns = self.first.monotonic_ns.saturating_sub(monotonic_ns);
        let outside_ns = before_ns.max(monotonic_ns.saturating_sub(last.monotonic_ns));
        let more_ns = u128::from(width_ns) * 2 * u128::from(outside_ns) / u128::from(span_ns);
        Some(width_ns.saturating_add(bounded(more_ns)))
    }

    /// How far another pair of the same machine lies from the line through both.
    pub(super) fn bend_ns(&self, pair: &ClockPair) -> Option<u64> {
        Some(self.monotonic_at(pair.tsc?)?.0.abs_diff(pair.monotonic_ns))
    }

    /// What it showed when the time-stamp counter was `ticks`. Between two pairs the length of a tick is theirs; else
    /// `ns_per_tick` tells it, and without that nothing does.
    pub fn of_tsc(&self, ticks: u64, ns_per_tick: Option<f64>) -> Option<WallTime> {
        let passed = i128::from(ticks) - i128::from(self.first.tsc?);
        let passed_ns = (passed as f64 * self.ns_per_tick().or(ns_per_tick)?).round() as i128;
        Some(self.of_monotonic(bounded((i128::from(self.first.monotonic_ns) + passed_ns).max(0).unsigned_abs())))
    }
}

fn bounded(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(at: Moment, realtime_ns: u64, monotonic_ns: u64, tsc: Option<u64>) -> ClockPair {
        ClockPair { machine: "L0".into(), at, realtime_ns, monotonic_ns, tsc, error_ns: 40, utc_error_ns: None }
    }

    #[test]
    fn an_instant_lies_between_the_pairs_and_a_step_is_an_error() {
        let first = pair(Moment::Begin, 1_000_000, 5_000, Some(10_000));
        let last = |realtime_ns| pair(Moment::End, realtime_ns, 105_000, Some(210_000));
        let clock = |last| WallClock { first: first.clone(), last };
        let steady = clock(Some(last(1_100_000)));
        assert_eq!(steady.of_monotonic(55_000), WallTime { realtime_ns: 1_050_000, error_ns: 40 });
        assert_eq!(steady.of_tsc(110_000, None), Some(WallTime { realtime_ns: 1_050_000, error_ns: 40 }));
        assert_eq!(steady.of_tsc(0, None).unwrap().realtime_ns, 995_000, "also before the first pair");
        assert_eq!(clock(Some(last(1_100_700))).of_monotonic(5_000).error_ns, 740, "the time was set meanwhile");
        assert_eq!(steady.tsc_of(55_000), Some((110_000, 40)));
        assert_eq!(steady.monotonic_at(110_000), Some((55_000, 40)));
        assert_eq!(
            steady.tsc_of(205_000),
            Some((410_000, 120)),
            "as far behind the pairs as they are apart: three times"
        );
        assert_eq!(clock(None).tsc_of(5_000), None);
        let alone = clock(None);
        assert_eq!(
            (alone.of_tsc(30_000, None), alone.of_tsc(30_000, Some(0.5)).unwrap().realtime_ns),
            (None, 1_010_000)
        );
        let none = WallClock { first: pair(Moment::Begin, 7, 9, None), last: None };
        assert_eq!((none.of_tsc(1, Some(1.0)), none.of_monotonic(0).realtime_ns), (None, 0));
        let far = WallClock { first: pair(Moment::Begin, u64::MAX, 0, Some(u64::MAX)), last: Some(last(0)) };
        assert_eq!(far.of_monotonic(u64::MAX), WallTime { realtime_ns: u64::MAX, error_ns: u64::MAX });
        assert!(far.of_tsc(0, Some(f64::MAX)).is_some());
    }

    #[test]
    fn two_machines_are_apart_by_what_both_may_be_from_utc_if_both_say_so() {
        let of = |machine: &str, at, utc_error_ns| ClockPair {
            machine: machine.into(),
            utc_error_ns,
            ..pair(at, 0, 0, None)
        };
        let mut recording = Recording::of_nothing("");
        recording.clock_pairs =
            vec![of("A", Moment::Begin, Some(5)), of("A", Moment::End, Some(7)), of("B", Moment::Begin, Some(30))];
        assert_eq!(recording.apart_ns("A", "B"), Some(37), "the worse of two readings");
        assert_eq!((recording.apart_ns("A", "A"), recording.apart_ns("A", "C")), (Some(0), None));
        recording.clock_pairs.push(of("B", Moment::End, None));
        assert_eq!(recording.apart_ns("A", "B"), None, "its clock was let go meanwhile");
    }
}
