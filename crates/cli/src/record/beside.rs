//! What is recorded beside our own trace: perf, LTTng, migrations, and the machine itself before and after.

use base::prediction::Prediction;
use base::recording::{PREDICTION_FILE, Part, PartKind, PartState};
use clap::Args;
use lab::drive::{LttngOptions, LttngRecorder, PerfOptions, PerfRecorder, Samples};
use lab::journal::Journal;
use lab::moving::MigrationRecorder;
use lab::snapshot::{Around, More};
use lab::tracefs::Plan;
use lab::{Error, Recorder};
use std::path::{Path, PathBuf};

/// The host whose files are read.
const HOST: &str = "/";

/// Options of what is recorded beside.
#[derive(Args)]
#[command(next_help_heading = "Other recorders")]
pub(super) struct Beside {
    /// Also record the same events with perf
    #[arg(long)]
    perf: bool,
    /// With --perf: samples per second of what each CPU runs, for a profile
    #[arg(long, value_name = "HZ", requires = "perf", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sample: Option<u32>,
    /// With --sample: a copy of the guest's /proc/kallsyms, to resolve its symbols
    #[arg(long, value_name = "FILE", requires_all = ["sample", "guest_modules"])]
    guest_kallsyms: Option<PathBuf>,
    /// With --sample: a copy of the guest's /proc/modules
    #[arg(long, value_name = "FILE", requires_all = ["sample", "guest_kallsyms"])]
    guest_modules: Option<PathBuf>,
    /// Also record LTTng's KVM and scheduler events
    #[arg(long)]
    lttng: bool,
    /// Also watch a live migration, through a QMP socket or by the name or process id of a VM; repeatable, for source and target. Without
    /// --seconds and CMD, ends with the last migration
    #[arg(long, value_name = "SOCKET|VM")]
    migration: Vec<String>,
    /// With --migration: the prediction that `plan migration --keep` wrote; `report` compares
    #[arg(long, value_name = "FILE", requires = "migration")]
    prediction: Option<PathBuf>,
    /// Do not take snapshots of this host before and after
    #[arg(long)]
    no_snapshot: bool,
}

/// Recorders that run, and the parts that are there from the beginning.
#[derive(Default)]
pub(super) struct Running {
    pub recorders: Vec<Box<dyn Recorder>>,
    pub parts: Vec<Part>,
    /// Those of them that no recorder names at its end.
    pub kept: Vec<Part>,
    /// Migrations that are watched: through what, and whether each is over.
    pub watched: Watched,
}

/// Migrations that are watched.
#[derive(Default)]
pub(super) struct Watched {
    ended: Vec<Box<dyn Fn() -> bool>>,
    /// Through what, for people.
    pub through: Vec<String>,
}

impl Watched {
    /// Whether there are some, and all are over.
    pub(super) fn are_over(&self) -> bool {
        !self.ended.is_empty() && self.ended.iter().all(|ended| ended())
    }
}

impl Running {
    /// Stops all, because of `error`, which is what the user should hear.
    pub(super) fn stopped(self, error: Error) -> Error {
        self.end();
        error
    }

    /// Stops all; what they have recorded is not wanted.
    pub(super) fn end(self) {
        self.recorders.into_iter().for_each(|recorder| drop(recorder.stop()));
    }
}

impl Beside {
    /// What [`Beside::before`] does, for people who wait.
    pub(super) fn describe(&self) -> Option<&'static str> {
        (!self.no_snapshot).then_some("taking a snapshot of this host")
    }

    /// Whether a migration is watched.
    pub(super) fn watches(&self) -> bool {
        !self.migration.is_empty()
    }

    /// Begins to watch migrations.
    fn watch(&self, running: &mut Running, root: &Path, machine: &str) -> Result<(), Error> {
        if let Some(from) = &self.prediction {
            let said = Prediction::read(from).map_err(|error| Error::io(from, error))?;
            let path = Path::new(machine).join(PREDICTION_FILE);
            let whole = root.join(&path);
            said.write(&whole).map_err(|error| Error::io(&whole, error))?;
            let part = Part {
                path,
                machine: machine.to_owned(),
                kind: PartKind::Prediction,
                clock: None,
                state: PartState::Complete,
            };
            running.parts.push(part.clone());
            running.kept.push(part);
        }
        for (number, wanted) in self.migration.iter().enumerate() {
            let migration = MigrationRecorder::start(wanted, number, root, machine)?;
            running.parts.push(migration.partial());
            running.watched.ended.push(Box::new(migration.ended()));
            running.watched.through.push(migration.watched().to_owned());
            running.recorders.push(Box::new(migration));
        }
        Ok(())
    }

    /// The first snapshot of the machine, before anything is recorded.
    pub(super) fn before(&self, root: &Path, machine: &str) -> Result<Running, Error> {
        let mut running = Running::default();
        if !self.no_snapshot {
            let around = Around::begin(Path::new(HOST), More::of(Path::new(HOST)), root, machine)?;
            running.parts.push(around.first());
            running.recorders.push(Box::new(around));
        }
        Ok(running)
    }

    /// Starts perf and LTTng; if one cannot start, those that could are stopped again.
    pub(super) fn start(&self, journal: &Journal, plan: &Plan, root: &Path, machine: &str) -> Result<Running, Error> {
        let mut running = Running::default();
        match self.try_start(&mut running, journal, plan, root, machine) {
            Ok(()) => Ok(running),
            Err(error) => Err(running.stopped(error)),
        }
    }

    /// Starts what needs no trace: migrations are watched.
    pub(super) fn start_untraced(&self, root: &Path, machine: &str) -> Result<Running, Error> {
        let mut running = Running::default();
        match self.watch(&mut running, root, machine) {
            Ok(()) => Ok(running),
            Err(error) => Err(running.stopped(error)),
        }
    }

    fn try_start(
        &self,
        running: &mut Running,
        journal: &Journal,
        plan: &Plan,
        root: &Path,
        machine: &str,
    ) -> Result<(), Error> {
        if self.perf {
            let options = self.perf_options(plan);
            let perf = PerfRecorder::start(Path::new(HOST), journal, &options, root, machine)?;
            running.parts.push(perf.partial());
            running.recorders.push(Box::new(perf));
        }
        if self.lttng {
            let lttng = LttngRecorder::start(journal, &LttngOptions::default(), root, machine)?;
            running.parts.push(lttng.partial());
            running.recorders.push(Box::new(lttng));
        }
        self.watch(running, root, machine)
    }

    fn perf_options(&self, plan: &Plan) -> PerfOptions {
        let guest_symbols = self.guest_kallsyms.clone().zip(self.guest_modules.clone());
        let samples = self.sample.map(|frequency_hz| Samples { frequency_hz, guest_symbols });
        PerfOptions { events: plan.events.clone(), tids: plan.tids.clone(), samples, ..PerfOptions::default() }
    }
}
