//! `apply --trial` by latency: what vCPUs lose is recorded without a change and with it, in turns, and held against a budget.
//!
//! ```text
//! one finding      without, with, without, with ..   --> the last run with it helped: kept, else undone
//! several          the same for each in turn, alone  --> all undone, ranked by what each took away
//! ```

use super::Tries;
use super::proposal::Proposal;
use super::trial::waiting;
use super::work::{Refused, Told, Work};
use crate::experiments::recorded::RunRecorder;
use crate::experiments::{Ended, Experiment, Runs, State, run};
use analysis::ablation::Trial as Measured;
use analysis::facts::ablation::{Effect, Ranked, Run, Tried, ranked};
use analysis::facts::budget::Budget;
use base::number::{many, percent};
use lab::journal::Entry;
use lab::setting::Host;
use process::Lines;
use process::exit::Exit;
use process::interrupt::rest;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// After a change, or its end, before the next run; never more than a quarter of a run.
const SETTLE: Duration = Duration::from_secs(1);

/// What hosts do every second, such as the throttling of real-time tasks (`kernel.sched_rt_period_us`), must not meet all runs of
/// one kind at the same moment: so each begins at another phase of it.
const PERIOD: Duration = Duration::from_secs(1);

/// Which part of a period the run of this number waits: multiples of the golden ratio leave no gaps and do not repeat (Knuth, The
/// Art of Computer Programming 3, 6.4).
fn phase(number: u32) -> f64 {
    (f64::from(number) * 0.618_033_988_749_895).fract()
}

/// Tries the planned changes of one finding: they stay if they helped. Nothing is measured of a trial that was ended.
pub(super) fn one(
    work: &mut Work<'_>,
    name: &str,
    budget: &Budget,
    tries: &Tries,
    stop: &AtomicBool,
) -> anyhow::Result<(Exit, Option<Measured>)> {
    work.lines.say(format_args!("  watched: {}", watched(budget, tries)));
    let recorder = RunRecorder::new(budget, work.journal.clone(), tries.length(), stop)?;
    let mut trial = Trial::new(work, name, budget, recorder, tries, stop, true);
    let ended = run(&mut trial, tries.runs)?;
    let (is_conclusive, kept) = (trial.is_conclusive, trial.kept.then(|| name.to_owned()));
    Ok(match ended {
        Ended::Interrupted => (Exit::Interrupted, None),
        Ended::Compared(..) if !is_conclusive => (Exit::NoAnswer, None),
        Ended::Compared(runs, _) | Ended::Unchanged(runs) => {
            let tried = Tried { name: name.to_owned(), before: runs.before, after: runs.after };
            (Exit::Answered, Some(Measured { kept, ..measured(budget, tries, vec![tried], Vec::new()) }))
        }
    })
}

fn measured(budget: &Budget, tries: &Tries, tried: Vec<Tried>, not_tried: Vec<(String, String)>) -> Measured {
    Measured { budget: budget.clone(), run_s: tries.length().as_secs_f64(), tried, not_tried, kept: None }
}

/// Tries the changes of several findings, each alone; none stays. Those that cannot be made are passed over, and said.
pub(super) fn several(
    proposals: &[&Proposal],
    budget: &Budget,
    tries: &Tries,
    journal: impl Fn() -> lab::journal::Journal,
    (stop, lines): (&AtomicBool, &mut Lines),
) -> anyhow::Result<(Exit, Option<Measured>)> {
    lines.say(format_args!("watched: {}", watched(budget, tries)));
    let (mut tried, mut not_tried) = (Vec::new(), Vec::new());
    let mut passed_over = |lines: &mut Lines, proposal: &Proposal, why: String| {
        lines.say(format_args!("  not tried: {why}"));
        not_tried.push((proposal.id.clone(), why));
    };
    for proposal in proposals {
        lines.say(format_args!("{}:", proposal.id));
        let host = Host::at(Path::new(super::ROOT));
        let mut work = match Work::plan(host, journal(), &proposal.changes, std::mem::take(lines)) {
            Ok(work) => work,
            Err((error, said)) => {
                *lines = said;
                passed_over(lines, proposal, format!("{error:#}"));
                continue;
            }
        };
        let ended = alone(&mut work, &proposal.id, budget, tries, stop);
        *lines = std::mem::take(&mut work.lines);
        match ended {
            Ok(Some(runs)) => tried.push(runs),
            Ok(None) => {
                lines.say("  ended before the runs were complete; nothing stays changed");
                return Ok((Exit::Interrupted, None));
            }
            Err(error) if error.is::<Refused>() => passed_over(lines, proposal, format!("{error:#}")),
            Err(error) => return Err(error),
        }
    }
    tried.retain(|one| !one.after.is_empty());
    if tried.is_empty() {
        lines.say("none of them could be tried");
        return Ok((Exit::NoAnswer, None));
    }
    Ok((Exit::Answered, Some(measured(budget, tries, tried, not_tried))))
}

