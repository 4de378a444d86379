//! `kvmscope bench exits`: every kind of exit, in guests of a few bytes and in this process.

use super::LAUNCH;
use super::place::PlaceOptions;
use super::status::Status;
use crate::arguments::nanoseconds;
use crate::exit::{Exit, WrongUse};
use anyhow::bail;
use base::{Bench, Measured};
use clap::Args;
use lab::bench::environment::environment;
use lab::bench::exits::{Plan, names};
use lab::bench::launch;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A test that takes longer is stopped.
const LIMIT: Duration = Duration::from_secs(10);

/// Measure what each kind of exit costs, and who handles it
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope bench exits\n  \
    kvmscope bench exits --tests cpuid,inl_from_kernel --launches 10\n  \
    kvmscope bench exits --as L1 -o l1\n  \
    kvmscope bench exits --json | jq '.sections[].tables.exits'\n\n\
    Guests of a few bytes run on /dev/kvm, without QEMU; `here` rows need nothing.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong use.")]
pub struct Exits {
    /// Processes that measure everything anew; the interval comes from the spread between them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value = "5")]
    launches: u32,
    /// Only these tests
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tests: Vec<String>,
    /// How long the samples of one test may take, in one launch
    #[arg(long, value_name = "SECONDS", value_parser = nanoseconds, default_value = "0.1")]
    seconds: u64,
    /// The CPU to measure on [default: the last one that may be used]
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// KVM's device
    #[arg(long, value_name = "FILE", default_value = "/dev/kvm")]
    device: PathBuf,
    #[command(flatten)]
    place: PlaceOptions,
}

impl Exits {
    /// Measures, and says what came of it.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let known: Vec<&str> = names().map(|(_, name)| name).collect();
        if let Some(unknown) = self.tests.iter().find(|test| !known.contains(&test.as_str())) {
            let mut known: Vec<&str> = names().filter(|(place, _)| *place == "guest").map(|(_, name)| name).collect();
            known.sort_unstable();
            bail!(WrongUse(format!("there is no test `{unknown}`; there are {}", known.join(", "))));
        }
        let cpu = cpu(self.cpu)?;
        let plan = Plan {
            device: self.device.clone(),
            root: PathBuf::from("/"),
            cpu,
            ns_per_tick: launch::ns_per_tick(),
            target: Duration::from_nanos(self.seconds),
            limit: LIMIT + 2 * Duration::from_nanos(self.seconds),
            launch: 0,
            only: self.tests.clone(),
        };
        let mut bench = Bench::new("exits", environment(Path::new("/")));
        let mut place = self.place.begin("exits")?;
        let status = Status::new(!self.place.no_progress, u64::from(self.launches) * plan.results() as u64);
        let program = std::env::current_exe()?;
        let mut failed = None;
        for number in 0..self.launches {
            let mut tell = |measured: Measured| {
                status.done(format!("launch {}: {}", number + 1, measured.name));
                bench.results.push(measured);
                Ok(())
            };
            if let Err(error) = launch::run(&program, LAUNCH, &plan.launch(number), &mut tell) {
                failed = Some(error);
                break;
            }
            place.keep(&bench)?;
        }
        drop(status);
        if let Some(error) = failed {
            if bench.results.is_empty() {
                place.abandon()?;
                return Err(error.into());
            }
            bench.notes.push(format!("The bench ended early: {error}."));
        }
        place.finish(&bench, &self.place)
    }
}

/// The CPU that was asked for, or the last of ours: the first often serves the machine's interrupts.
pub fn cpu(asked: Option<usize>) -> anyhow::Result<usize> {
    let cpus = launch::cpus()?;
    match asked {
        Some(cpu) if !cpus.contains(&cpu) => {
            bail!(WrongUse(format!("CPU {cpu} is not one that this process may use")))
        }
        Some(cpu) => Ok(cpu),
        None => Ok(cpus.last().copied().unwrap_or(0)),
    }
}
