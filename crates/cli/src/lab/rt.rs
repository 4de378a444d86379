//! `kvmscope lab rt`: a real-time guest whose latencies have known causes.

use super::booted::Booted;
use crate::arguments::{DestinationOptions, JournalPlace, OutputOptions, described};
use anyhow::bail;
use clap::Args;
use labs::rt::{self, Disturbance, Environment, Settings};
use process::exit::Exit;
use std::path::PathBuf;

/// Measure latencies in a real-time guest, disturb it on purpose, and record guest and host
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope lab rt\n  \
    kvmscope lab rt --disturb hog -o hog\n  \
    kvmscope lab rt --environment cpustress_idle --seconds 20\n  \
    kvmscope lab rt --seconds 2 --disturb stop --json\n\n\
    Needs root, to record this host. The guest is emulated: who took its time is real, how much is not.\n\
    Everything it creates is removed at the end, also on Ctrl-C; after kill -9, by `kvmscope undo` and the next lab.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding at or above --fail-on,\n\
    130 Ctrl-C.")]
pub(super) struct Rt {
    /// Load on the host next to the guest, which is idle except for the measuring programs (host_guest)
    #[arg(long, value_parser = described(ENVIRONMENTS, Environment::name), default_value = "idle_idle", value_name = "NAME")]
    environment: Environment,
    /// Seconds that each of the guest's four programs measures
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Disturbance that takes the vCPU's time several times per second
    #[arg(long, value_parser = described(DISTURBANCES, Disturbance::name), default_value = "none", value_name = "WHAT")]
    disturb: Disturbance,
    #[command(flatten)]
    destination: DestinationOptions,
    /// Cache directory for Debian's packages [default: kvmscope in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    place: JournalPlace,
    #[command(flatten)]
    output: OutputOptions,
}

const ENVIRONMENTS: [(Environment, &str); 4] = [
    (Environment::IdleIdle, "Nothing"),
    (Environment::CpustressIdle, "Threads that compute"),
    (Environment::MemorystressIdle, "Threads that copy memory"),
    (Environment::IostressIdle, "A thread that writes to the disk"),
];

const DISTURBANCES: [(Disturbance, &str); 5] = [
    (Disturbance::None, "Nothing"),
    (Disturbance::Hog, "An ordinary thread on the vCPU's CPU that wants all of it"),
    (Disturbance::Fifo, "A real-time thread (SCHED_FIFO) on that CPU"),
    (Disturbance::Quota, "A CPU quota of the guest's control group, of version 1 or 2"),
    (Disturbance::Stop, "SIGSTOP"),
];

impl Rt {
    /// Runs the experiment, then reports on it.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if !rustix::process::geteuid().is_root() {
            bail!("recording this host needs root; run `sudo kvmscope lab rt`");
        }
        let settings = Settings { environment: self.environment, disturbance: self.disturb, seconds: self.seconds };
        let journal = self.place.journal();
        let booted =
            Booted { name: "rt", cache: self.cache.as_deref(), destination: &self.destination, output: &self.output };
        booted.run(|places, created, say, stop| rt::run(&settings, places, &journal, created, say, stop))
    }
}
