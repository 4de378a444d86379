//! Launches, one after the other, into one recording: what `exits` and `clock` have in common.

use super::LAUNCH;
use super::place::{Place, PlaceOptions};
use super::status::Status;
use crate::arguments::length;
use anyhow::bail;
use base::number::packets_per_s;
use base::{Bench, Measured};
use clap::Args;
use lab::setting::thread;
use labs::bench::launch::{self, Job};
use process::exit::{Exit, WrongUse};
use process::interrupt::Interrupt;

/// Options of benches that measure in launches.
#[derive(Args)]
pub(super) struct LaunchOptions {
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
pub(super) struct OnCpu {
    /// CPU to measure on [default: the last CPU available to this process]
    #[arg(long, value_name = "CPU")]
    cpu: Option<u32>,
    /// Measure with SCHED_FIFO, which ordinary threads cannot preempt (root)
    #[arg(long)]
    fifo: bool,
}

/// What is done in launches.
pub(super) struct Work<'a> {
    /// How many results each gives.
    pub results: usize,
    /// How many processes a launch is, which take turns: one for each state of the machine.
    pub rounds: u32,
    /// What launch N is to do in round M.
    pub job: &'a (dyn Fn(u32, u32) -> anyhow::Result<Job> + Sync),
    /// What is measured right now, for whoever looks at the bar.
    pub live: Option<&'a (dyn Fn() -> Option<String> + Sync)>,
}

impl OnCpu {
    /// The CPU that was asked for, or the last of ours: the first often serves the machine's interrupts.
    pub(super) fn cpu(&self) -> anyhow::Result<u32> {
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
    pub(super) fn fifo(&self) -> anyhow::Result<bool> {
        if self.fifo {
            labs::bench::priority::allowed()?;
        }
        Ok(self.fifo)
    }
}

impl LaunchOptions {
    /// Does all launches.
    pub(super) fn run(
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
    pub(super) fn run(
        &self,
        launches: u32,
        mut bench: Bench,
        options: &PlaceOptions,
        interrupt: Interrupt,
    ) -> anyhow::Result<Exit> {
        let mut place = options.begin(&bench.bench, None, interrupt)?;
        let failed = self.measure(launches, &mut bench, &mut place, !options.no_progress)?;
        Self::end(place, bench, failed, options)
    }

    /// Does it so many times, and keeps what was measured; gives why it ended early, if it did.
    pub(super) fn measure(
        &self,
        launches: u32,
        bench: &mut Bench,
        place: &mut Place,
        progress: bool,
    ) -> anyhow::Result<Option<anyhow::Error>> {
        let processes = u64::from(launches) * u64::from(self.rounds);
        let status = Status::new(progress, processes * self.results as u64);
        let program = std::env::current_exe()?;
        let rounds = (0..launches).flat_map(|number| (0..self.rounds).map(move |round| (number, round)));
        for (number, round) in rounds {
            let mut tell = |measured: Measured| {
                status.done(format!("launch {}: {}", number + 1, said(&measured)));
                bench.results.push(measured);
                if place.interrupt.is_held_back() { Err(lab::Error::Stopped) } else { Ok(()) }
            };
            let launched = (self.job)(number, round);
            let stop = || {
                status.now(self.live);
                place.interrupt.is_held_back()
            };
            let launched = launched.and_then(|job| Ok(launch::run(&program, LAUNCH, &job, &stop, &mut tell)?));
            if let Err(error) = launched {
                place.interrupt.wait_if_asked();
                return Ok(Some(error));
            }
            place.keep(bench)?;
        }
        Ok(None)
    }

    /// Answers what was measured, even if it `failed` in the end; takes the place back if nothing was.
    pub(super) fn end(
        place: Place,
        mut bench: Bench,
        failed: Option<anyhow::Error>,
        options: &PlaceOptions,
    ) -> anyhow::Result<Exit> {
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

/// A result in a few words, with its rate where it has one.
fn said(measured: &Measured) -> String {
    match &measured.channel {
        Some(run) => format!("{}: {}", measured.name, packets_per_s(run.raw_mpps() * 1e6)),
        None => measured.name.clone(),
    }
}