/// All runs of one of several changes; `None`: the user ended it. No run at all: there was nothing to change.
fn alone(
    work: &mut Work<'_>,
    name: &str,
    budget: &Budget,
    tries: &Tries,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Tried>> {
    if work.altered.is_empty() {
        work.lines.say("  nothing to change");
        return Ok(Some(Tried { name: name.to_owned(), before: Vec::new(), after: Vec::new() }));
    }
    let recorder = RunRecorder::new(budget, work.journal.clone(), tries.length(), stop)?;
    let mut trial = Trial::new(work, name, budget, recorder, tries, stop, false);
    let ended = run(&mut trial, tries.runs)?;
    Ok(match ended {
        Ended::Interrupted => None,
        Ended::Unchanged(runs) | Ended::Compared(runs, _) => {
            let after = if trial.is_conclusive { runs.after } else { Vec::new() };
            Some(Tried { name: name.to_owned(), before: runs.before, after })
        }
    })
}

/// The changes of a finding, tried.
struct Trial<'a, 'b> {
    work: &'a mut Work<'b>,
    name: &'a str,
    budget: &'a Budget,
    recorder: RunRecorder<'a>,
    tries: &'a Tries,
    stop: &'a AtomicBool,
    /// Whether they are kept if they helped.
    may_stay: bool,
    /// True if nobody else set one of the values meanwhile.
    is_conclusive: bool,
    turns: u32,
    /// Runs that were begun.
    measured: u32,
    /// Whether the change stays.
    kept: bool,
}

impl<'a, 'b> Trial<'a, 'b> {
    fn new(
        work: &'a mut Work<'b>,
        name: &'a str,
        budget: &'a Budget,
        recorder: RunRecorder<'a>,
        tries: &'a Tries,
        stop: &'a AtomicBool,
        may_stay: bool,
    ) -> Self {
        Self {
            work,
            name,
            budget,
            recorder,
            tries,
            stop,
            may_stay,
            is_conclusive: true,
            turns: 0,
            measured: 0,
            kept: false,
        }
    }
}

impl Experiment for Trial<'_, '_> {
    type Sample = Run;
    type Proposal = ();
    type Made = Entry;
    type Found = Option<Ranked>;

    fn begin(&mut self) -> anyhow::Result<bool> {
        waiting(2 * self.tries.seconds, "without the change and with it, in turns; Ctrl-C reverts it");
        Ok(true)
    }

    fn measure(&mut self, state: State) -> anyhow::Result<Option<Run>> {
        let settled = SETTLE.min(self.tries.length() / 4) + PERIOD.mul_f64(phase(self.measured));
        self.measured += 1;
        if rest(settled, self.stop) {
            return Ok(None);
        }
        let run = self.recorder.run()?;
        // A value that somebody else set back at once was not in force.
        if state == State::After && run.is_some() && self.is_conclusive {
            self.is_conclusive = self.work.holds();
        }
        Ok(run)
    }

    /// The user has agreed to it already.
    fn propose(&mut self) -> anyhow::Result<Option<()>> {
        Ok(Some(()))
    }

    fn make(&mut self, (): &()) -> anyhow::Result<Option<Entry>> {
        self.turns += 1;
        self.work.make(self.stop)
    }

    fn undo(&mut self, made: Entry) -> anyhow::Result<()> {
        // Said once a change, and not once a turn.
        let ends = self.turns == self.tries.runs || self.stop.load(Ordering::Relaxed);
        let told = if ends { Told::All } else { Told::Trouble };
        self.work.put_back(made, told)
    }

    fn turned(&mut self, runs: &Runs<Run>) {
        if runs.after.len() as u32 == self.tries.runs {
            doubts(runs).iter().for_each(|doubt| self.work.lines.say(format_args!("  measured: {doubt}")));
        }
    }

    fn compare(&self, runs: &Runs<Run>) -> Option<Ranked> {
        let Runs { before, after } = runs.clone();
        ranked(self.budget, &[Tried { name: self.name.to_owned(), before, after }]).pop()
    }

    fn keeps(&mut self, _: &Runs<Run>, found: &Option<Ranked>) -> anyhow::Result<bool> {
        let found = found.as_ref().filter(|_| self.may_stay && self.is_conclusive);
        Ok(found.is_some_and(|found| found.effect == Effect::Helped))
    }

    fn keep(&mut self, made: Entry) {
        self.kept = true;
        self.work.lines.say(format_args!("  kept; `kvmscope undo {}` reverts it", made.id));
    }
}

/// Where more of the time is unknown, a run shows too little of what was lost.
const MOST_UNKNOWN: f64 = 0.05;

/// Why runs may not be alike.
fn doubts(runs: &Runs<Run>) -> Vec<String> {
    let all = || runs.before.iter().chain(&runs.after);
    let unknown = all().filter(|run| run.unknown_share > MOST_UNKNOWN).count() as u64;
    let vcpus = |pick: fn(usize, usize) -> usize| all().map(|run| run.vcpus).reduce(pick).unwrap_or(0);
    let (fewest, most) = (vcpus(usize::min), vcpus(usize::max));
    let unknown = (unknown > 0).then(|| {
        format!("in {} more than {} of the vCPUs' time is unknown", many(unknown, "run"), percent(MOST_UNKNOWN))
    });
    let differ = (fewest < most).then(|| format!("runs had {fewest} to {most} vCPUs: keep the same VMs running"));
    unknown.into_iter().chain(differ).collect()
}

fn watched(budget: &Budget, tries: &Tries) -> String {
    format!(
        "what vCPUs lose, by budget {}: {} of {:.1} s without the change and as many with it, in turns",
        budget.name,
        many(u64::from(tries.runs), "run"),
        tries.length().as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::phase;

    #[test]
    fn runs_of_both_kinds_begin_all_over_a_period() {
        // Without and with the change take turns, so the one kind has even numbers, the other odd ones.
        for kind in 0..2 {
            let mut phases: Vec<f64> = (0..8).map(|turn| phase(2 * turn + kind)).collect();
            phases.sort_by(f64::total_cmp);
            let gaps = phases.windows(2).map(|two| two[1] - two[0]);
            let around = 1.0 - phases[7] + phases[0];
            let widest = gaps.chain([around]).fold(0.0, f64::max);
            assert!(widest < 0.25, "eight runs, and {widest} of the period without one: {phases:?}");
        }
    }
}
