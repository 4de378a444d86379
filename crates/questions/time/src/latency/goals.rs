//! The goals of the budget in sentences: each with its verdict, its number, the worst moment with its causes, and how sure it is.

use super::measure::{Named, causes_within, spans_by_name};
use super::summary::{instant, window};
use base::number::{counted, list, many, percent, thousands};
use base::recording::Emulator;
use facts::Case;
use facts::attribution::ClockError;
use facts::budget::{Alone, BLOCK_NS, Doubt, Episodes, Exceeding, Goal, Judged, Metric, Stat, Verdict, by_goal, exact};
use facts::losses::{Definition, VcpuLosses};
use std::collections::BTreeSet;

/// Causes of a worst moment that a sentence names.
const MOST_CAUSES: usize = 4;

/// A smaller share is not written as a percentage: it would be rounded to nothing.
const LEAST_PERCENT: f64 = 0.001;

pub(crate) struct Verdicts<'c> {
    pub case: &'c Case,
    pub goal: &'c Goal,
    /// Worst first: by verdict, then by the number. Never empty.
    pub all: Vec<&'c Judged>,
}

/// The mark that every number of an emulated recording carries.
pub(super) fn mark(emulator: Emulator) -> String {
    format!("emulated by {}", emulator.name())
}

/// `95 %`.
fn percents(share: f64) -> String {
    format!("{} %", base::number::plain(share * 100.0))
}

/// The goals of the budget, in its order.
pub(super) fn verdicts(case: &Case) -> Vec<Verdicts<'_>> {
    // What a migration was judged by, its own question says.
    let is_own = |facts: &facts::budget::Verdicts<'_>| facts.worst().whose.run.is_none();
    let own = by_goal(case).into_iter().filter(is_own);
    own.map(|facts| Verdicts { case, goal: facts.goal, all: facts.all }).collect()
}

/// A paragraph for each, the broken ones first, below one that counts them; those that nothing measures are told together.
pub(super) fn summary(name: &str, verdicts: &[Verdicts<'_>]) -> String {
    let having = |verdict: Verdict| verdicts.iter().filter(|goal| goal.verdict() == verdict).count() as u64;
    let counts = [Verdict::Fail, Verdict::Inconclusive, Verdict::NotMeasured, Verdict::Pass];
    let counts = counts.map(|verdict| (having(verdict), verdict.name()));
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    let counts = format!("{}: {}", many(verdicts.len() as u64, "goal"), list(&counts));
    let head = match who_broke(verdicts) {
        Some(who) => format!("{who} budget {name} ({counts})."),
        None => format!("Budget {name}, {counts}."),
    };
    let judged = [Verdict::Fail, Verdict::Inconclusive, Verdict::Pass].into_iter();
    let judged = judged.flat_map(|verdict| verdicts.iter().filter(move |goal| goal.verdict() == verdict));
    let each = judged.map(Verdicts::sentence).chain(not_measured(verdicts));
    std::iter::once(head).chain(each).collect::<Vec<_>>().join("\n\n")
}

/// `vCPU 0 of vm1 and 2 others broke`: who failed the first goal that was failed, the worst by name, with all others that failed one.
fn who_broke(verdicts: &[Verdicts<'_>]) -> Option<String> {
    let failed = verdicts.iter().flat_map(|goal| &goal.all);
    let names: Vec<String> = failed
        .filter(|judged| judged.judgement.verdict == Verdict::Fail)
        .filter_map(|judged| judged.whose.name())
        .collect();
    let first = names.first()?;
    let others = names.iter().filter(|name| *name != first).collect::<BTreeSet<_>>().len() as u64;
    let others = if others == 0 { String::new() } else { format!(" and {}", many(others, "other")) };
    Some(format!("{first}{others} broke"))
}

/// `timer-mean and timer-max NOT MEASURED: the recording has no result of a program that measures timer latency.`
fn not_measured(verdicts: &[Verdicts<'_>]) -> Option<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for goal in verdicts.iter().filter(|goal| goal.verdict() == Verdict::NotMeasured) {
        let why = goal.worst().judgement.why().unwrap_or_default();
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, goals)) => goals.push(goal.goal.id.clone()),
            None => reasons.push((why, vec![goal.goal.id.clone()])),
        }
    }
    let told = reasons.iter().map(|(why, goals)| format!("{} {}: {why}.", list(goals), Verdict::NotMeasured.name()));
    let told = told.collect::<Vec<_>>().join(" ");
    (!told.is_empty()).then_some(told)
}

/// A larger share of windows, or of the time, is no matter of single episodes: it is said as it is.
const MOST_RARE: f64 = 0.01;

/// Which share exceeds a limit, in words, where it is no rare one: certainly, and if all that is unknown was lost.
fn much(exceeding: Exceeding) -> Option<String> {
    let of = |ns: u64| ns as f64 / exceeding.all_ns.max(1) as f64;
    let (low, high) = (percent(of(exceeding.low_ns)), percent(of(exceeding.high_ns)));
    let is_much = of(exceeding.high_ns) > MOST_RARE;
    is_much.then(|| if low == high { low } else { format!("{low} to {high}") })
}

