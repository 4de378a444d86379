//! Launches, one after the other, into one recording: what `exits` and `clock` have in common.

use super::LAUNCH;
use super::place::PlaceOptions;
use super::status::Status;
use crate::arguments::nanoseconds;
use crate::exit::{Exit, WrongUse};
use anyhow::bail;
use base::{Bench, Measured};
use clap::Args;
use lab::bench::launch::{self, Job};

/// Options of benches that measure in launches.
#[derive(Args)]
pub struct LaunchOptions {
    /// Processes that measure everything anew; the interval comes from the spread between them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value = "5")]
    launches: u32,
    /// How long the samples of one test may take, in one launch
    #[arg(long, value_name = "SECONDS", value_parser = nanoseconds, default_value = "0.1")]
    pub seconds: u64,
    /// The CPU to measure on [default: the last one that may be used]
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// Measure by SCHED_FIFO, which ordinary threads cannot interrupt (root)
    #[arg(long)]
    fifo: bool,
}

impl LaunchOptions {
    /// The CPU that was asked for, or the last of ours: the first often serves the machine's interrupts.
    pub fn cpu(&self) -> anyhow::Result<usize> {
        let cpus = launch::cpus()?;
        match self.cpu {
            Some(cpu) if !cpus.contains(&cpu) => {
                bail!(WrongUse(format!("CPU {cpu} is not one that this process may use")))
            }
            Some(cpu) => Ok(cpu),
            None => Ok(cpus.last().copied().unwrap_or(0)),
        }
    }

    /// Whether SCHED_FIFO is wanted; refused at once where it could not be had.
    pub fn fifo(&self) -> anyhow::Result<bool> {
        if self.fifo {
            lab::bench::priority::allowed()?;
        }
        Ok(self.fifo)
    }

    /// Does all launches; `results` is how many each gives, `job` what launch N is to do.
    pub fn run(
        &self,
        mut bench: Bench,
        results: usize,
        options: &PlaceOptions,
        job: &dyn Fn(u32) -> Job,
    ) -> anyhow::Result<Exit> {
        let mut place = options.begin(&bench.bench)?;
        let status = Status::new(!options.no_progress, u64::from(self.launches) * results as u64);
        let program = std::env::current_exe()?;
        let mut failed = None;
        for number in 0..self.launches {
            let mut tell = |measured: Measured| {
                status.done(format!("launch {}: {}", number + 1, measured.name));
                bench.results.push(measured);
                Ok(())
            };
            if let Err(error) = launch::run(&program, LAUNCH, &job(number), &mut tell) {
                place.interrupt.wait_if_asked();
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
        place.finish(&bench, options)
    }
}
