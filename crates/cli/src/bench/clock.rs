//! `kvmscope bench clock`: every clock of the kernel, through the vDSO and through the system call.

use super::launches::{LaunchOptions, Work};
use super::place::PlaceOptions;
use crate::arguments::JournalPlace;
use anyhow::bail;
use base::Bench;
use clap::Args;
use lab::environment::{self, How};
use labs::bench::clock::{Plan, clocksources};
use labs::bench::clocksource::Switch;
use labs::bench::launch;
use process::exit::{Exit, complain};
use process::interrupt::Interrupt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Measure what reading each clock costs, and whether the vDSO serves it
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope bench clock\n  \
    kvmscope bench clock --as L2 -o l2\n  \
    sudo kvmscope bench clock --each-clocksource --launches 3\n  \
    kvmscope bench clock --json | jq '.sections[].tables.clocks'\n\n\
    Needs no root and changes nothing, unless --each-clocksource is given: that switches the\n\
    kernel's clocksource and restores it; after kill -9, `kvmscope undo` does.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong usage, 3 a finding at or above --fail-on.\n\
    With --json and without -o, no recording is kept.")]
pub(super) struct Clock {
    /// Measure with each available clocksource in turn (root)
    #[arg(long)]
    each_clocksource: bool,
    #[command(flatten)]
    journal: JournalPlace,
    #[command(flatten)]
    launches: LaunchOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

/// What switches, until somebody has put the clocksource back.
type Shared = Arc<Mutex<Option<Switch>>>;

impl Clock {
    /// Measures, and says what came of it.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if self.each_clocksource && !rustix::process::geteuid().is_root() {
            bail!(
                "switching the kernel's clocksource needs root; without --each-clocksource the current one is measured"
            );
        }
        let root = Path::new("/");
        let plan = Plan {
            root: PathBuf::from(root),
            cpu: self.launches.on.cpu()?,
            ns_per_tick: launch::ns_per_tick(),
            target: Duration::from_nanos(self.launches.seconds),
            fifo: self.launches.on.fifo()?,
            launch: 0,
        };
        let mut environment = environment::here(How { fifo: plan.fifo, ..How::default() });
        environment.insert(base::bench::NS_PER_TICK.to_owned(), plan.ns_per_tick.to_string());
        environment.insert("clocksources".to_owned(), clocksources(root).1.join(" "));
        let bench = Bench::new("clock", environment);
        let interrupt = Interrupt::watch()?;
        if !self.each_clocksource {
            let work =
                Work { results: plan.results(), rounds: 1, job: &|number, _| Ok(plan.launch(number)?), live: None };
            return self.launches.run(bench, &work, &self.place, interrupt);
        }
        self.under_each(bench, &plan, interrupt)
    }

    /// The same in turns under each clocksource, the first of which comes back at the end.
    fn under_each(&self, bench: Bench, plan: &Plan, interrupt: Interrupt) -> anyhow::Result<Exit> {
        let (current, available) = clocksources(&plan.root);
        let mut sources = Vec::from_iter(current);
        sources.extend(available.into_iter().filter(|source| !sources.contains(source)).collect::<Vec<_>>());
        let back = |switch: &Shared| match switch.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(switch) => switch.back(),
            None => Ok(()),
        };
        let make = || Switch::begin(&self.journal.journal(), &plan.root).map(|made| Arc::new(Mutex::new(Some(made))));
        let switch: Shared = interrupt.making(make, |switch| {
            let switch = Arc::clone(switch);
            move || {
                if let Err(error) = back(&switch) {
                    complain(&error.into());
                }
            }
        })?;
        let job = |number, round: u32| {
            if let Some(switch) = &mut *switch.lock().unwrap_or_else(PoisonError::into_inner) {
                switch.to(&sources[round as usize])?;
            }
            Ok(plan.launch(number)?)
        };
        let work = Work { results: plan.results(), rounds: sources.len() as u32, job: &job, live: None };
        let answered = self.launches.run(bench, &work, &self.place, interrupt);
        back(&switch)?;
        answered
    }
}
