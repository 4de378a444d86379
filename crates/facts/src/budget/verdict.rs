//! What is known of a number decides whether its goal is met, and what is not known forbids a PASS.
//!
//! ```text
//!                    limit
//! low--value--high     |                  PASS           if nothing is in doubt
//!      low--value------|---high           INCONCLUSIVE
//!                      |  low--value---   FAIL           whatever else is in doubt, but for the clock
//! nothing measures it                     NOT MEASURED
//! ```

use super::quantity::exact;
use super::{Goal, Metric, Workload};
use base::number::{counted, percent, thousands};
use base::recording::Emulator;
use std::fmt;

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Verdict {
        /// It is broken, for certain.
        Fail = "FAIL",
        /// It may be met and may be broken, or the evidence is less than a PASS takes.
        Inconclusive = "INCONCLUSIVE",
        NotMeasured = "NOT MEASURED",
        Pass = "PASS",
    }
}

/// Between which bounds a number lies, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// It is not smaller: nothing unknown counts.
    pub low_ns: u64,
    pub value_ns: u64,
    /// It is not larger: all that is unknown counts. `None`: nothing limits it.
    pub high_ns: Option<u64>,
}

/// Why a goal neither passes nor fails.
#[derive(Debug, Clone, PartialEq)]
pub enum Doubt {
    /// The trace is shorter than the goal's window.
    NoWindow { trace_ns: u64, window_ns: u64 },
    /// The trace is shorter than a PASS takes.
    ShortTrace { trace_ns: u64, least_ns: u64 },
    /// With all unknown time lost the goal would be broken.
    UnknownTime {
        /// How large the number would be.
        high_ns: u64,
    },
    /// More of the time is unknown than a PASS allows.
    UnknownShare {
        /// The share that is unknown.
        share: f64,
        /// The share that may be.
        most: f64,
    },
    /// Events without which losses are not seen are not in the trace.
    Unseen(&'static str),
    /// Nothing shows how long a tick of the trace's clock is.
    Uncalibrated,
    /// The clocks are too far off for this limit.
    ClockError {
        /// How far off they may be.
        error_ns: u64,
        /// How far off they must not be.
        most_ns: u64,
    },
    /// There are fewer samples than a PASS takes.
    FewSamples { samples: u64, least: u64 },
    /// The limit lies inside a bucket of the histogram.
    InBucket {
        /// Samples over the limit, at least.
        over_low: u64,
        /// And at most.
        over_high: u64,
    },
    /// The mean is known to be between two numbers, and the limit lies between them.
    UnsureMean,
    /// The machine was emulated: its times are not those of a processor.
    Emulated(Emulator),
    /// No program measured it.
    NoSamples(Metric),
    /// No vCPU of the goal's scope is there.
    NoVcpu,
    /// No live migration is there.
    NoMigration,
    /// A migration was recorded, and nothing of it shows this.
    NotTold(Metric),
    /// Only what the source of a migration believes is known.
    AsReported { reported_ns: u64 },
    /// The goal is one of guests with this workload, and nobody stated the guest's.
    Workload(Workload),
    /// The model's interval holds the limit.
    Interval,
}

impl Bounds {
    pub fn exactly(value_ns: u64) -> Self {
        Self { low_ns: value_ns, value_ns, high_ns: Some(value_ns) }
    }
}

impl Doubt {
    /// True if not even a FAIL is certain.
    fn forbids_a_fail(&self) -> bool {
        match self {
            Doubt::Uncalibrated | Doubt::ClockError { .. } | Doubt::Workload(_) => true,
            Doubt::NoWindow { .. }
            | Doubt::ShortTrace { .. }
            | Doubt::UnknownTime { .. }
            | Doubt::UnknownShare { .. }
            | Doubt::Unseen(_)
            | Doubt::FewSamples { .. }
            | Doubt::InBucket { .. }
            | Doubt::UnsureMean
            | Doubt::Emulated(_)
            | Doubt::NoSamples(_)
            | Doubt::NoVcpu
            | Doubt::NoMigration
            | Doubt::NotTold(_)
            | Doubt::AsReported { .. }
            | Doubt::Interval => false,
        }
    }

    /// True if nothing was measured at all.
    fn is_of_absence(&self) -> bool {
        matches!(self, Doubt::NoSamples(_) | Doubt::NoVcpu | Doubt::NoMigration | Doubt::NotTold(_))
    }

