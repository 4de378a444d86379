//! `kvmscope lab ovs --path`: the same chain over the kernel's own datapaths.

use base::recording::Recording;
use clap::{Args, ValueEnum};
use lab::Error;
use lab::journal::Journal;
use labs::netns::paths::{self, Path, Settings};
use labs::ovs::Places;
use labs::search::{Goal, Method};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What is measured on kernel paths.
#[derive(Args)]
pub(super) struct PathOptions {
    /// Measure these paths of the kernel instead of Open vSwitch, in turns
    #[arg(long, value_enum, value_name = "PATH,PATH", value_delimiter = ',', conflicts_with_all = ["pattern", "no_huge", "seconds", "warm_up"])]
    path: Vec<PathName>,
    /// Find the lower and upper bound of these rates: no frame lost, 0.5 % lost
    #[arg(long, value_enum, value_name = "GOAL,GOAL", value_delimiter = ',')]
    search: Vec<GoalName>,
    /// How bounds are searched
    #[arg(long, value_enum, default_value = "mlrsearch", requires = "search")]
    method: MethodName,
    /// With --path: measure TCP streams whose program writes messages of these sizes, by iperf3
    #[arg(long, value_name = "BYTES,BYTES", value_delimiter = ',', requires = "path", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    messages: Vec<u32>,
    /// Length of each trial on a kernel path
    #[arg(long, value_name = "MS", default_value_t = 1_000, requires = "path", value_parser = clap::value_parser!(u64).range(10..=600_000))]
    trial_ms: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum PathName {
    /// Traffic control redirects from one veth to the next
    Veth,
    /// A bridge joins two veths
    Bridge,
    /// A thread copies between the files of two macvtaps, as a VMM does
    Macvtap,
    /// testpmd on taps that the kernel's vhost-net serves
    VhostNet,
}

#[derive(Clone, Copy, ValueEnum)]
enum GoalName {
    /// No frame is lost
    Ndr,
    /// At most 0.5 % of frames are lost
    Pdr,
}

#[derive(Clone, Copy, ValueEnum)]
enum MethodName {
    /// Multiple Loss Ratio Search: several trials of each rate, all goals at once
    Mlrsearch,
    /// Halves, one trial of each rate
    Rfc2544,
}

impl PathOptions {
    /// What is to be measured, if kernel paths are.
    pub(super) fn settings(&self, vnfs: &[u32], sizes_bytes: &[u32], repeats: u32) -> Option<Settings> {
        let paths = self.path.iter().map(|path| match path {
            PathName::Veth => Path::Veth,
            PathName::Bridge => Path::Bridge,
            PathName::Macvtap => Path::Macvtap,
            PathName::VhostNet => Path::VhostNet,
        });
        (!self.path.is_empty()).then(|| Settings {
            paths: paths.collect(),
            vnfs: vnfs.to_vec(),
            sizes_bytes: sizes_bytes.to_vec(),
            trial: Duration::from_millis(self.trial_ms),
            repeats,
            search: self.search(),
            messages_bytes: self.messages.clone(),
        })
    }

    /// What is searched for, and how; on a kernel path or behind the switch.
    pub(super) fn search(&self) -> Option<(Vec<Goal>, Method)> {
        let goals = self.search.iter().map(|goal| match goal {
            GoalName::Ndr => Goal::NDR,
            GoalName::Pdr => Goal::PDR,
        });
        let goals: Vec<Goal> = goals.collect();
        let method = match self.method {
            MethodName::Mlrsearch => Method::Mlr,
            MethodName::Rfc2544 => Method::Binary,
        };
        (!goals.is_empty()).then_some((goals, method))
    }

    /// Measures, and keeps what was measured.
    pub(super) fn measure(
        &self,
        settings: &Settings,
        places: &Places,
        journal: &Journal,
        created: String,
        say: &mut dyn FnMut(&str),
        stop: &AtomicBool,
    ) -> Result<Recording, Error> {
        let runs = paths::run(settings, &places.programs, journal, say, stop)?;
        let names: Vec<&str> = settings.paths.iter().map(|path| path.name()).collect();
        let what = format!("--path {} --repeats {} --trial-ms {}", names.join(","), settings.repeats, self.trial_ms);
        paths::record(&runs, &places.output, created, &what)
    }
}
