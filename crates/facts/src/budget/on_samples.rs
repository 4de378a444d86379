//! Goals on latencies, judged by what a program in the guest measured.
//!
//! Programs round: a sample is an interval, a count over a limit inside one is an interval too, and so is the mean.

use super::episodes::Episodes;
use super::verdict::{Bounds, Doubt, verdict};
use super::{Counts, Goal, Judgement, Metric, Stat};
use crate::attribution::ClockError;
use crate::samples::{Measures, Rounding, Samples};
use base::Span;
use base::recording::Emulator;

/// What a goal's metric is called where programs measure it; `None`: none does.
pub(super) fn measures(metric: Metric) -> Option<Measures> {
    match metric {
        Metric::TimerLatency => Some(Measures::Timer),
        Metric::IrqLatency => Some(Measures::Interrupt),
        Metric::PreemptPeriod
        | Metric::PreemptWindow
        | Metric::TotalTime
        | Metric::DowntimeVmm
        | Metric::DowntimeNet => None,
    }
}

/// Judges one goal by the samples of one thread, which were looked for in a trace up to `clock_error`; `emulated` tells who emulated
/// the machine that they are of.
pub(super) fn judge(
    goal: &Goal,
    samples: &Samples,
    clock_error: Option<ClockError>,
    emulated: Option<Emulator>,
) -> Judgement {
    let most_ns = goal.most_ns();
    let (over_low, over_high) = samples.over(most_ns);
    let bounds = match goal.stat {
        Stat::Mean => mean(samples),
        Stat::Max | Stat::Sup => longest(samples),
    };
    let mut doubts = Vec::new();
    if samples.count == 0 || bounds.is_none() {
        doubts.push(Doubt::NoSamples(goal.metric));
    }
    let few = goal.require.samples.filter(|least| samples.count < *least);
    doubts.extend(few.map(|least| Doubt::FewSamples { samples: samples.count, least }));
    let off_ns = clock_error.map_or(0, ClockError::most_ns).max(samples.error_ns);
    doubts.extend(Doubt::of_clock(goal, off_ns));
    doubts.extend(emulated.map(Doubt::Emulated));
    let holds = |ns: u64| goal.op.holds(ns, goal.limit_ns);
    if let Some(bounds) = bounds
        && holds(bounds.low_ns)
        && !bounds.high_ns.is_some_and(holds)
    {
        doubts.push(match goal.stat {
            Stat::Mean => Doubt::UnsureMean,
            Stat::Max | Stat::Sup => Doubt::InBucket { over_low, over_high },
        });
    }
    Judgement {
        verdict: verdict(goal, bounds, &doubts),
        bounds,
        doubts,
        worst: None,
        counts: Some(Counts { samples: Some(samples.count), over_low, over_high: Some(over_high) }),
        episodes: episodes(samples, most_ns),
        clock_error,
    }
}

fn longest(samples: &Samples) -> Option<Bounds> {
    let interval = samples.max?;
    let longest_ns = interval.to_ns.saturating_sub(1).max(interval.from_ns);
    let value_ns = match samples.rounding {
        Rounding::Down => interval.from_ns,
        Rounding::Up => longest_ns,
    };
    let low_ns = interval.from_ns.saturating_sub(samples.error_ns);
    Some(Bounds { low_ns, value_ns, high_ns: Some(longest_ns.saturating_add(samples.error_ns)) })
}

/// The mean, which is off by what the program cuts off each sample; and, where it did not keep every sample, by what it cuts off
/// the mean itself.
fn mean(samples: &Samples) -> Option<Bounds> {
    let printed_ns = samples.mean_ns.filter(|mean_ns| mean_ns.is_finite() && *mean_ns >= 0.0)?;
    let unit_ns = samples.unit_ns as f64;
    let is_whole = samples.buckets.iter().all(|bucket| bucket.to_ns.saturating_sub(bucket.from_ns) <= samples.unit_ns);
    let own_ns = if is_whole { 0.0 } else { unit_ns };
    let error_ns = samples.error_ns as f64;
    let (low_ns, high_ns) = match samples.rounding {
        Rounding::Down => (printed_ns - error_ns, printed_ns + unit_ns - 1.0 + own_ns + error_ns),
        Rounding::Up => (printed_ns - unit_ns - error_ns, printed_ns - 1.0 + own_ns + error_ns),
    };
    let (low_ns, high_ns) = (low_ns.max(0.0).floor() as u64, high_ns.max(0.0).ceil() as u64);
    Some(Bounds { low_ns, value_ns: (printed_ns.round() as u64).clamp(low_ns, high_ns), high_ns: Some(high_ns) })
}

fn episodes(samples: &Samples, most_ns: u64) -> Option<Episodes> {
    let (first, last) = (samples.timed.first()?, samples.timed.last()?);
    if samples.timed.len() as u64 != samples.count {
        return None;
    }
    let over = |cut_off_ns: u64| -> Vec<Span> {
        let long = samples.timed.iter().filter(|sample| sample.length_ns.saturating_add(cut_off_ns) > most_ns);
        long.map(|sample| Span { from_ns: sample.end_ns, to_ns: sample.end_ns }).collect()
    };
    let cut_off_ns = match samples.rounding {
        Rounding::Down => samples.unit_ns.saturating_sub(1),
        Rounding::Up => 0,
    };
    Some(Episodes::of(&over(0), &over(cut_off_ns), last.end_ns.saturating_sub(first.end_ns)))
}

#[cfg(test)]
mod tests;
