//! Goals on losses, judged by what a trace shows of one vCPU.
//!
//! ```text
//! certain    ##      ####        lost, whatever the unknown time was: bounds from below, and the value
//! unknown         ??
//! possible   ##   ######         lost if all of that was: bounds from above
//! ```

use super::episodes::{Episodes, Exceeding};
use super::verdict::{Bounds, Doubt, verdict};
use super::{Counts, DEFINITIONS, Goal, Judgement, Op};
use crate::ledger::model::PartFlow;
use crate::losses::{Definition, Limit, Stretches, VcpuLosses};
use base::{ClockSource, Span};

/// What a vCPU lost by one definition.
pub(super) struct Lost {
    /// What was looked at, since the first event of the trace.
    span: Span,
    certain: Stretches,
    possible: Stretches,
    unknown_ns: u64,
    /// How much of that is no time of its guest.
    outside_ns: u64,
}

impl Lost {
    pub(super) fn of(losses: &VcpuLosses, definition: Definition) -> Self {
        let certain = losses.stretches(definition);
        let possible = losses.at_most(&certain);
        let unknown_ns = losses.unknown.iter().map(Span::length_ns).sum();
        Self { span: losses.span, certain, possible, unknown_ns, outside_ns: losses.outside_ns }
    }

    /// What of `all_ns`, the ends of all windows or all time, exceeds a limit. Time outside of its guest's life is no part of it.
    fn exceeding(&self, certain: &[Span], possible: &[Span], all_ns: u64) -> Exceeding {
        let length_ns = |spans: &[Span]| spans.iter().map(Span::length_ns).sum::<u64>();
        let all_ns = all_ns.saturating_sub(self.outside_ns);
        let low_ns = length_ns(certain).min(all_ns);
        let high_ns = length_ns(possible).saturating_sub(self.outside_ns).clamp(low_ns, all_ns);
        Exceeding { low_ns, high_ns, all_ns }
    }
}

/// How far off the edges of losses may be: text has whole microseconds, unless its writer was asked for more digits.
pub(super) fn clock_error_ns(part: &PartFlow, losses: &VcpuLosses) -> u64 {
    let whole = |ns: u64| ns.is_multiple_of(TEXT_NS);
    let is_whole =
        |definition| losses.stretches(definition).spans().iter().all(|span| whole(span.from_ns) && whole(span.to_ns));
    let rounded = part.format == trace::Format::Text && DEFINITIONS.into_iter().all(is_whole);
    if rounded { TEXT_NS } else { 0 }
}

/// The last digit that ftrace and `trace-cmd report` print of a time (kernel/trace/trace_output.c, Linux 6.12).
const TEXT_NS: u64 = 1_000;

/// What the trace lacks for a PASS of any goal on losses by this definition.
pub(super) fn lacking(part: &PartFlow, definition: Definition) -> Vec<Doubt> {
    let involuntary = definition == Definition::Involuntary;
    let unseen = [
        (!part.seen.exit, "kvm_exit"),
        (involuntary && !part.has_switches, "sched_switch"),
        (involuntary && !part.seen.waking, "sched_waking"),
    ];
    let unseen = unseen.into_iter().filter(|(lacks, _)| *lacks).map(|(_, event)| Doubt::Unseen(event));
    let uncalibrated = (part.clock.source == ClockSource::None).then_some(Doubt::Uncalibrated);
    unseen.chain(uncalibrated).collect()
}

/// Judges one goal by what one vCPU lost; `lacking` is what its trace lacks, whose clock is off by `clock_error_ns` at most.
pub(super) fn judge(goal: &Goal, lost: &Lost, lacking: &[Doubt], clock_error_ns: u64) -> Judgement {
    let (length_ns, require) = (lost.span.length_ns(), &goal.require);
    let measured = match goal.window_ns {
        Some(window_ns) => in_windows(goal, lost, window_ns),
        None => without_break(goal, lost),
    };
    let mut doubts = lacking.to_vec();
    doubts.extend(Doubt::of_clock(goal, clock_error_ns));
    if let (None, Some(window_ns)) = (&measured, goal.window_ns) {
        doubts.push(Doubt::NoWindow { trace_ns: length_ns, window_ns });
    }
    let short = require.trace_ns.filter(|least_ns| length_ns < *least_ns);
    doubts.extend(short.map(|least_ns| Doubt::ShortTrace { trace_ns: length_ns, least_ns }));
    let share = lost.unknown_ns as f64 / length_ns.max(1) as f64;
    doubts.extend(require.unknown_share.filter(|most| share > *most).map(|most| Doubt::UnknownShare { share, most }));
    let Some(Measured { bounds, worst, over, episodes }) = measured else {
        let verdict = verdict(goal, None, &doubts);
        return Judgement {
            verdict,
            bounds: None,
            doubts,
            worst: None,
            counts: None,
            episodes: None,
            clock_error: None,
        };
    };
    let broken = |ns: u64| !goal.op.holds(ns, goal.limit_ns);
    let unknown_breaks = bounds.high_ns.filter(|high_ns| broken(*high_ns) && !broken(bounds.low_ns));
    doubts.extend(unknown_breaks.map(|high_ns| Doubt::UnknownTime { high_ns }));
    Judgement {
        verdict: verdict(goal, Some(bounds), &doubts),
        bounds: Some(bounds),
        doubts,
        worst: Some(worst),
        counts: Some(Counts { samples: None, over_low: over, over_high: None }),
        episodes: Some(episodes),
        clock_error: None,
    }
}

