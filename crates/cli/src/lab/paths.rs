//! `kvmscope lab ovs --path`: the same chain over the kernel's own datapaths.

use crate::arguments::described;
use base::recording::Recording;
use clap::Args;
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
    /// Measure these paths of the kernel instead of Open vSwitch, alternating
    #[arg(long, value_parser = described(PATHS, Path::name), value_name = "PATH,PATH", value_delimiter = ',', conflicts_with_all = ["pattern", "no_huge", "seconds", "warm_up"])]
    path: Vec<Path>,
    /// Find the lower and upper bound of these rates: no frame lost, 0.5 % lost
    #[arg(long, value_parser = described(GOALS, |goal| goal.name), value_name = "GOAL,GOAL", value_delimiter = ',')]
    search: Vec<Goal>,
    /// Search method
    #[arg(long, value_parser = described(METHODS, Method::name), default_value = "mlrsearch", requires = "search")]
    method: Method,
    /// With --path: measure TCP streams whose program writes messages of these sizes, by iperf3
    #[arg(long, value_name = "BYTES,BYTES", value_delimiter = ',', requires = "path", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    messages: Vec<u32>,
    /// Length of each trial on a kernel path
    #[arg(long, value_name = "MS", default_value_t = 1_000, requires = "path", value_parser = clap::value_parser!(u64).range(10..=600_000))]
    trial_ms: u64,
}

const PATHS: [(Path, &str); 4] = [
    (Path::Veth, "Traffic control redirects from one veth to the next"),
    (Path::Bridge, "A bridge joins two veths"),
    (Path::Macvtap, "A thread copies between the files of two macvtaps, as a VMM does"),
    (Path::VhostNet, "testpmd on taps that the kernel's vhost-net serves"),
];

const GOALS: [(Goal, &str); 2] = [(Goal::NDR, "No frame is lost"), (Goal::PDR, "At most 0.5 % of frames are lost")];

const METHODS: [(Method, &str); 2] = [
    (Method::Mlr, "Multiple Loss Ratio Search: several trials of each rate, all goals at once"),
    (Method::Binary, "Bisection, one trial per rate"),
];

impl PathOptions {
    /// What is to be measured, if kernel paths are.
    pub(super) fn settings(&self, vnfs: &[u32], sizes_bytes: &[u32], repeats: u32) -> Option<Settings> {
        (!self.path.is_empty()).then(|| Settings {
            paths: self.path.clone(),
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
        (!self.search.is_empty()).then(|| (self.search.clone(), self.method))
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
