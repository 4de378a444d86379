//! Starved, diagnosed, moved, measured: the loop of `kvmscope lab netns`.
//!
//! ```text
//! record ---> diagnose: who waits, against whom ---> propose: the CPU that the model prefers
//!                                                       |
//! A B A B A B ..   A: as it was   B: moved (journal, read back, undone after)   --> ratio with interval, verdict
//! ```
//! Runs before and after take turns, so that what drifts on the machine meets both.

mod shots;

use super::trial::{Look, Now};
use analysis::compare::{self, Changed, Metric, Ratio, Verdict};
use analysis::contention::tables::{CHANGE, threads};
use analysis::contention::{self, Starved, finding, starved};
use analysis::facts::shares::best_moves;
use anyhow::bail;
use base::number::{many, plain};
use base::recording::Destination;
use base::{Change, CpuSet, Finding, Section};
use host::sched::Load;
use lab::apply::{Prepared, make};
use lab::journal::{Entry, Journal, Reverted};
use lab::netns::Load as Traffic;
use lab::setting::Host;
use shots::Shots;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After a change, before the next measurement: TCP finds its new speed in some round trips.
const SETTLE: Duration = Duration::from_millis(500);
/// Longest recording of events: they are some megabytes a second.
const MOST_RECORDED: Duration = Duration::from_secs(2);
/// How often we look whether the user has had enough.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The bench as the loop sees it.
pub struct Bench<'a> {
    /// What goes through it.
    pub load: &'a Traffic,
    /// The forwarder's threads; none if it is the user's own.
    pub forwarders: &'a [u32],
    /// What goes through what, in a line.
    pub what: &'a str,
}

/// How the loop is run.
pub struct Play<'a> {
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
pub const STATES: [&str; 2] = ["before", "after"];

/// Where the recording of a state goes.
pub fn in_state(output: &Destination, state: &str) -> Destination {
    Destination { path: output.path.join(state), replace: output.replace }
}

/// What came of it.
pub enum Told {
    Answer(Box<Section>),
    Interrupted,
}

/// Throughput of each run, before and after.
#[derive(Default)]
struct Runs {
    before: Vec<f64>,
    after: Vec<f64>,
}

