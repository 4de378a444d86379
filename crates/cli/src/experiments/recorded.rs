//! A run that is recorded: what did vCPUs lose in it, by the numbers that a budget judges?
//!
//! ```text
//! tracefs --recorded for a moment into a scratch directory--> Case --losses, goals--> Run
//! ```

use analysis::facts::ablation::{Run, measures};
use analysis::facts::budget::Budget;
use analysis::{Case, Given};
use anyhow::{Context, bail};
use base::recording::{Machine, Recording};
use lab::Recorder;
use lab::journal::Journal;
use lab::tracefs::{Mounted, Plan, TracefsRecorder};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the recorder is asked to do what has piled up.
const POLL: Duration = Duration::from_millis(50);

pub(crate) struct RunRecorder<'a> {
    budget: &'a Budget,
    journal: Journal,
    /// How long a run is.
    length: Duration,
    stop: &'a AtomicBool,
}

/// How often a run is recorded until a vCPU is seen.
const TRIES: usize = 2;

impl<'a> RunRecorder<'a> {
    /// Runs of that `length`, judged by `budget`, each ended early when `stop` is set.
    ///
    /// # Errors
    /// If no goal of the budget is about what a recording shows.
    pub(crate) fn new(
        budget: &'a Budget,
        journal: Journal,
        length: Duration,
        stop: &'a AtomicBool,
    ) -> anyhow::Result<Self> {
        if measures(budget).is_empty() {
            bail!(process::exit::WrongUse(format!(
                "budget {} has no goal on what vCPUs lose, and the runs of a trial show nothing else",
                budget.name
            )));
        }
        Ok(Self { budget, journal, length, stop })
    }

    /// Records a run; `None`: the user ended it. Where no vCPU is seen it is recorded once more: a host that stood still itself, as one that is
    /// moved does, should not cost all runs of a trial.
    ///
    /// # Errors
    /// If this host cannot be recorded, or if no vCPU ran for as long as the goals take.
    pub(crate) fn run(&self) -> anyhow::Result<Option<Run>> {
        for _ in 0..TRIES {
            let scratch = base::recording::temporary("kvmscope-run").context("no directory for a run")?;
            let Some(recording) = self.record(scratch.path())? else { return Ok(None) };
            let given = Given { budget: Some(self.budget.clone()), ..Given::default() };
            if let Some(run) = Run::of(&Case::new(analysis::open(recording)?, given)) {
                return Ok(Some(run));
            }
        }
        bail!(
            "no vCPU of a scope of budget {} ran long enough in the {:.1} s that were recorded; start its VM, or make the \
             trial longer",
            self.budget.name,
            self.length.as_secs_f64()
        )
    }

    fn record(&self, root: &Path) -> anyhow::Result<Option<Recording>> {
        let machine = Machine::default();
        let mounted = Mounted::at(Path::new("/"), &self.journal)?;
        let plan = Plan::default();
        let mut recorder = TracefsRecorder::start(mounted.tracefs(), &self.journal, &plan, root, &machine.id)?;
        let (began, mut polled) = (Instant::now(), Ok(()));
        let asked = || self.stop.load(Ordering::Relaxed);
        while polled.is_ok() && !asked() && began.elapsed() < self.length {
            std::thread::sleep(POLL.min(self.length));
            polled = recorder.poll();
        }
        // Stopped come what may: it has changed the host.
        let parts = Box::new(recorder).stop();
        polled?;
        let parts = parts?;
        let whole = |parts| Recording {
            root: root.to_owned(),
            machines: vec![machine],
            parts,
            ..Recording::of_nothing("kvmscope")
        };
        Ok((!asked()).then(|| whole(parts)))
    }
}
