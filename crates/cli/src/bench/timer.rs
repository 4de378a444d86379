//! `kvmscope bench timer`: when did a loop not run that does nothing but read the counter, and who had its CPU?
//!
//! ```text
//! loop     on one CPU, in a guest of ours or in this process --> gaps, by the time-stamp counter
//! tracefs  the same time, the same clock                     --> what the host did in each of them
//! ```

use super::beside::{self, Task, monotonic};
use super::launches::OnCpu;
use super::place::{Place, PlaceOptions};
use crate::arguments::{JournalPlace, duration, length};
use base::bench::{Measured, NS_PER_TICK, Params};
use base::recording::Emulator;
use base::{Bench, Histogram, gaps};
use clap::Args;
use lab::environment::{self, How};
use lab::setting::thread;
use labs::bench::gaps::{Gaps, Place as At, Plan};
use labs::bench::launch;
use labs::bench::probe::{Probe, Seats};
use process::exit::Exit;
use process::interrupt::Interrupt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Find gaps in the time of a guest that never halts, and record what the host did in them
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    sudo kvmscope bench timer\n  \
    sudo kvmscope bench timer --seconds 60 --threshold 5us --cpu 3 --fifo -o cpu3\n  \
    kvmscope bench timer --emulate --threshold 200us\n  \
    kvmscope bench timer --in-process --json | jq '.sections[].tables.attributed'\n\n\
    Without root nothing of the host is recorded, and all gaps stay unexplained.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong usage, 3 a finding at or above --fail-on.\n\
    With --json and without -o, no recording is kept.")]
pub(super) struct Timer {
    /// Seconds to measure
    #[arg(long, value_name = "SECONDS", value_parser = length, default_value = "10")]
    seconds: u64,
    /// Shortest gap to report
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20us")]
    threshold: Duration,
    /// Use a thread of this process, even where a guest could run
    #[arg(long)]
    in_process: bool,
    /// Use a guest that QEMU emulates, without KVM; the recording is marked
    #[arg(long, conflicts_with = "in_process")]
    emulate: bool,
    /// KVM's device
    #[arg(long, value_name = "FILE", default_value = "/dev/kvm")]
    device: PathBuf,
    #[command(flatten)]
    on: OnCpu,
    #[command(flatten)]
    journal: JournalPlace,
    #[command(flatten)]
    place: PlaceOptions,
}

impl Timer {
    /// Measures, and says what came of it.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let plan = self.plan()?;
        let mut environment = environment::here(How { fifo: plan.fifo, ..How::default() });
        environment.insert(NS_PER_TICK.to_owned(), plan.ns_per_tick.to_string());
        let mut bench = Bench::new("timer", environment);
        let interrupt = Interrupt::watch()?;
        let scratch = self.emulate.then(|| interrupt.temporary("kvmscope-timer")).transpose()?;
        let probe = scratch.as_ref().map(|scratch| self.emulated(&plan, scratch.path())).transpose()?;
        let place = self.place.begin("timer", probe.as_ref().map(|_| Emulator::Tcg), interrupt)?;
        let stop = place.interrupt.hold();
        let task = Task { name: "the loop", unexplained: "no gap is explained", notes: &mut bench.notes };
        let (mut place, looked, parts) = beside::measured(place, &self.journal, task, |notes| match probe {
            Some(mut probe) => plan.emulated(&mut probe, &stop),
            None => self.look(&plan, &stop, notes),
        })?;
        bench.results.push(measured(&looked, &plan));
        let kept = self.kept(&place, &looked, &plan);
        let samples = beside::samples(&place, "gaps.json", |path| kept.write(path))?;
        place.add([parts, vec![samples]].concat());
        place.finish(&bench, &self.place)
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let ns_per_tick = launch::ns_per_tick();
        let threshold_ticks = (self.threshold.as_nanos() as f64 / ns_per_tick) as u64;
        Ok(Plan {
            device: self.device.clone(),
            cpu: self.on.cpu()?,
            threshold_ticks,
            length: Duration::from_nanos(self.seconds),
            ns_per_tick,
            fifo: self.on.fifo()?,
        })
    }

    /// A guest in QEMU.
    fn emulated(&self, plan: &Plan, scratch: &Path) -> anyhow::Result<Probe> {
        let seats = Seats::of(&thread::affinity(thread::own())?, plan.cpu, plan.fifo);
        Ok(Probe::in_qemu(scratch, &seats)?)
    }

    /// Looks in a guest if one can run, else in this process.
    fn look(&self, plan: &Plan, stop: &Arc<AtomicBool>, notes: &mut Vec<String>) -> Result<Gaps, lab::Error> {
        if self.in_process {
            return plan.here(stop);
        }
        plan.guest(stop).or_else(|error| {
            notes.push(format!("No guest can look for gaps here, so this process did: {error}."));
            plan.here(stop)
        })
    }

    /// What goes into the recording beside the bench.
    fn kept(&self, place: &Place, looked: &Gaps, plan: &Plan) -> gaps::Gaps {
        let monotonic_ns = monotonic(place.clock_pairs());
        let length_ns = |(from, to): (u64, u64)| ((to - from) as f64 * plan.ns_per_tick) as u64;
        gaps::Gaps {
            schema: gaps::SCHEMA.to_owned(),
            tid: looked.tid,
            cpu: plan.cpu,
            threshold_ns: self.threshold.as_nanos() as u64,
            looked: looked.looked.iter().map(|(from, to)| (monotonic_ns(*from), monotonic_ns(*to))).collect(),
            gaps: looked.gaps.iter().map(|gap| (monotonic_ns(gap.1), length_ns(*gap))).collect(),
        }
    }
}

/// The distribution of the gaps.
fn measured(looked: &Gaps, plan: &Plan) -> Measured {
    let mut lengths = Histogram::new();
    let ns = |(from, to): &(u64, u64)| ((to - from) as f64 * plan.ns_per_tick) as u64;
    looked.gaps.iter().for_each(|gap| lengths.record(ns(gap)));
    let place = match looked.place {
        At::Guest | At::Emulated => "guest",
        At::Here => "here",
    };
    let ring = if looked.place == At::Emulated { 0 } else { 3 };
    let looked_ns: u64 = looked.looked.iter().map(ns).sum();
    let interference = looked.is_full.then(|| {
        let seconds = looked_ns as f64 / 1e9;
        format!("too many gaps: the buffer was full after {seconds:.3} s; use a longer --threshold")
    });
    Measured {
        name: "gaps".to_owned(),
        params: Params { place: place.to_owned(), ring: Some(ring), ..Params::default() },
        unit: "ns".to_owned(),
        hdr: lengths.buckets(),
        interference: interference.into_iter().collect(),
        ..Measured::default()
    }
}