impl<'c> Verdicts<'c> {
    pub(crate) fn worst(&self) -> &'c Judged {
        self.all[0]
    }

    /// The goal's own verdict: it is met if all meet it.
    pub(crate) fn verdict(&self) -> Verdict {
        self.worst().judgement.verdict
    }

    /// `preempt-window FAIL: vCPU 2 of vm1 lost 37 us in the millisecond at 12.345678 s: 22 us kworker/3:1, 15 us local_timer;
    /// budget < 20 us. FAIL on 1 of 4 vCPUs; ...`
    fn sentence(&self) -> String {
        let emulated = self.case.input().recording.emulated;
        let judgement = &self.worst().judgement;
        let mut clauses = Vec::new();
        clauses.extend(self.how_many());
        clauses.extend(self.samples());
        clauses.extend(judgement.episodes.and_then(|episodes| self.how_often(episodes)));
        clauses.extend(judgement.why());
        let is_said = judgement.doubts.iter().any(|doubt| matches!(doubt, Doubt::ClockError { .. }));
        clauses.extend(judgement.clock_error.filter(|error| error.most_ns() > 0 && !is_said).map(ClockError::phrase));
        clauses.extend(self.future());
        clauses.extend(self.goal.environment.as_ref().map(|load| format!("stated for {load}")));
        clauses.extend(emulated.filter(|_| judgement.bounds.is_some()).map(mark));
        clauses.dedup();
        let rest = clauses.join("; ");
        let mut letters = rest.chars();
        let rest =
            letters.next().map_or(String::new(), |first| format!(" {}{}.", first.to_uppercase(), letters.as_str()));
        format!("{}.{rest}", self.stated(self.causes_phrase()))
    }

    /// The verdict, the number and the limit.
    pub(crate) fn title(&self) -> String {
        self.stated(None)
    }

    fn stated(&self, causes: Option<String>) -> String {
        let (goal, worst) = (self.goal, self.worst());
        let head = format!("{} {}", goal.id, worst.judgement.verdict.name());
        let limit = format!("budget {} {}", goal.op.name(), exact(goal.limit_ns));
        let causes = causes.map_or(String::new(), |causes| format!(": {causes}"));
        match worst.judgement.bounds {
            None => format!("{head}: {limit}"),
            Some(bounds) => format!("{head}: {}{causes}; {limit}", self.measured(bounds.value_ns)),
        }
    }

    /// `vCPU 2 of vm1 lost 37 us in the millisecond at 12.345678 s`.
    fn measured(&self, value_ns: u64) -> String {
        let (goal, worst, value) = (self.goal, self.worst(), exact(value_ns));
        let at = worst.at_ns.map(|at_ns| format!(" at {}", instant(at_ns))).unwrap_or_default();
        let vcpu = worst.whose.processor().unwrap_or_default();
        match (goal.metric, goal.window_ns) {
            (Metric::PreemptWindow, Some(window_ns)) => format!("{vcpu} lost {value} in the {}{at}", window(window_ns)),
            (Metric::PreemptWindow | Metric::PreemptPeriod, _) => format!("{vcpu} lost {value} without a break{at}"),
            (Metric::TotalTime | Metric::DowntimeVmm | Metric::DowntimeNet, _) => goal.metric.words().to_owned(),
            (Metric::TimerLatency | Metric::IrqLatency, _) => {
                let stat = match goal.stat {
                    Stat::Mean => "mean",
                    Stat::Max | Stat::Sup => "maximum",
                };
                format!("the {stat} of {} is {value}", worst.whose.name().unwrap_or_default())
            }
        }
    }

    /// Who took the time in the worst moment, most first.
    pub(crate) fn causes(&self) -> Vec<(Named, u64)> {
        let worst = self.worst();
        let (Some(place), Some(span)) = (worst.whose.place, worst.judgement.worst) else { return Vec::new() };
        if self.goal.definition != Definition::Involuntary {
            return Vec::new();
        }
        let (part, losses) = (&self.case.ledger().parts[place.0], self.losses(place));
        causes_within(losses, part, span)
    }

    /// The causes that break the goal by themselves, over the whole recording of the vCPU that is worst; the one that breaks most first.
    pub(crate) fn alone(&self) -> Vec<(Named, Alone)> {
        let Some(place) = self.worst().whose.place.filter(|_| self.goal.definition == Definition::Involuntary) else {
            return Vec::new();
        };
        let (part, losses) = (&self.case.ledger().parts[place.0], self.losses(place));
        let by_name = spans_by_name(losses, part);
        let alone = facts::budget::alone(self.goal, losses, by_name.values().cloned());
        let mut all: Vec<(Named, Alone)> =
            by_name.into_keys().zip(alone).filter(|(_, alone)| alone.size() > 0.0).collect();
        all.sort_by(|(_, one), (_, other)| other.size().total_cmp(&one.size()));
        all
    }

    fn losses(&self, (part, vcpu): (usize, usize)) -> &'c VcpuLosses {
        &self.case.losses()[part].vcpus[vcpu]
    }

    fn causes_phrase(&self) -> Option<String> {
        let causes = self.causes();
        let mut named: Vec<String> =
            causes.iter().take(MOST_CAUSES).map(|(named, ns)| format!("{} {}", exact(*ns), named.phrase())).collect();
        let rest_ns: u64 = causes.iter().skip(MOST_CAUSES).map(|(_, ns)| ns).sum();
        named.extend((rest_ns > 0).then(|| format!("{} other causes", exact(rest_ns))));
        (!named.is_empty()).then(|| named.join(", "))
    }

    /// On how many of several it has this verdict.
    fn how_many(&self) -> Option<String> {
        let same = self.all.iter().filter(|judged| judged.judgement.verdict == self.verdict()).count();
        let (what, several) = if self.goal.metric.is_of_losses() { ("vCPU", "vCPUs") } else { ("thread", "threads") };
        (self.all.len() > 1).then(|| {
            format!("{} on {same} of {}", self.verdict().name(), counted(self.all.len() as u64, what, several))
        })
    }

    /// How many samples are over the limit, and how many of all there could be.
    pub(crate) fn samples(&self) -> Option<String> {
        let counts = self.worst().judgement.counts?;
        let (samples, over_high) = (counts.samples?, counts.over_high?);
        if self.goal.stat == Stat::Mean || samples == 0 {
            return Some(format!("{} samples", thousands(samples)));
        }
        let over = match counts.over_low == over_high {
            true => thousands(over_high),
            false => format!("{} to {}", thousands(counts.over_low), thousands(over_high)),
        };
        let sure = self.goal.require.confidence;
        let share = counts.bound(sure)?;
        let seen = format!("{over} of {} samples are over it", thousands(samples));
        if over_high == samples {
            return Some(seen);
        }
        let share = if share < LEAST_PERCENT { format!("{share:.2e}") } else { percent(share) };
        Some(format!("{seen}, at most {share} of all there could be ({} confidence)", percents(sure)))
    }

    /// Which share of all windows, or of the time, exceeds the limit; where it is small, in how many episodes that lies, and in which share of
    /// blocks of time at most one begins.
    fn how_often(&self, episodes: Episodes) -> Option<String> {
        let over_the_limit = || Some(format!("over the limit {}", self.in_episodes(episodes)?));
        let share = episodes.exceeding.and_then(much);
        if let Some(window_ns) = self.goal.window_ns {
            let exceed = share.map(|share| format!("{share} of all windows of {} exceed it", exact(window_ns)));
            return exceed.or_else(over_the_limit);
        }
        // Of samples, their own sentence has the number.
        let over = episodes.exceeding.and(self.worst().judgement.counts).map_or(0, |counts| counts.over_low);
        if over == 0 {
            return over_the_limit();
        }
        let seen = counted(over, "loss is", "losses are");
        match share {
            Some(share) => Some(format!("{seen} over it, {share} of the time")),
            None => Some(format!("{seen} over it, {}", self.in_episodes(episodes)?)),
        }
    }

    fn in_episodes(&self, episodes: Episodes) -> Option<String> {
        let sure = self.goal.require.confidence;
        // What is unknown joins stretches as well as it adds some.
        let (fewest, most) = (episodes.low.min(episodes.high), episodes.low.max(episodes.high));
        let share = episodes.bound(sure)?;
        let seen = match (fewest, most) {
            (0, 0) => "no episode".to_owned(),
            (fewest, most) if fewest == most => many(most, "episode"),
            (fewest, most) => format!("{fewest} to {most} episodes"),
        };
        Some(format!(
            "in {seen}; one begins in at most {} of blocks of {} ({} confidence)",
            percent(share),
            exact(BLOCK_NS),
            percents(sure)
        ))
    }

    /// Between which bounds the number lies, where they are not one.
    pub(crate) fn between(&self) -> Option<String> {
        let bounds = self.worst().judgement.bounds?;
        let low = exact(bounds.low_ns);
        match bounds.high_ns {
            Some(high_ns) if high_ns == bounds.low_ns => None,
            Some(high_ns) if self.goal.metric.is_of_losses() => {
                Some(format!("between {low} and, if all unknown time was lost, {}", exact(high_ns)))
            }
            Some(high_ns) if self.goal.metric == Metric::IrqLatency => {
                Some(format!("between {low} and {}, as far as the clocks are known", exact(high_ns)))
            }
            Some(high_ns) => Some(format!("between {low} and {}, as samples are rounded", exact(high_ns))),
            None => Some(format!("at least {low}")),
        }
    }

    /// Whether the limit that is wanted later is broken already.
    fn future(&self) -> Option<String> {
        let (goal, future_ns) = (self.goal, self.goal.future_ns?);
        let bounds = self.worst().judgement.bounds?;
        let broken = !goal.op.holds(bounds.low_ns, future_ns);
        broken.then(|| format!("the future limit {} {} is broken", goal.op.name(), exact(future_ns)))
    }
}
