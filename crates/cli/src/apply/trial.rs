//! `apply --trial`: the change is kept if it helped, and put back at once if it did not.

use super::work::{Told, Work};
use crate::experiments::trial::{Lost, Watched, described, drift, measure, settle, sums};
use crate::experiments::{Better, Comparison, Effect, Ended, Experiment, Runs, State, run};
use base::number::many;
use lab::journal::Entry;
use process::exit::Exit;
use process::interrupt::rest;
use std::io::{IsTerminal, Write};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A change of a finding, tried.
struct Trial<'a, 'b> {
    work: &'a mut Work<'b>,
    watched: &'a Watched,
    span: Duration,
    stop: &'a AtomicBool,
    /// True if nobody else set one of the values meanwhile.
    is_conclusive: bool,
}

/// Tries the planned changes: measures for `span` before and after.
pub(super) fn trial(work: &mut Work<'_>, watched: &Watched, span: Duration, stop: &AtomicBool) -> anyhow::Result<Exit> {
    watched.something()?;
    work.lines.say(format_args!("  watched: {watched}"));
    let mut trial = Trial { work, watched, span, stop, is_conclusive: true };
    Ok(match run(&mut trial, 1)? {
        Ended::Interrupted => Exit::Interrupted,
        Ended::Compared(..) if !trial.is_conclusive => Exit::NoAnswer,
        Ended::Compared(..) | Ended::Unchanged(_) => Exit::Answered,
    })
}

impl Trial<'_, '_> {
    fn ended_before(&mut self) {
        self.work.lines.say("  ended before the change; nothing was changed");
    }
}

impl Experiment for Trial<'_, '_> {
    /// All windows of one state.
    type Sample = Vec<Lost>;
    type Proposal = ();
    type Made = Entry;
    type Found = Comparison;

    fn measure(&mut self, state: State) -> anyhow::Result<Option<Vec<Lost>>> {
        let stopped = match state {
            State::Before => {
                waiting(self.span, "before the change; Ctrl-C ends it without a change");
                false
            }
            State::After => {
                waiting(self.span, "with the change; Ctrl-C reverts it");
                rest(settle(self.span), self.stop)
            }
        };
        let lost = if stopped { None } else { measure(&self.work.host.proc, self.watched, self.span, self.stop)? };
        match state {
            State::Before if lost.is_none() => self.ended_before(),
            State::After if lost.is_none() => self.work.lines.say("  measured: ended early"),
            State::Before | State::After => {}
        }
        Ok(lost)
    }

    /// The user has agreed to it already.
    fn propose(&mut self) -> anyhow::Result<Option<()>> {
        Ok(Some(()))
    }

    fn make(&mut self, (): &()) -> anyhow::Result<Option<Entry>> {
        let made = self.work.make(self.stop)?;
        if made.is_none() {
            self.ended_before();
        }
        Ok(made)
    }

    fn undo(&mut self, made: Entry) -> anyhow::Result<()> {
        self.work.put_back(made, Told::All)
    }

    fn compare(&self, runs: &Runs<Vec<Lost>>) -> Comparison {
        let (before, after, _) = sums(&runs.before.concat(), &runs.after.concat());
        Comparison::of(&before, &after, Better::Lower)
    }

    fn keeps(&mut self, runs: &Runs<Vec<Lost>>, found: &Comparison) -> anyhow::Result<bool> {
        let lines = &mut self.work.lines;
        let (before, _, ended) = sums(&runs.before.concat(), &runs.after.concat());
        if ended > 0 {
            let ended = many(ended as u64, "watched thread");
            lines.say(format_args!("  measured: {ended} ended during the measurement (not counted)"));
        }
        drift(&before).iter().for_each(|drift| lines.say(format_args!("  measured: {drift}")));
        lines.say(format_args!("  measured: {}", described(found, self.watched.subject())));
        self.is_conclusive = self.work.holds();
        Ok(self.is_conclusive && found.effect == Effect::Helped)
    }

    fn keep(&mut self, made: Entry) {
        self.work.lines.say(format_args!("  kept; `kvmscope undo {}` reverts it", made.id));
    }
}

/// Says on a terminal why nothing happens for a while.
pub(super) fn waiting(span: Duration, how: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        // If stderr is closed nobody wants to know.
        let _ = writeln!(stderr, "measuring for {} s {how}", span.as_secs());
    }
}
