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
use crate::exit::Exit;
use crate::experiments::recorded::RunRecorder;
use crate::experiments::{Ended, Experiment, Runs, State, run};
use crate::interrupt::rest;
use crate::lines::Lines;
use analysis::facts::ablation::{Change, Effect, Ranked, Run, Tried, ranked};
use analysis::facts::budget::Budget;
use base::number::{many, percent, plain};
use lab::journal::Entry;
use lab::setting::Host;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// After a change, or its end, before the next run; never more than a quarter of a run.
const SETTLE: Duration = Duration::from_secs(1);

/// Tries the planned changes of one finding: they stay if they helped.
pub(super) fn one(
    work: &mut Work<'_>,
    name: &str,
    budget: &Budget,
    tries: &Tries,
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    work.lines.say(format_args!("  watched: {}", watched(budget, tries)));
    let recorder = RunRecorder::new(budget, work.journal.clone(), tries.length(), stop)?;
    let mut trial = Trial { work, name, budget, recorder, tries, stop, may_stay: true, is_conclusive: true, turns: 0 };
    Ok(match run(&mut trial, tries.runs)? {
        Ended::Interrupted => Exit::Interrupted,
        Ended::Compared(..) if !trial.is_conclusive => Exit::NoAnswer,
        Ended::Compared(..) | Ended::Unchanged(_) => Exit::Answered,
    })
}

/// Tries the changes of several findings, each alone; none stays. Those that cannot be made are passed over, and said.
pub(super) fn several(
    proposals: &[&Proposal],
    budget: &Budget,
    tries: &Tries,
    journal: impl Fn() -> lab::journal::Journal,
    (stop, lines): (&AtomicBool, &mut Lines),
) -> anyhow::Result<Exit> {
    lines.say(format_args!("watched: {}", watched(budget, tries)));
    let mut tried = Vec::new();
    for proposal in proposals {
        lines.say(format_args!("{}:", proposal.id));
        let host = Host::at(Path::new(super::ROOT));
        let mut work = match Work::plan(host, journal(), &proposal.changes, std::mem::take(lines)) {
            Ok(work) => work,
            Err((error, said)) => {
                *lines = said;
                lines.say(format_args!("  not tried: {error:#}"));
                continue;
            }
        };
        let ended = alone(&mut work, &proposal.id, budget, tries, stop);
        *lines = std::mem::take(&mut work.lines);
        match ended {
            Ok(Some(runs)) => tried.push(runs),
            Ok(None) => {
                lines.say("  ended before the runs were complete; nothing stays changed");
                return Ok(Exit::Interrupted);
            }
            Err(error) if error.is::<Refused>() => lines.say(format_args!("  not tried: {error:#}")),
            Err(error) => return Err(error),
        }
    }
    tried.retain(|one| !one.after.is_empty());
    if tried.is_empty() {
        lines.say("none of them could be tried");
        return Ok(Exit::NoAnswer);
    }
    lines.say("what each change did by itself, most first:");
    for (place, one) in ranked(budget, &tried).iter().enumerate() {
        lines.say(format_args!("{:>3}. {}: {}", place + 1, one.name, words(one, tries)));
        changes(one).for_each(|change| lines.say(format_args!("       {}", described(change))));
    }
    lines.say("nothing stays changed; `kvmscope apply ID` makes a change");
    Ok(Exit::Answered)
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
    let mut trial = Trial { work, name, budget, recorder, tries, stop, may_stay: false, is_conclusive: true, turns: 0 };
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
    /// Turns that were begun.
    turns: u32,
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
        if rest(SETTLE.min(self.tries.length() / 4), self.stop) {
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
        let Some(found) = found.as_ref().filter(|_| self.may_stay && self.is_conclusive) else { return Ok(false) };
        changes(found).for_each(|change| self.work.lines.say(format_args!("  measured: {}", described(change))));
        self.work.lines.say(format_args!("  measured: {}", words(found, self.tries)));
        Ok(found.effect == Effect::Helped)
    }

    fn keep(&mut self, made: Entry) {
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

/// What is measured, and how.
fn watched(budget: &Budget, tries: &Tries) -> String {
    format!(
        "what vCPUs lose, by budget {}: {} of {:.1} s without the change and as many with it, in turns",
        budget.name,
        many(u64::from(tries.runs), "run"),
        tries.length().as_secs_f64()
    )
}

/// What a change did, in words.
fn words(found: &Ranked, tries: &Tries) -> String {
    let runs = many(u64::from(tries.runs), "run");
    match found.effect {
        Effect::Helped => "it helped".to_owned(),
        Effect::Harmed => "it made something worse".to_owned(),
        Effect::NoneFound => {
            format!("no effect found: in {runs} each way nothing differs by more than chance explains")
        }
        Effect::TooFew => format!("no answer: {runs} each way cannot show an effect among so many numbers; use --runs"),
    }
}

/// What is worth a line: what changed for certain, or all of it where nothing did.
fn changes(found: &Ranked) -> impl Iterator<Item = &Change> {
    let any = found.changes.iter().any(|change| change.is_certain);
    found.changes.iter().filter(move |change| change.is_certain || !any)
}

fn described(change: &Change) -> String {
    let Change { measure, before, after, chance, is_certain } = change;
    let ratio = if *before > 0.0 && *after > 0.0 { format!(", x{}", plain(after / before)) } else { String::new() };
    let certain = if *is_certain { "" } else { ": chance explains it" };
    format!(
        "{}: {} before, {} after{ratio}, p = {}{certain}",
        measure.name(),
        measure.shown(*before),
        measure.shown(*after),
        plain(*chance)
    )
}
