//! `kvmscope bench clock`: every clock of the kernel, through the vDSO and through the system call.

use super::launches::LaunchOptions;
use super::place::PlaceOptions;
use crate::exit::Exit;
use base::Bench;
use clap::Args;
use lab::bench::clock::{Plan, clocksources};
use lab::bench::environment::environment;
use lab::bench::launch;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure what reading each clock costs, and whether the vDSO serves it
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope bench clock\n  \
    kvmscope bench clock --as L2 -o l2\n  \
    kvmscope bench clock --json | jq '.sections[].tables.clocks'\n\n\
    Needs no root and changes nothing.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong use.")]
pub struct Clock {
    #[command(flatten)]
    launches: LaunchOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

impl Clock {
    /// Measures, and says what came of it.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let root = Path::new("/");
        let plan = Plan {
            root: PathBuf::from(root),
            cpu: self.launches.cpu()?,
            ns_per_tick: launch::ns_per_tick(),
            target: Duration::from_nanos(self.launches.seconds),
            fifo: self.launches.fifo()?,
            launch: 0,
        };
        let mut environment = environment(root);
        environment.insert(base::bench::NS_PER_TICK.to_owned(), plan.ns_per_tick.to_string());
        environment.insert("clocksources".to_owned(), clocksources(root).1.join(" "));
        let bench = Bench::new("clock", environment);
        self.launches.run(bench, plan.results(), &self.place, &|number| plan.launch(number))
    }
}
