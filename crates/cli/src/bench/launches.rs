//! Launches, one after the other, into one recording: what `exits` and `clock` have in common.

use super::LAUNCH;
use super::place::PlaceOptions;
use super::status::Status;
use crate::arguments::length;
use crate::exit::{Exit, WrongUse};
use crate::interrupt::Interrupt;
use anyhow::bail;
use base::{Bench, Measured};
use clap::Args;
use lab::bench::launch::{self, Job};
use lab::setting::thread;

/// Options of benches that measure in launches.
#[derive(Args)]
pub struct LaunchOptions {
    /// Number of processes, each of which runs all tests; the spread between them gives the confidence interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value = "5")]
    launches: u32,
    /// Seconds of sampling per test and launch
    #[arg(long, value_name = "SECONDS", value_parser = length, default_value = "0.1")]
    pub seconds: u64,
    #[command(flatten)]
    pub on: OnCpu,
}

/// Where a bench measures, and how it is scheduled there.
#[derive(Args)]
pub struct OnCpu {
    /// CPU to measure on [default: the last CPU available to this process]
    #[arg(long, value_name = "CPU")]
    cpu: Option<u32>,
    /// Measure with SCHED_FIFO, which ordinary threads cannot preempt (root)
    #[arg(long)]
    fifo: bool,
}

/// What is done in launches.
pub struct Work<'a> {
    /// How many results each gives.
    pub results: usize,
    /// How many processes a launch is, which take turns: one for each state of the machine.
    pub rounds: u32,
    /// What launch N is to do in round M.
    pub job: &'a dyn Fn(u32, u32) -> anyhow::Result<Job>,
}

impl OnCpu {
    /// The CPU that was asked for, or the last of ours: the first often serves the machine's interrupts.
    pub fn cpu(&self) -> anyhow::Result<u32> {
        let cpus = thread::affinity(thread::own())?;
        match self.cpu {
            Some(cpu) if !cpus.contains(cpu) => {
                bail!(WrongUse(format!("CPU {cpu} is not available to this process")))
            }
            Some(cpu) => Ok(cpu),
            None => Ok(cpus.last().unwrap_or(0)),
        }
    }

    /// Whether SCHED_FIFO is wanted; refused at once where it could not be had.
    pub fn fifo(&self) -> anyhow::Result<bool> {
        if self.fifo {
            lab::bench::priority::allowed()?;
        }
        Ok(self.fifo)
    }
}

impl LaunchOptions {
    /// Does all launches.
    pub fn run(
        &self,
        bench: Bench,
        work: &Work<'_>,
        options: &PlaceOptions,
        interrupt: Interrupt,
    ) -> anyhow::Result<Exit> {
        work.run(self.launches, bench, options, interrupt)
    }
}

impl Work<'_> {
    /// Does it so many times.
    pub fn run(
        &self,
        launches: u32,
        mut bench: Bench,
        options: &PlaceOptions,
        interrupt: Interrupt,
    ) -> anyhow::Result<Exit> {
        let mut place = options.begin(&bench.bench, None, interrupt)?;
        let processes = u64::from(launches) * u64::from(self.rounds);
        let status = Status::new(!options.no_progress, processes * self.results as u64);
        let program = std::env::current_exe()?;
        let mut failed = None;
        let rounds = (0..launches).flat_map(|number| (0..self.rounds).map(move |round| (number, round)));
        for (number, round) in rounds {
            let mut tell = |measured: Measured| {
                status.done(format!("launch {}: {}", number + 1, measured.name));
                bench.results.push(measured);
                Ok(())
            };
            let launched = (self.job)(number, round);
            let launched = launched.and_then(|job| Ok(launch::run(&program, LAUNCH, &job, &mut tell)?));
            if let Err(error) = launched {
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
                return Err(error);
            }
            bench.notes.push(format!("The bench ended early: {error}."));
        }
        place.finish(&bench, options)
    }
}
