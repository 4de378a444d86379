//! `kvmscope lab`: a reproducible experiment on any computer; the result is a recording.

mod booted;
mod course;
mod migrate;
mod netns;
mod ovs;
mod paths;
mod rt;
mod wall;

use crate::arguments::{DestinationOptions, OutputOptions, described, named};
use booted::Booted;
use clap::{Args, Subcommand};
use labs::WORKS;
use labs::machine::inside::{self, Work};
use labs::nested::{self, Arch, Guest, Settings};
use process::exit::Exit;
use std::path::PathBuf;

/// Run an experiment and record it
#[derive(Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    Migrate(Box<migrate::Migrate>),
    Nested(Box<Nested>),
    Netns(Box<netns::Netns>),
    Ovs(Box<ovs::Ovs>),
    Rt(Box<rt::Rt>),
    /// The first process of a machine of the lab
    #[command(hide = true)]
    Inside,
}

/// Boot a host with KVM, its guest and a nested guest, without virtualization hardware
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope lab nested --arch svm\n  \
    kvmscope lab nested --arch svm --set vgif=on --set loops=1000 -o vgif-on\n  \
    kvmscope lab nested --arch svm --guest linux --set workload=disk\n  \
    kvmscope lab nested --arch vmx --set shadow_vmcs=off\n  \
    kvmscope lab nested --arch vmx --guest linux\n  \
    kvmscope lab nested --arch svm --guest bench\n  \
    kvmscope lab nested --arch vmx --guest bench --set tests=nested\n\n\
    Times in the recording are the emulator's; counts and order are real.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding at or above --fail-on,\n\
    130 Ctrl-C.")]
pub(crate) struct Nested {
    /// Virtualization extension: AMD's or Intel's
    #[arg(long, value_parser = named(Arch::ALL, Arch::name))]
    arch: Arch,
    /// Software that runs as L1 and L2
    #[arg(long, value_parser = described(GUESTS, Guest::name), default_value = "toy")]
    guest: Guest,
    /// Settings of the experiment: loops=N (for bench its launches), workload=cpuid|pio (linux also idle|timer, and disk for svm); for svm cpus=N and
    /// vgif=on|off; for vmx shadow_vmcs=on|off; for bench tests=all|nested
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    destination: DestinationOptions,
    #[command(flatten)]
    output: OutputOptions,
    /// Cache directory for Debian's packages [default: kvmscope in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

const GUESTS: [(Guest, &str); 3] =
    [(Guest::Toy, ""), (Guest::Linux, ""), (Guest::Bench, "The tests of `bench exits`, timed but not traced")];

/// All that the first process of a machine can do.
fn works() -> Vec<Work> {
    let works = WORKS.to_vec();
    #[cfg(feature = "channel")]
    let works = [works, vec![channel_bench::ivshmem::SIDE]].concat();
    works
}

impl Lab {
    /// Runs the experiment, then reports on it.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        match &self.experiment {
            Experiment::Migrate(migrate) => migrate.run(),
            Experiment::Nested(nested) => nested.run(),
            Experiment::Netns(netns) => netns.run(),
            Experiment::Ovs(ovs) => ovs.run(),
            Experiment::Rt(rt) => rt.run(),
            Experiment::Inside => {
                inside::run(&works())?;
                Ok(Exit::Answered)
            }
        }
    }
}

impl Nested {
    fn run(&self) -> anyhow::Result<Exit> {
        let settings = Settings::new(self.arch, self.guest, &self.set)?;
        let booted = Booted {
            name: "nested",
            cache: self.cache.as_deref(),
            destination: &self.destination,
            output: &self.output,
        };
        booted.run(|places, created, say, stop| nested::run(&settings, places, created, say, stop))
    }
}
