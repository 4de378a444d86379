//! `kvmscope lab rt`: a real-time guest whose latencies have known causes.

use crate::arguments::{DestinationOptions, JournalPlace, OutputOptions};
use crate::exit::{Exit, WrongUse};
use crate::interrupt::Interrupt;
use anyhow::bail;
use base::utc::Utc;
use clap::{Args, ValueEnum};
use lab::nested::{Places, default_cache};
use lab::rt::{self, Disturbance, Environment, Settings};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

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
pub struct Rt {
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
    pub fn run(&self) -> anyhow::Result<Exit> {
        if !rustix::process::geteuid().is_root() {
            bail!("recording this host needs root; run `sudo kvmscope lab rt`");
        }
        let Some(cache) = self.cache.clone().or_else(|| default_cache(|name| std::env::var_os(name))) else {
            bail!(WrongUse("neither $XDG_CACHE_HOME nor $HOME names a directory; use --cache DIR".to_owned()));
        };
        self.output.check(1, self.destination.replaces())?;
        let output = self.destination.of("rt", Utc::of(SystemTime::now()))?;
        let programs = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
        let places = Places { program: std::env::current_exe()?, cache, programs, output };
        let created = Utc::of(SystemTime::now()).stamp();
        let interrupt = Interrupt::watch()?;
        let stop = interrupt.hold();
        let began = Instant::now();
        let mut say = |line: &str| {
            // If stderr is closed nobody wants to know.
            let _ = writeln!(std::io::stderr(), "lab: {:3} s  {line}", began.elapsed().as_secs());
        };
        let recording = match rt::run(&self.settings(), &places, &self.place.journal(), created, &mut say, &stop) {
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(Exit::Interrupted),
            recorded => recorded?,
        };
        let place = self.destination.finished(&recording, &interrupt)?;
        say(&format!("the recording is {}", place.display()));
        crate::report::of(&place, "lab", &self.output, &interrupt)
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
