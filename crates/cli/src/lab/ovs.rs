//! `kvmscope lab ovs`: what a chain of VNFs behind Open vSwitch with DPDK carries on this computer, or on the kernel's own paths.

use super::course;
use super::paths::PathOptions;
use super::wall::Wall;
use crate::arguments::{DestinationOptions, JournalPlace, OutputOptions, described};
use anyhow::bail;
use base::datapath::{DatapathRuns, RateSample, Traffic};
use base::gauges::TrialName;
use base::recording::{Destination, Recording};
use base::utc::Utc;
use clap::Args;
use lab::journal::Journal;
use labs::ovs::{self, MOST_VNFS, Memory, Places, SIZES_BYTES, Search, Settings};
use process::exit::{Exit, WrongUse};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

/// Measure the rate of a chain of VNFs behind Open vSwitch with DPDK, without a NIC
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope lab ovs\n  \
    kvmscope lab ovs --vnfs 1,2,4,8 --size 64,512,1518 --repeats 3 -o chain\n  \
    kvmscope lab ovs --pattern north-south --vnfs 2 --size 64\n  \
    kvmscope lab ovs --seconds 1 --repeats 1 --no-huge --json\n  \
    kvmscope lab ovs --search ndr,pdr --method rfc2544 --vnfs 1 --size 64 --seconds 2 --repeats 1\n  \
    kvmscope lab ovs --path veth --search ndr,pdr --vnfs 1 --size 64\n  \
    kvmscope lab ovs --path veth,bridge,macvtap --messages 64,512,65536 --vnfs 1\n  \
\n\
    Needs root. The switch is private and independent of any switch on this machine. Everything it creates is removed at the end, also on\n\
    Ctrl-C; after kill -9, by `kvmscope undo` and the next `lab ovs`.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding at or above --fail-on,\n\
    130 Ctrl-C.")]
pub(super) struct Ovs {
    /// Route of the packets: through all VNFs in a row, or in and out of each
    #[arg(long, default_value = "chain", value_parser = described(PATTERNS, Traffic::name))]
    pattern: Traffic,
    /// Numbers of VNFs to measure
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_VNFS)))]
    vnfs: Vec<u32>,
    /// Frame sizes to measure, in bytes, FCS included
    #[arg(long, value_name = "BYTES,BYTES", value_delimiter = ',', default_value = "64,1518", value_parser = clap::value_parser!(u32).range(i64::from(*SIZES_BYTES.start())..=i64::from(*SIZES_BYTES.end())))]
    size: Vec<u32>,
    /// Length of each trial's window
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Time to discard at the start of each trial
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60))]
    warm_up: u64,
    /// Number of times to measure everything, alternating
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeats: u32,
    /// Keep packets in ordinary memory, if the machine has no free huge pages
    #[arg(long)]
    no_huge: bool,
    #[command(flatten)]
    paths: PathOptions,
    #[command(flatten)]
    destination: DestinationOptions,
    #[command(flatten)]
    place: JournalPlace,
    #[command(flatten)]
    output: OutputOptions,
}

const PATTERNS: [(Traffic, &str); 2] =
    [(Traffic::Chain, "From one VNF to the next (east-west)"), (Traffic::NorthSouth, "Through one VNF each")];

impl Ovs {
    /// Runs all trials, then reports on the recording.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if !rustix::process::geteuid().is_root() {
            bail!("huge pages, namespaces and a switch need root; run `sudo kvmscope lab ovs`");
        }
        if self.vnfs.is_empty() || self.size.is_empty() {
            bail!(WrongUse("name at least one number of VNFs and one size".to_owned()));
        }
        if self.pattern == Traffic::NorthSouth && self.paths.search().is_some() {
            bail!(WrongUse("bounds are those of a chain: leave out --pattern north-south, or --search".to_owned()));
        }
        self.output.check(1, self.destination.replaces())?;
        let output = self.destination.of("ovs", Utc::of(SystemTime::now()))?;
        let programs = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
        let (places, journal) = (Places { programs, output }, self.place.journal());
        course::run(&self.destination, &self.output, |created, say, stop| {
            match self.paths.settings(&self.vnfs, &self.size, self.repeats) {
                Some(settings) => self.paths.measure(&settings, &places, &journal, created, say, stop),
                None => self.watched(&places, &journal, created, say, stop),
            }
        })
    }

    /// Runs all trials, and shows meanwhile what they count.
    fn watched(
        &self,
        places: &Places,
        journal: &Journal,
        created: String,
        say: &mut dyn FnMut(&str),
        stop: &AtomicBool,
    ) -> Result<Recording, lab::Error> {
        let settings = self.settings();
        let mut wall = Wall::new(
            &places.output,
            &format!("kvmscope lab ovs {}: {settings}", env!("CARGO_PKG_VERSION")),
            created.clone(),
            settings.sampled_every(),
        );
        // What lies there then is the wall, which the whole recording replaces.
        let output = Destination { replace: true, ..places.output.clone() };
        let places = Places { output, ..places.clone() };
        let mut gauges = |before: &DatapathRuns, trial: TrialName, from_ns: u64, sample: &RateSample| {
            wall.show(before, trial, from_ns, sample)
        };
        match ovs::run(&settings, &places, journal, created, say, &mut gauges, stop) {
            Ok(recording) => wall.end().map(|()| recording),
            Err(error) => {
                // Why it ended is said; a directory that cannot be removed is in the way of the next one, which says so.
                let _ = wall.abandon();
                Err(error)
            }
        }
    }

    fn settings(&self) -> Settings {
        let memory = if self.no_huge { Memory::Ordinary } else { Memory::HugePages };
        let [window, warm_up] = [self.seconds, self.warm_up].map(Duration::from_secs);
        let (vnfs, sizes_bytes, repeats) = (self.vnfs.clone(), self.size.clone(), self.repeats);
        let search = self.paths.search().map(|(goals, method)| Search { goals, method });
        Settings { pattern: self.pattern, vnfs, sizes_bytes, window, warm_up, repeats, memory, search }
    }
}