/// When a vCPU broke any of `goals`, for certain: the windows that lost too much, the losses that were too long.
pub(super) fn breaches<'g>(goals: impl Iterator<Item = &'g Goal>, losses: &VcpuLosses) -> Stretches {
    let mut all: Vec<Span> = Vec::new();
    for goal in goals.filter(|goal| goal.metric.is_of_losses()) {
        let lost = losses.stretches(goal.definition);
        match goal.window_ns {
            Some(window_ns) => {
                let over = lost.over(losses.span, window_ns, limit(goal)).map(|over| over.spans).unwrap_or_default();
                let window = |ends: Span| Span { from_ns: ends.from_ns.saturating_sub(window_ns), to_ns: ends.to_ns };
                all.extend(over.into_iter().map(window));
            }
            None => all.extend(too_long(goal, &lost)),
        }
    }
    all.sort_by_key(|span| span.from_ns);
    Stretches::of(all)
}

/// How much of a recording one cause breaks a goal by itself, whatever others took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Alone {
    /// The share of all windows of the goal.
    Windows(f64),
    /// Losses without a break that are over the limit.
    Losses(u64),
}

impl Alone {
    /// A number to rank causes of one goal by.
    pub fn size(self) -> f64 {
        match self {
            Alone::Windows(share) => share,
            Alone::Losses(count) => count as f64,
        }
    }
}

/// What breaks `goal` alone, of the stretches that each of several causes took of a vCPU, in time order; in the order of `taken`.
pub fn alone(goal: &Goal, losses: &VcpuLosses, taken: impl IntoIterator<Item = Vec<Span>>) -> Vec<Alone> {
    let one = |spans: Vec<Span>| {
        let stretches = Stretches::of(spans);
        match goal.window_ns {
            Some(window_ns) => {
                let over = stretches.over(losses.span, window_ns, limit(goal));
                Alone::Windows(over.map_or(0.0, |over| over.share_without(losses.outside_ns)))
            }
            None => Alone::Losses(too_long(goal, &stretches).len() as u64),
        }
    };
    taken.into_iter().map(one).collect()
}

fn limit(goal: &Goal) -> Limit {
    match goal.op {
        Op::Below => Limit::AtLeast(goal.limit_ns),
        Op::AtMost => Limit::Above(goal.limit_ns),
    }
}

/// The losses that break a goal on their length.
fn too_long(goal: &Goal, lost: &Stretches) -> Vec<Span> {
    lost.spans().iter().filter(|span| !goal.op.holds(span.length_ns(), goal.limit_ns)).copied().collect()
}

/// What a metric is for one vCPU.
struct Measured {
    bounds: Bounds,
    worst: Span,
    over: u64,
    episodes: Episodes,
}

/// The largest loss in any window; `None` if the trace is shorter.
fn in_windows(goal: &Goal, lost: &Lost, window_ns: u64) -> Option<Measured> {
    let limit = limit(goal);
    let worst = lost.certain.sup(lost.span, window_ns)?;
    let high = lost.possible.sup(lost.span, window_ns)?;
    let over = |stretches: &Stretches| stretches.over(lost.span, window_ns, limit).map(|over| over.spans);
    let (certain, possible) = (over(&lost.certain)?, over(&lost.possible)?);
    Some(Measured {
        bounds: Bounds { low_ns: worst.loss_ns, value_ns: worst.loss_ns, high_ns: Some(high.loss_ns) },
        worst: Span { from_ns: worst.at_ns, to_ns: worst.at_ns + window_ns },
        over: certain.len() as u64,
        episodes: Episodes {
            exceeding: Some(lost.exceeding(&certain, &possible, lost.span.length_ns().saturating_sub(window_ns))),
            ..Episodes::of(&certain, &possible, lost.span.length_ns())
        },
    })
}

/// The longest loss without a break.
fn without_break(goal: &Goal, lost: &Lost) -> Option<Measured> {
    let (certain, possible) = (too_long(goal, &lost.certain), too_long(goal, &lost.possible));
    let nothing = Span { from_ns: lost.span.from_ns, to_ns: lost.span.from_ns };
    let worst = lost.certain.longest().unwrap_or(nothing);
    let high_ns = lost.possible.longest().unwrap_or(nothing).length_ns();
    Some(Measured {
        bounds: Bounds { low_ns: worst.length_ns(), value_ns: worst.length_ns(), high_ns: Some(high_ns) },
        worst,
        over: certain.len() as u64,
        episodes: Episodes {
            exceeding: Some(lost.exceeding(&certain, &possible, lost.span.length_ns())),
            ..Episodes::of(&certain, &possible, lost.span.length_ns())
        },
    })
}

#[cfg(test)]
mod tests;
