//! `kvmscope bench exits`: every kind of exit, in guests of a few bytes and in this process.

use super::launches::{LaunchOptions, Work};
use super::place::PlaceOptions;
use anyhow::bail;
use base::Bench;
use clap::Args;
use lab::environment::{self, How};
use lab::setting::thread;
use labs::bench::exits::{Plan, names};
use labs::bench::launch;
use process::exit::{Exit, WrongUse};
use process::interrupt::Interrupt;
use std::path::PathBuf;
use std::time::Duration;

/// A test that takes longer is stopped.
const LIMIT: Duration = Duration::from_secs(10);

/// Measure what each kind of exit costs, and what handles it
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope bench exits\n  \
    kvmscope bench exits --tests cpuid,inl_from_kernel --launches 10\n  \
    kvmscope bench exits --as L1 -o l1\n  \
    kvmscope bench exits --json | jq '.sections[].tables.exits'\n\n\
    Guests of a few bytes run on /dev/kvm, without QEMU; `here` rows need nothing.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong usage, 3 a finding at or above --fail-on.\n\
    With --json and without -o, no recording is kept.")]
pub(super) struct Exits {
    /// Run only these tests
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tests: Vec<String>,
    /// Also run tests that may disturb the whole host (wbinvd, invd)
    #[arg(long)]
    disturb: bool,
    /// KVM's device
    #[arg(long, value_name = "FILE", default_value = "/dev/kvm")]
    device: PathBuf,
    #[command(flatten)]
    launches: LaunchOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

impl Exits {
    /// Measures, and says what came of it.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let known: Vec<&str> = names().map(|(_, name)| name).collect();
        if let Some(unknown) = self.tests.iter().find(|test| !known.contains(&test.as_str())) {
            let mut known: Vec<&str> = names().filter(|(place, _)| *place == "guest").map(|(_, name)| name).collect();
            known.sort_unstable();
            bail!(WrongUse(format!("no test `{unknown}`; tests: {}", known.join(", "))));
        }
        let target = Duration::from_nanos(self.launches.seconds);
        let cpu = self.launches.on.cpu()?;
        let plan = Plan {
            device: self.device.clone(),
            root: PathBuf::from("/"),
            cpu,
            other_cpu: thread::affinity(thread::own())?.iter().find(|other| *other != cpu),
            ns_per_tick: launch::ns_per_tick(),
            target,
            limit: LIMIT + 2 * target,
            disturb: self.disturb,
            fifo: self.launches.on.fifo()?,
            launch: 0,
            only: self.tests.clone(),
        };
        let mut bench = Bench::new("exits", environment::here(How { fifo: plan.fifo, disturb: plan.disturb }));
        bench.environment.insert(base::bench::NS_PER_TICK.to_owned(), plan.ns_per_tick.to_string());
        let work = Work { results: plan.results(), rounds: 1, job: &|number, _| Ok(plan.launch(number)?), live: None };
        self.launches.run(bench, &work, &self.place, Interrupt::watch()?)
    }
}
