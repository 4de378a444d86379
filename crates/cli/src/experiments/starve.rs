//! Starved, diagnosed, moved, measured: the experiment of `kvmscope lab netns`.
//!
//! ```text
//! begin    record the machine while the load flows
//! measure  throughput of one run; in the first one also who waits, against whom
//! propose  the CPU that the model prefers
//! make     the threads are moved (journal, read back); the new state is recorded once
//! ```

mod shots;

use super::trial::{Look, Now};
use super::{Better, Comparison, Effect, Ended, Experiment, Runs, State, run};
use analysis::contention::{Moved, Starved, Trial, finding, starved, throughput};
use analysis::facts::shares::best_moves;
use base::recording::Destination;
use base::{Change, CpuSet, Finding};
use lab::apply::{Prepared, make};
use lab::journal::{Entry, Journal};
use lab::setting::Host;
use labs::netns::Load as Traffic;
use process::interrupt::{LOOK_EVERY, rest};
use shots::Shots;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// After a change, before the next measurement: TCP finds its new speed in some round trips.
const SETTLE: Duration = Duration::from_millis(500);
/// Longest recording of events: they are some megabytes a second.
const MOST_RECORDED: Duration = Duration::from_secs(2);

pub(crate) struct Bench<'a> {
    pub load: &'a Traffic,
    /// The forwarder's threads; none if it is the user's own.
    pub forwarders: &'a [u32],
    /// What goes through what, in a line.
    pub what: &'a str,
}

/// How the experiment is run.
pub(crate) struct Setup<'a> {
    pub root: &'a Path,
    pub journal: &'a Journal,
    pub seconds: Duration,
    pub repeats: u32,
    pub stop: &'a AtomicBool,
    pub say: &'a dyn Fn(&str),
    pub output: &'a Destination,
    pub online: CpuSet,
}

/// Names of the recordings of both states.
pub(crate) const STATES: [&str; 2] = ["before", "after"];

pub(crate) fn in_state(output: &Destination, state: &str) -> Destination {
    Destination { path: output.path.join(state), replace: output.replace }
}

/// Packet threads that starve, and what moving them brings.
pub(crate) struct StarveExperiment<'a> {
    setup: &'a Setup<'a>,
    bench: &'a Bench<'a>,
    shots: Shots<'a>,
    /// What the machine did in the first run.
    now: Option<Now>,
    found: Option<Finding>,
}

impl<'a> StarveExperiment<'a> {
    pub(crate) fn new(setup: &'a Setup<'a>, bench: &'a Bench<'a>) -> Self {
        Self { setup, bench, shots: Shots::new(setup.output, setup.journal), now: None, found: None }
    }

    /// Runs it; `None`: the user ended it.
    pub(crate) fn answer(mut self) -> anyhow::Result<Option<Trial>> {
        let turns = self.setup.repeats;
        let (runs, comparison) = match run(&mut self, turns)? {
            Ended::Interrupted => return Ok(None),
            Ended::Unchanged(runs) => (runs, None),
            Ended::Compared(runs, comparison) => (runs, Some(comparison)),
        };
        let trial = self.trial(runs, comparison);
        self.shots.finish(&trial.before, &trial.after, self.bench.what)?;
        Ok(Some(trial))
    }

    /// Starved threads of the forwarder, or of the whole host where the forwarder is the user's own.
    fn diagnosed(&self, now: &Now) -> Option<Finding> {
        let all = starved(&now.loads);
        let named = |one: &&Starved<'_>| {
            self.bench.forwarders.contains(&one.thread.id.tid)
                || (self.bench.forwarders.is_empty() && one.thread.name.starts_with("vhost-"))
        };
        let ours: Vec<&Starved<'_>> = all.iter().filter(named).collect();
        let first = ours.first()?;
        let tids: Vec<u32> = match self.bench.forwarders {
            [] => ours.iter().map(|one| one.thread.id.tid).collect(),
            forwarders => forwarders.to_vec(),
        };
        let best = best_moves(&now.cpus(), &now.contenders(), &tids, &self.setup.online);
        let proposal = best.as_ref().map(|(moves, prediction)| (moves.as_slice(), prediction));
        finding(&ours, &now.loads, &first.thread.name, proposal)
    }

    /// Bits per second that arrive in one run; `None` if the user ended it.
    fn throughput(&self) -> anyhow::Result<Option<f64>> {
        let mut run = self.bench.load.begin(self.setup.seconds)?;
        while !run.is_over()? {
            if self.rest(LOOK_EVERY) {
                return Ok(None);
            }
        }
        Ok(Some(run.bits_per_second()?))
    }

    /// Records the machine while the load flows; false if the user ended it.
    fn record(&mut self, name: &'static str) -> anyhow::Result<bool> {
        let span = self.setup.seconds.min(MOST_RECORDED);
        // Until both samples of the machine are taken, however long that takes.
        let _flows = self.bench.load.flow()?;
        let stop = self.setup.stop;
        self.shots.take(name, span, &|length| rest(length, stop))?;
        Ok(!stop.load(Ordering::Relaxed))
    }

    /// Waits; true if the user has had enough.
    fn rest(&self, length: Duration) -> bool {
        rest(length, self.setup.stop)
    }
}

