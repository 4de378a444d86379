//! `kvmscope lab rt`: a real-time guest whose latencies have known causes.

use super::booted::Booted;
use crate::arguments::{DestinationOptions, JournalPlace, OutputOptions};
use crate::exit::Exit;
use anyhow::bail;
use clap::{Args, ValueEnum};
use labs::rt::{self, Disturbance, Environment, Settings};
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
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding of at least the severity of --fail-on,\n\
    130 Ctrl-C.")]
pub(super) struct Rt {
    /// What the host does beside the guest, which is idle but for the programs that measure (host_guest)
    #[arg(long, value_enum, default_value = "idle_idle", value_name = "NAME")]
    environment: EnvironmentName,
    /// How long each of the guest's four programs measures
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// What takes the vCPU's time on purpose, several times per second
    #[arg(long, value_enum, default_value = "none", value_name = "WHAT")]
    disturb: DisturbanceName,
    #[command(flatten)]
    destination: DestinationOptions,
    /// Where Debian's packages are kept [default: kvmscope in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    place: JournalPlace,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Clone, Copy, ValueEnum)]
enum EnvironmentName {
    /// Nothing
    #[value(name = "idle_idle")]
    Idle,
    /// Threads that compute
    #[value(name = "cpustress_idle")]
    Cpu,
    /// Threads that copy memory
    #[value(name = "memorystress_idle")]
    Memory,
    /// A thread that writes to the disk
    #[value(name = "iostress_idle")]
    Io,
}

#[derive(Clone, Copy, ValueEnum)]
enum DisturbanceName {
    /// Nothing
    None,
    /// An ordinary thread on the vCPU's CPU that wants all of it
    Hog,
    /// A real-time thread (SCHED_FIFO) on that CPU
    Fifo,
    /// A CPU quota of the guest's control group, of version 1 or 2
    Quota,
    /// SIGSTOP
    Stop,
}

impl Rt {
    /// Runs the experiment, then reports on it.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if !rustix::process::geteuid().is_root() {
            bail!("recording this host needs root; run `sudo kvmscope lab rt`");
        }
        let (settings, journal) = (self.settings(), self.place.journal());
        let booted =
            Booted { name: "rt", cache: self.cache.as_deref(), destination: &self.destination, output: &self.output };
        booted.run(|places, created, say, stop| rt::run(&settings, places, &journal, created, say, stop))
    }

    fn settings(&self) -> Settings {
        let environment = match self.environment {
            EnvironmentName::Idle => Environment::IdleIdle,
            EnvironmentName::Cpu => Environment::CpustressIdle,
            EnvironmentName::Memory => Environment::MemorystressIdle,
            EnvironmentName::Io => Environment::IostressIdle,
        };
        let disturbance = match self.disturb {
            DisturbanceName::None => Disturbance::None,
            DisturbanceName::Hog => Disturbance::Hog,
            DisturbanceName::Fifo => Disturbance::Fifo,
            DisturbanceName::Quota => Disturbance::Quota,
            DisturbanceName::Stop => Disturbance::Stop,
        };
        Settings { environment, disturbance, seconds: self.seconds }
    }
}