impl Play<'_> {
    /// Runs the loop.
    pub fn run(&self, bench: &Bench<'_>) -> anyhow::Result<Told> {
        if self.rest(SETTLE) {
            return Ok(Told::Interrupted);
        }
        let mut shots = Shots::new(self.output, self.journal);
        (self.say)("recording before the move");
        if !self.record(bench, &mut shots, "before")? {
            return Ok(Told::Interrupted);
        }
        if let Some(why) = &shots.without_events {
            (self.say)(&format!("recorded without kernel events: {why}"));
        }
        (self.say)("searching for waiting threads");
        let first = Look::take(&self.root.join("proc"))?;
        let Some(gbits) = self.measure(bench)? else { return Ok(Told::Interrupted) };
        let now = Now::since(&first, self.root)?;
        let mut runs = Runs { before: vec![gbits], after: Vec::new() };
        let found = self.diagnose(&now, bench);
        let changes = found.as_ref().map(|found| found.changes.clone()).unwrap_or_default();
        if !changes.is_empty() {
            for repeat in 0..self.repeats {
                if repeat > 0 {
                    let Some(bits) = self.measure(bench)? else { return Ok(Told::Interrupted) };
                    runs.before.push(bits);
                }
                let Some(bits) = self.moved(&changes, bench, (repeat == 0).then_some(&mut shots))? else {
                    return Ok(Told::Interrupted);
                };
                runs.after.push(bits);
                let both = (repeat + 1, self.repeats, amount_of(runs.before.last()), amount_of(Some(&bits)));
                (self.say)(&format!("run {} of {}: {} before, {} after the move", both.0, both.1, both.2, both.3));
            }
        }
        let mut section = self.section(bench, &now.loads, found, &runs);
        if let Some(why) = &shots.without_events {
            section.about.push(format!("the recordings have no kernel events: {why}"));
        }
        shots.finish(&runs, bench.what)?;
        Ok(Told::Answer(Box::new(section)))
    }

    /// Starved threads of the forwarder, or of the whole host where the forwarder is the user's own.
    fn diagnose(&self, now: &Now, bench: &Bench<'_>) -> Option<Finding> {
        let all = starved(&now.loads);
        let named = |one: &&Starved<'_>| {
            bench.forwarders.contains(&one.thread.id.tid)
                || (bench.forwarders.is_empty() && one.thread.name.starts_with("vhost-"))
        };
        let ours: Vec<&Starved<'_>> = all.iter().filter(named).collect();
        let first = ours.first()?;
        let tids: Vec<u32> = match bench.forwarders {
            [] => ours.iter().map(|one| one.thread.id.tid).collect(),
            forwarders => forwarders.to_vec(),
        };
        let best = best_moves(&now.cpus(), &now.contenders(), &tids, &self.online);
        let proposal = best.as_ref().map(|(moves, prediction)| (moves.as_slice(), prediction));
        let found = finding(&ours, &now.loads, &first.thread.name, proposal);
        (self.say)(&found.as_ref().map(|found| found.title.clone()).unwrap_or_default());
        found
    }

    /// One run with the threads moved, and everything back as it was.
    fn moved(
        &self,
        changes: &[Change],
        bench: &Bench<'_>,
        shots: Option<&mut Shots<'_>>,
    ) -> anyhow::Result<Option<f64>> {
        let host = Host::at(self.root);
        let mut altered = Vec::new();
        for change in changes {
            match host.prepare(change)? {
                Prepared::Altered(more) => altered.extend(more),
                Prepared::PassedOver(why) => (self.say)(&why),
            }
        }
        let mut entry = self.journal.begin("netns-move")?;
        let made = make(&mut entry, &altered, &host);
        let measured = made.map_err(anyhow::Error::from).and_then(|_| {
            if self.rest(SETTLE) {
                return Ok(None);
            }
            let measured = self.measure(bench)?;
            if let Some(shots) = shots.filter(|_| measured.is_some())
                && !self.record(bench, shots, "after")?
            {
                return Ok(None);
            }
            Ok(measured)
        });
        undo(entry, &host.proc)?;
        self.rest(SETTLE);
        measured
    }

    /// Bits per second that arrive in one run; `None` if the user ended it.
    fn measure(&self, bench: &Bench<'_>) -> anyhow::Result<Option<f64>> {
        let mut run = bench.load.begin(self.seconds)?;
        while !run.is_over()? {
            if self.rest(LOOK_EVERY) {
                return Ok(None);
            }
        }
        Ok(Some(run.bits_per_second()?))
    }

    /// Records the machine while the load flows; false if the user ended it.
    fn record(&self, bench: &Bench<'_>, shots: &mut Shots<'_>, name: &'static str) -> anyhow::Result<bool> {
        let span = self.seconds.min(MOST_RECORDED);
        // Until both samples of the machine are taken, however long that takes.
        let _flows = bench.load.flow()?;
        shots.take(name, span, &|length| self.rest(length))?;
        Ok(!self.stop.load(Ordering::Relaxed))
    }

    /// Waits; true if the user has had enough.
    fn rest(&self, length: Duration) -> bool {
        let since = Instant::now();
        while since.elapsed() < length && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
        self.stop.load(Ordering::Relaxed)
    }

    fn section(&self, bench: &Bench<'_>, loads: &[Load], found: Option<Finding>, runs: &Runs) -> Section {
        let mut section = Section::new(contention::ID, "Which threads compete for which CPU, and did the move help?");
        section.about = vec![
            bench.what.to_owned(),
            format!(
                "{} of {} s before and {} after the move, alternating; recorded in {}",
                many(runs.before.len() as u64, "run"),
                self.seconds.as_secs(),
                runs.after.len(),
                self.output.path.display()
            ),
        ];
        let ratio = Ratio::of(&runs.before, &runs.after);
        section.summary = match (&found, &ratio) {
            (None, _) => format!("No packet thread is starved; throughput is {}.", amount_of(runs.before.first())),
            (Some(found), None) => {
                format!("{}. No CPU of this machine is better, so no thread was moved.", found.title)
            }
            (Some(found), Some(ratio)) => format!("{}. {}", found.title, verdict(ratio)),
        };
        section.findings.extend(found);
        section.tables.push(threads(loads));
        if let Some(ratio) = ratio {
            let ratio = Ratio { before: ratio.before / 1e9, after: ratio.after / 1e9, ..ratio };
            let changed = vec![Changed { metric: Metric::Named("throughput, Gbit/s".to_owned()), ratio }];
            section.tables.push(compare::table(&CHANGE, changed));
            section.next.push(format!("kvmscope compare {0}/before {0}/after", self.output.path.display()));
        }
        section
    }
}

fn verdict(ratio: &Ratio) -> String {
    let [before, after] = [ratio.before, ratio.after].map(|bits| amount_of(Some(&bits)));
    let interval = ratio
        .interval
        .map(|(low, high)| format!(" (95 % interval {} to {})", plain(low), plain(high)))
        .unwrap_or_default();
    let says = match ratio.verdict() {
        Verdict::Higher => "the move helped",
        Verdict::Lower => "the move made it worse",
        Verdict::NoChange => "the difference is within noise",
        Verdict::Unknown => "one run each gives no estimate of noise; use --repeats",
    };
    format!("Moved: throughput from {before} to {after}, x{}{interval}: {says}.", plain(ratio.ratio))
}

fn amount_of(bits: Option<&f64>) -> String {
    bits.map_or_else(|| "-".to_owned(), |bits| format!("{:.2} Gbit/s", bits / 1e9))
}

fn undo(entry: Entry, proc: &Path) -> anyhow::Result<()> {
    let id = entry.id.clone();
    for (step, outcome) in entry.finish(proc)? {
        if let Reverted::Failed(why) = outcome {
            bail!("{step} could not be undone: {why}; `kvmscope undo {id}` tries again");
        }
    }
    Ok(())
}