impl Experiment for StarveExperiment<'_> {
    type Sample = f64;
    type Proposal = Vec<Change>;
    type Made = Entry;
    type Found = Comparison;

    fn begin(&mut self) -> anyhow::Result<bool> {
        if self.rest(SETTLE) {
            return Ok(false);
        }
        (self.setup.say)("recording before the move");
        let recorded = self.record("before")?;
        if let Some(why) = self.shots.without_events.as_ref().filter(|_| recorded) {
            (self.setup.say)(&format!("recorded without kernel events: {why}"));
        }
        Ok(recorded)
    }

    fn measure(&mut self, state: State) -> anyhow::Result<Option<f64>> {
        match state {
            State::Before if self.now.is_none() => {
                (self.setup.say)("searching for waiting threads");
                let first = Look::take(&self.setup.root.join("proc"))?;
                let bits = self.throughput()?;
                self.now = Some(Now::since(&first, self.setup.root)?).filter(|_| bits.is_some());
                Ok(bits)
            }
            State::Before => self.throughput(),
            State::After if self.rest(SETTLE) => Ok(None),
            State::After => {
                let bits = self.throughput()?;
                // One recording of the new state is enough.
                let is_whole = bits.is_none() || self.shots.has("after") || self.record("after")?;
                Ok(bits.filter(|_| is_whole))
            }
        }
    }

    fn propose(&mut self) -> anyhow::Result<Option<Vec<Change>>> {
        self.found = self.now.as_ref().and_then(|now| self.diagnosed(now));
        (self.setup.say)(self.found.as_ref().map_or("", |found| &found.title));
        let changes = self.found.as_ref().map(|found| found.changes.clone());
        Ok(changes.filter(|changes| !changes.is_empty()))
    }

    fn make(&mut self, changes: &Vec<Change>) -> anyhow::Result<Option<Entry>> {
        let host = Host::at(self.setup.root);
        let mut altered = Vec::new();
        for change in changes {
            match host.prepare(change)? {
                Prepared::Altered(more) => altered.extend(more),
                Prepared::PassedOver(why) => (self.setup.say)(&why),
            }
        }
        let mut entry = self.setup.journal.begin("netns-move")?;
        match make(&mut entry, &altered, &host) {
            Ok(_) => Ok(Some(entry)),
            Err(error) => {
                entry.put_back(&host.proc)?;
                Err(error.into())
            }
        }
    }

    fn undo(&mut self, made: Entry) -> anyhow::Result<()> {
        made.put_back(&self.setup.root.join("proc"))?;
        self.rest(SETTLE);
        Ok(())
    }

    fn compare(&self, runs: &Runs<f64>) -> Comparison {
        Comparison::of(&runs.before, &runs.after, Better::Higher)
    }

    fn turned(&mut self, runs: &Runs<f64>) {
        let (turn, of) = (runs.after.len(), self.setup.repeats);
        let [before, after] = [&runs.before, &runs.after].map(|runs| throughput(runs.last()));
        (self.setup.say)(&format!("run {turn} of {of}: {before} before, {after} after the move"));
    }
}

impl StarveExperiment<'_> {
    fn trial(&self, runs: Runs<f64>, comparison: Option<Comparison>) -> Trial {
        Trial {
            what: self.bench.what.to_owned(),
            seconds: self.setup.seconds.as_secs(),
            place: self.setup.output.path.clone(),
            without_events: self.shots.without_events.clone(),
            loads: self.now.as_ref().map_or_else(Vec::new, |now| now.loads.clone()),
            found: self.found.clone(),
            before: runs.before,
            after: runs.after,
            moved: comparison.map(|Comparison { ratio, effect }| Moved { ratio, effect: words(effect) }),
        }
    }
}

fn words(effect: Effect) -> &'static str {
    match effect {
        Effect::Helped => "the move helped",
        Effect::Harmed => "the move made it worse",
        Effect::NoDifference => "the difference is within noise",
        Effect::Unknown => "one run each gives no estimate of noise; use --repeats",
    }
}