    /// What clocks that are off by up to `error_ns` put in doubt: the goal allows a quarter of its limit, or less if it says so.
    pub(super) fn of_clock(goal: &Goal, error_ns: u64) -> Option<Self> {
        let quarter_ns = goal.limit_ns / 4;
        let most_ns = goal.require.clock_error_ns.map_or(quarter_ns, |most_ns| most_ns.min(quarter_ns));
        (error_ns > most_ns).then_some(Doubt::ClockError { error_ns, most_ns })
    }
}

/// The verdict on a number between `bounds`, which is not known at all where there are none.
pub(super) fn verdict(goal: &Goal, bounds: Option<Bounds>, doubts: &[Doubt]) -> Verdict {
    let holds = |ns: u64| goal.op.holds(ns, goal.limit_ns);
    if doubts.iter().any(Doubt::is_of_absence) {
        return Verdict::NotMeasured;
    }
    if doubts.iter().any(Doubt::forbids_a_fail) {
        return Verdict::Inconclusive;
    }
    match bounds {
        Some(bounds) if !holds(bounds.low_ns) => Verdict::Fail,
        Some(bounds) if doubts.is_empty() && bounds.high_ns.is_some_and(holds) => Verdict::Pass,
        Some(_) | None => Verdict::Inconclusive,
    }
}

/// The doubt in a sentence, as it follows a verdict and a colon.
impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::NoWindow { trace_ns, window_ns } => write!(
                f,
                "not enough trace: {} were recorded, and a window is {} long",
                exact(*trace_ns),
                exact(*window_ns)
            ),
            Doubt::ShortTrace { trace_ns, least_ns } => {
                write!(f, "not enough trace: {} were recorded, a PASS takes {}", exact(*trace_ns), exact(*least_ns))
            }
            Doubt::UnknownTime { high_ns } => {
                write!(f, "it would be {} if all unknown time was lost", exact(*high_ns))
            }
            Doubt::UnknownShare { share, most } => {
                write!(f, "{} of the time is unknown, a PASS allows {}", percent(*share), percent(*most))
            }
            Doubt::Unseen(event) => write!(f, "the trace has no {event}, so losses are lower bounds"),
            Doubt::Uncalibrated => write!(f, "the trace does not state how long a tick of its clock is"),
            Doubt::ClockError { error_ns, most_ns } => {
                write!(f, "clocks are off by up to {}, and {} are allowed", exact(*error_ns), exact(*most_ns))
            }
            Doubt::FewSamples { samples, least } => {
                write!(f, "{}, a PASS takes {}", counted(*samples, "sample", "samples"), thousands(*least))
            }
            Doubt::InBucket { over_low, over_high } => write!(
                f,
                "the limit lies inside a bucket of the histogram: {} to {} samples are over it",
                thousands(*over_low),
                thousands(*over_high)
            ),
            Doubt::UnsureMean => write!(f, "the limit lies inside the interval that holds the mean"),
            Doubt::Emulated(emulator) => write!(f, "{} emulated it, and a PASS takes a processor", emulator.name()),
            Doubt::NoSamples(metric) => {
                write!(f, "the recording has no result of a program that measures {}", metric.words())
            }
            Doubt::NoVcpu => write!(f, "the recording has no vCPU in the goal's scope"),
            Doubt::NoMigration => write!(f, "the recording has no live migration"),
            Doubt::NotTold(metric) => write!(f, "nothing of the migration tells {}", metric.words()),
            Doubt::AsReported { reported_ns } => write!(
                f,
                "only the source's own account is known, {}, and the guest may have been stopped for less or more",
                exact(*reported_ns)
            ),
            Doubt::Workload(workload) => write!(
                f,
                "it is a goal of guests whose workload is {}, and whether this guest is one was not stated",
                workload.name()
            ),
            Doubt::Interval => write!(f, "the limit lies inside the interval that the model gives"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::built_in;
    use super::*;
    use proptest::prelude::*;

    fn window() -> Goal {
        built_in("kvm4nfv-2015").unwrap().goals.remove(4)
    }

    #[test]
    fn bounds_decide_and_the_limit_itself_is_a_violation_of_less() {
        let of = |low_ns, high_ns| verdict(&window(), Some(Bounds { low_ns, value_ns: low_ns, high_ns }), &[]);
        assert_eq!(of(0, Some(19_999)), Verdict::Pass);
        assert_eq!(of(0, Some(20_000)), Verdict::Inconclusive);
        assert_eq!(of(0, None), Verdict::Inconclusive);
        assert_eq!(of(20_000, Some(20_000)), Verdict::Fail);
        assert_eq!(of(20_000, None), Verdict::Fail);
        assert_eq!(verdict(&window(), None, &[]), Verdict::Inconclusive);
    }

    #[test]
    fn a_fail_takes_nothing_but_a_clock() {
        let (broken, met) = (Some(Bounds::exactly(37_000)), Some(Bounds::exactly(3_000)));
        let short = Doubt::ShortTrace { trace_ns: 1, least_ns: 2 };
        assert_eq!(verdict(&window(), broken, std::slice::from_ref(&short)), Verdict::Fail);
        assert_eq!(verdict(&window(), met, &[short]), Verdict::Inconclusive);
        let clock = Doubt::of_clock(&window(), 5_001).unwrap();
        assert_eq!(clock, Doubt::ClockError { error_ns: 5_001, most_ns: 5_000 });
        assert_eq!(verdict(&window(), broken, &[clock]), Verdict::Inconclusive);
        assert_eq!(Doubt::of_clock(&window(), 5_000), None);
        let mut strict = window();
        strict.require.clock_error_ns = Some(1_000);
        assert!(Doubt::of_clock(&strict, 1_001).is_some());
    }

    #[test]
    fn absence_is_not_measured_and_never_a_pass() {
        assert_eq!(verdict(&window(), None, &[Doubt::NoVcpu]), Verdict::NotMeasured);
        let none = Doubt::NoSamples(Metric::TimerLatency);
        assert_eq!(verdict(&window(), Some(Bounds::exactly(0)), &[none]), Verdict::NotMeasured);
    }

    proptest! {
        #[test]
        fn wider_bounds_and_more_doubt_never_make_a_pass(
            low in 0u64..40_000, wide in 0u64..40_000, wider in 0u64..40_000, lower in 0u64..40_000, doubts in 0usize..4
        ) {
            let all = [
                Doubt::ShortTrace { trace_ns: 1, least_ns: 2 },
                Doubt::Unseen("sched_switch"),
                Doubt::Uncalibrated,
                Doubt::NoVcpu,
            ];
            let before = Bounds { low_ns: low, value_ns: low, high_ns: Some(low + wide) };
            let after = Bounds { low_ns: low.saturating_sub(lower), high_ns: Some(low + wide + wider), ..before };
            let first = verdict(&window(), Some(before), &[]);
            let second = verdict(&window(), Some(after), &all[..doubts]);
            prop_assert!(second != Verdict::Pass || first == Verdict::Pass);
        }
    }
}
