//! A recording that is being made is judged as it grows: which goal of a budget did a vCPU just break?
//!
//! ```text
//! trace.partial/cpuN.K.raw --pages that came--> losses of the last windows --> a goal that is broken --> the recorder ends
//! ```

use super::live::{MOST_BYTES, sweep};
use analysis::facts::breach::{Breach, Judge};
use analysis::facts::budget::{Budget, exact};
use anyhow::Context;
use base::number::{duration, list};
use base::recording::{BUDGET_FILE, Part, PartKind, PartState, VmProcesses};
use lab::tracefs::LATE;
use process::exit::WrongUse;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trace::tracedat::growing::Growing;

/// A goal that is broken is noticed so late at most, besides what pages take to the disk.
const EVERY: Duration = Duration::from_secs(1);

/// Looks in what is kept: what led to a breach is still there when it is seen.
const LOOKS_A_KEEP: u32 = 8;

const MOST_CAUSES: usize = 3;

/// How often a recorder that keeps so much is looked at.
pub(super) fn every(keep: Duration) -> Duration {
    (keep / LOOKS_A_KEEP).min(EVERY)
}

/// What a recording is judged by.
pub(super) struct Goals {
    budget: String,
    text: String,
    judge: Judge,
}

impl Goals {
    /// The goals of `budget` that a recorder can see broken, if it has any.
    pub(super) fn of(budget: &Budget, text: String) -> Result<Self, WrongUse> {
        let name = budget.name.clone();
        Judge::of(budget).map(|judge| Self { budget: name.clone(), text, judge }).ok_or_else(|| {
            WrongUse(format!(
                "budget {name} has no goal of what vCPUs lose by definition `involuntary`, and a recorder sees no others"
            ))
        })
    }
}

impl Goals {
    /// Writes the budget into a recording in `root`, which is judged by it from then on; the part that it is.
    pub(super) fn keep(&self, root: &Path, machine: &str) -> anyhow::Result<Part> {
        let (machine, kind, state) = (machine.to_owned(), PartKind::Budget, PartState::Complete);
        let path = Path::new(&machine).join(BUDGET_FILE);
        let place = root.join(&path);
        let directory = place.parent().unwrap_or(root);
        let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&place, &self.text));
        written.with_context(|| place.display().to_string())?;
        Ok(Part { path, machine, kind, clock: None, state })
    }
}

pub(super) struct Judged {
    goals: Goals,
    growing: Growing,
    /// The file that tells which processes run VMs.
    processes: PathBuf,
    every: Duration,
    next: Instant,
    skipped_ns: u64,
}

/// A breach, and when it was by the ticks of the trace's clock, which say it whatever their length turns out to be.
pub(super) struct Seen {
    breach: Breach,
    at_ticks: u64,
}

impl Judged {
    /// Judges the recording whose pages come into `directory`, `every` so often from `now` on.
    pub(super) fn new(goals: Goals, directory: &Path, processes: &Path, every: Duration, now: Instant) -> Self {
        let lag_ns = (sweep(every) + LATE).as_nanos() as u64;
        let growing = Growing::new(directory, lag_ns, MOST_BYTES);
        Self { goals, growing, processes: processes.to_owned(), every, next: now + every, skipped_ns: 0 }
    }

    /// Looks, if it is time to.
    pub(super) fn look(&mut self, now: Instant) -> anyhow::Result<Option<Seen>> {
        if now < self.next {
            return Ok(None);
        }
        // A look that took too long costs those that it made late.
        self.next = (self.next + self.every).max(now);
        let Some(grown) = self.growing.look()? else { return Ok(None) };
        self.skipped_ns += grown.skipped_ns;
        let processes = VmProcesses::read(&self.processes).unwrap_or_default();
        let breach = self.goals.judge.look(&grown.trace, grown.span, grown.skipped_ns, &processes);
        Ok(breach.map(|breach| Seen { at_ticks: self.growing.ticks(breach.during.from_ns), breach }))
    }

    /// What is judged, for people who wait.
    pub(super) fn goals(&self) -> String {
        let goals: Vec<String> = self.goals.judge.goals().iter().map(|goal| goal.id.clone()).collect();
        format!("{} {} of budget {}", if goals.len() == 1 { "goal" } else { "goals" }, list(&goals), self.goals.budget)
    }

    /// What was judged, where nothing was broken.
    pub(super) fn summary(&self) -> String {
        let skipped = match self.skipped_ns {
            0 => String::new(),
            ns => format!("; {} were not judged, because too many events came", duration(ns as f64)),
        };
        format!("no vCPU was seen to break {}{skipped}", self.goals())
    }
}

impl Seen {
    /// What happened, in a line; the recording is at `trace`.
    pub(super) fn line(&self, trace: &Path) -> anyhow::Result<String> {
        let trace = trace::open(trace)?;
        let origin_ns = trace::replay::origin_ns(trace.as_ref(), None);
        let at_ns = trace.facts().clock.ns(self.at_ticks).saturating_sub(origin_ns);
        let Breach { goal, vm, vcpu, during, loss_ns, causes } = &self.breach;
        let window =
            goal.window_ns.map_or_else(String::new, |_| format!(" of {}", duration(during.length_ns() as f64)));
        let causes: Vec<String> =
            causes.iter().take(MOST_CAUSES).map(|(by, ns)| format!("{} {by}", duration(*ns as f64))).collect();
        Ok(format!(
            "vCPU {vcpu} of {vm} lost {}{window} at {}.{:06} s: {}; goal {} is {} {}",
            duration(*loss_ns as f64),
            at_ns / 1_000_000_000,
            at_ns % 1_000_000_000 / 1_000,
            causes.join(", "),
            goal.id,
            goal.op.name(),
            exact(goal.limit_ns),
        ))
    }
}
