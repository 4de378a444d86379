//! `kvmscope bench irq`: how long does it take from an interrupt's edge outside a guest to the guest's handler, and what did the host
//! do meanwhile?
//!
//! ```text
//! guest    on KVM, by an irqfd, or in QEMU's TCG, by ivshmem-doorbell --> lengths, by the time-stamp counter
//! tracefs  the same time, the same clock                              --> what the host did in each of them
//! ```

use super::beside::{self, Task, monotonic};
use super::launches::OnCpu;
use super::place::{Place, PlaceOptions};
use crate::arguments::{JournalPlace, duration, length};
use anyhow::{anyhow, bail};
use base::bench::{Measured, NS_PER_TICK, Params};
use base::recording::Emulator;
use base::{Bench, Histogram, interrupts};
use clap::Args;
use lab::environment::{self, How};
use lab::setting::thread;
use labs::bench::irq::{Interrupts, MOST_EDGES, Plan};
use labs::bench::launch;
use labs::bench::probe::{Probe, Seats};
use process::exit::{Exit, WrongUse};
use process::interrupt::Interrupt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure how long interrupts take from outside a guest to its handler, and record the host
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    sudo kvmscope bench irq\n  \
    sudo kvmscope bench irq --seconds 3300 --cpu 3 --fifo -o cpu3\n  \
    kvmscope report cpu3 --budget kvm4nfv-2015\n  \
    kvmscope bench irq --emulate --halt --json | jq '.sections[].tables.interrupts'\n\n\
    Runs a tiny guest, on KVM if that accepts interrupts from an eventfd, else emulated by QEMU: then the recording is\n\
    marked as emulated, and its times are not those of a processor.\n\
    Without root the host is not recorded, and long latencies stay unexplained.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong usage, 3 a finding at or above --fail-on.\n\
    With --json and without -o, no recording is kept.")]
pub(super) struct Irq {
    /// How long to measure
    #[arg(long, value_name = "SECONDS", value_parser = length, default_value = "10")]
    seconds: u64,
    /// Time between two interrupts
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1ms")]
    period: Duration,
    /// Let the guest halt between interrupts, so that each of them wakes it; else it spins
    #[arg(long)]
    halt: bool,
    /// Emulate the guest with QEMU, even where KVM could run it
    #[arg(long)]
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

impl Irq {
    /// Measures, and says what came of it.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let plan = self.plan()?;
        let ns_per_tick = launch::ns_per_tick();
        let mut environment = environment::here(How { fifo: plan.seats.fifo, ..How::default() });
        environment.insert(NS_PER_TICK.to_owned(), ns_per_tick.to_string());
        let mut bench = Bench::new("irq", environment);
        let interrupt = Interrupt::watch()?;
        let scratch = interrupt.temporary("kvmscope-irq")?;
        let mut probe = self.guest(&plan, scratch.path(), &mut bench.notes)?;
        let place = self.place.begin("irq", probe.is_emulated().then_some(Emulator::Tcg), interrupt)?;
        let stop = place.interrupt.hold();
        let task = Task { name: "the interrupts", unexplained: "nothing explains long ones", notes: &mut bench.notes };
        let run = |_: &mut Vec<String>| plan.run(&mut probe, &stop);
        let (mut place, measured, parts) = beside::measured(place, &self.journal, task, run)?;
        drop(probe);
        let kept = self.kept(&place, &measured, &plan, ns_per_tick);
        bench.results.push(told(&kept));
        let samples = beside::samples(&place, "irq.json", |path| kept.write(path))?;
        place.add([parts, vec![samples]].concat());
        place.finish(&bench, &self.place)
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let seats = Seats::of(&thread::affinity(thread::own())?, self.on.cpu()?, self.on.fifo()?);
        let length = Duration::from_nanos(self.seconds);
        let plan = Plan { seats, period: self.period, length, halts: self.halt };
        if !(1..=MOST_EDGES).contains(&plan.most_edges()) {
            bail!(WrongUse(format!(
                "--seconds and --period make {} interrupts; 1 to {MOST_EDGES} can be measured",
                plan.most_edges()
            )));
        }
        Ok(plan)
    }

    /// A guest on KVM if one can run and take interrupts from outside, else in QEMU.
    fn guest(&self, plan: &Plan, scratch: &Path, notes: &mut Vec<String>) -> anyhow::Result<Probe> {
        if self.emulate {
            return Ok(Probe::in_qemu(scratch, &plan.seats)?);
        }
        match Probe::on_kvm(&self.device, &plan.seats, plan.length) {
            Ok(probe) => Ok(probe),
            Err(why) => {
                let probe = Probe::in_qemu(scratch, &plan.seats);
                let probe = probe
                    .map_err(|error| anyhow!("no guest can take interrupts here; on KVM: {why}; in QEMU: {error}"))?;
                notes.push(format!("No guest on KVM takes interrupts from outside here, so QEMU emulated one: {why}."));
                Ok(probe)
            }
        }
    }

    /// What goes into the recording beside the bench.
    fn kept(&self, place: &Place, measured: &Interrupts, plan: &Plan, ns_per_tick: f64) -> interrupts::Interrupts {
        let monotonic_ns = monotonic(place.clock_pairs());
        let (ahead, error_ticks) = measured.ahead.middle();
        let ns = |ticks: u64| (ticks as f64 * ns_per_tick) as u64;
        let pairing = &measured.pairing;
        let answered = pairing.answered.iter().map(|one| {
            let ticks = one.ticks(ahead);
            (monotonic_ns(one.edge.saturating_add(ticks)), ns(ticks))
        });
        interrupts::Interrupts {
            schema: interrupts::SCHEMA.to_owned(),
            tids: measured.tids.clone(),
            cpu: plan.seats.vcpu,
            period_ns: plan.period.as_nanos() as u64,
            halts: plan.halts,
            edges: measured.edges,
            merged: pairing.merged,
            unanswered: pairing.unanswered(),
            lost: pairing.lost,
            extra: pairing.extra,
            // Half a tick is cut off.
            error_ns: ns(error_ticks) + 1,
            answered: answered.collect(),
        }
    }
}

/// The distribution of the lengths.
fn told(kept: &interrupts::Interrupts) -> Measured {
    let mut lengths = Histogram::new();
    kept.answered.iter().for_each(|(_, length_ns)| lengths.record(*length_ns));
    let interference =
        (kept.lost > 0).then(|| format!("{} interrupts were lost: the guest noted more than was read", kept.lost));
    Measured {
        name: "irq".to_owned(),
        params: Params { place: "guest".to_owned(), ring: Some(0), ..Params::default() },
        unit: "ns".to_owned(),
        hdr: lengths.buckets(),
        interference: interference.into_iter().collect(),
        ..Measured::default()
    }
}
