//! `kvmscope lab migrate`: a live migration of a guest whose working set is known, predicted and measured.

use super::booted::Booted;
use crate::arguments::{DestinationOptions, JournalPlace, OutputOptions};
use crate::plan::quantities::{bandwidth, dirtied, memory, time};
use analysis::facts::budget::{WORKLOAD, Workload};
use analysis::migration::model::hibernation::{self, Hibernated};
use analysis::migration::model::memory::{Memory, PAGE_BYTES, PAGE_MEMORY_BYTES};
use analysis::migration::model::pace::Sender;
use analysis::migration::model::passes::Setting;
use analysis::migration::model::working_set::{Hot, WorkingSet};
use analysis::migration::{Asked, Order, Prediction};
use anyhow::bail;
use base::method::Method;
use clap::{Args, ValueEnum};
use labs::migrate::sector::Work;
use labs::migrate::{self, Measured, Pace, Saved, Settings, Trial, Trials};
use process::exit::{Exit, WrongUse};
use std::path::PathBuf;
use std::time::Duration;

/// Predict a live migration between two QEMUs of this computer, make it, and compare
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope lab migrate\n  \
    kvmscope lab migrate --ram 256M --hot 64M --rate 24000pages/s --bandwidth 200MB/s -o moved\n  \
    kvmscope lab migrate --observe\n  \
    sudo kvmscope lab migrate --network --observe\n  \
    kvmscope lab migrate --method precopy,postcopy,zstd,auto-converge --rate 30000pages/s --repeats 3\n  \
    kvmscope lab migrate --to-file --guests 4\n  \
    kvmscope lab migrate --hot 16M --rate 2000pages/s --order uniform --json\n\n\
    The guest is emulated (TCG): which pages are sent is real, how fast it computes is not. Both QEMUs end with this command, also if\n\
    it is killed. Everything that --network creates is removed at the end, also on Ctrl-C; after kill -9, by `kvmscope undo` or the next lab migrate --network.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding at or above --fail-on,\n\
    130 Ctrl-C.")]
pub(super) struct Migrate {
    /// Memory of the guest; all but its hot pages are zeros
    #[arg(long, value_name = "BYTES", value_parser = memory, default_value = "128M")]
    ram: f64,
    /// Memory that it keeps rewriting
    #[arg(long, value_name = "BYTES", value_parser = memory, default_value = "32M")]
    hot: f64,
    /// Rate at which it dirties that memory
    #[arg(long, value_name = "RATE", value_parser = dirtied, default_value = "8000pages/s")]
    rate: f64,
    /// Order of writes: in order, or anywhere
    #[arg(long, value_name = "ORDER", default_value = "cyclic")]
    order: Written,
    /// QEMU's max-bandwidth
    #[arg(long, value_name = "RATE", value_parser = bandwidth, default_value = "100MB/s")]
    bandwidth: f64,
    /// Rate of the connection without that limit [default: measured first, with guests that write nothing]
    #[arg(long, value_name = "RATE", value_parser = bandwidth)]
    link: Option<f64>,
    /// QEMU's downtime-limit
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "50ms")]
    limit: f64,
    /// Cancel a migration that has not ended by then
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    patience: f64,
    /// Watch the guest's heartbeat from outside, in memory shared with this program; slows the first pass
    #[arg(long)]
    observe: bool,
    /// Measure how long the guest's network is dark: send this many numbered packets per second, which it returns (1000/s by default, or as
    /// many as it answers: most). Needs root; both sides are then in network namespaces, and the guest is moved over TCP
    #[arg(long, value_name = "RATE|most", num_args = 0..=1, default_missing_value = "1000/s", value_parser = packets)]
    network: Option<Pace>,
    /// How its memory is sent, one run per method: precopy, postcopy, multifd, zstd, xbzrle, auto-converge, or mapped-ram through a file
    #[arg(long, value_name = "METHOD,METHOD", value_delimiter = ',', default_value = "precopy", value_parser = method)]
    method: Vec<Method>,
    /// QEMU program for both sides [default: qemu-system-x86_64 in PATH]
    #[arg(long, value_name = "PROGRAM")]
    qemu: Option<PathBuf>,
    /// Save guests to files instead, and wake them
    #[arg(long, conflicts_with_all = ["method", "observe", "network", "repeats", "bandwidth", "link", "limit", "patience"])]
    to_file: bool,
    /// Number of guests, all at the same time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "to_file", value_parser = clap::value_parser!(u32).range(1..=64))]
    guests: u32,
    /// Number of migrations per method, each with a new guest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// Directory for scratch files [default: kvmscope in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    journal: JournalPlace,
    #[command(flatten)]
    destination: DestinationOptions,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Written {
    Cyclic,
    Uniform,
}

/// What the firmware, the heartbeat and the floppy leave of memory that is used and not hot, in pages: some 200 of them were seen not to be
/// zero (QEMU 7.2, q35).
const OTHER_PAGES: f64 = 200.0;

const MIB: f64 = 1_048_576.0;

impl Migrate {
    /// Predicts, migrates, then reports on the recording.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if self.network.is_some() && !rustix::process::geteuid().is_root() {
            bail!(
                "--network makes network namespaces and taps, which needs root; run `sudo kvmscope lab migrate --network`"
            );
        }
        let (asked, settings) = (self.asked()?, self.settings()?);
        let booted = Booted {
            name: "migrate",
            cache: self.cache.as_deref(),
            destination: &self.destination,
            output: &self.output,
        };
        if self.to_file {
            let saved = self.saved(&asked.setting.memory, settings);
            let predict = |measured: Measured| {
                let asked = self.hibernation(asked.setting.memory, measured);
                Hibernated::of(&asked).kept(&asked)
            };
            return booted
                .run(|places, created, say, stop| migrate::hibernate(&saved, &predict, places, created, say, stop));
        }
        let predict = |tried: Option<Trials>| {
            let asked = tried.map_or_else(|| asked.clone(), |tried| after(&asked, &tried));
            let mut said = Prediction::of(&asked).kept(&asked);
            said.given.insert(WORKLOAD.to_owned(), Workload::Memory.name().to_owned());
            said
        };
        let journal = self.journal.journal();
        booted.run(|places, created, say, stop| migrate::run(&settings, &predict, places, &journal, created, say, stop))
    }

    fn saved(&self, memory: &Memory, settings: Settings) -> Saved {
        Saved { settings, guests: self.guests, expected_bytes: memory.sent_bytes() as u64, is_disk_full: false }
    }

    fn hibernation(&self, memory: Memory, Measured { disk, start }: Measured) -> hibernation::Asked {
        let slowest_ns = disk.slowest_read_ns.max(1);
        hibernation::Asked {
            memory,
            guests: self.guests,
            write_bytes_per_s: disk.write_bytes_per_s(),
            read_bytes_per_s: disk.read_bytes_per_s(),
            slowest_read_bytes_per_s: disk.bytes as f64 / (slowest_ns as f64 / 1e9),
            start_s: start.as_secs_f64(),
            cpus: cpus(),
        }
    }

    /// Memory as QEMU gives it to a guest.
    fn whole_mebibytes(&self) -> f64 {
        (self.ram / MIB).floor() * MIB
    }

    fn hot(&self) -> Hot {
        Hot { pages: (self.hot / PAGE_MEMORY_BYTES).floor(), pages_per_s: self.rate / PAGE_MEMORY_BYTES }
    }

    fn asked(&self) -> anyhow::Result<Asked> {
        let (hot, pages) = (self.hot(), self.whole_mebibytes() / PAGE_MEMORY_BYTES);
        // The hot pages begin at 2 MiB.
        if hot.pages + 512.0 > pages {
            bail!(WrongUse("--ram must have at least 2M more than --hot".to_owned()));
        }
        if self.ram > f64::from(u32::MAX) / 2.0 {
            bail!(WrongUse("the lab's guest has at most 2047M of --ram".to_owned()));
        }
        let memory = Memory { pages, zero_share: 1.0 - (hot.pages + OTHER_PAGES).min(pages) / pages };
        let working_set = match self.order {
            Written::Cyclic => WorkingSet::Cyclic(hot),
            Written::Uniform => WorkingSet::Uniform(hot),
        };
        let setting = Setting {
            memory,
            working_set,
            bytes_per_s: self.link.unwrap_or(self.bandwidth).min(self.bandwidth),
            limit_s: self.limit,
            throttle: 0.0,
        };
        Ok(Asked {
            setting,
            order: Order::Unknown,
            link_bytes_per_s: self.link.unwrap_or(self.bandwidth),
            senders: self.link.map(Sender::of_link).into_iter().collect(),
            devices_s: [0.0; 2],
            setup_s: 0.0,
            scan_bytes_per_s: None,
        })
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        if self.observe && self.method.contains(&Method::Postcopy) {
            bail!(WrongUse("post-copy does not take memory in files, which --observe needs".to_owned()));
        }
        let hot = self.hot();
        let Some(tsc_hz) = lab::clocks::tsc_hz() else {
            bail!("this computer has no time-stamp counter to pace the guest by")
        };
        let ticks = tsc_hz / hot.pages_per_s;
        if !(1.0..=f64::from(u32::MAX)).contains(&ticks) {
            bail!(WrongUse("the guest can write from 1 page per second to 1 page per tick of its counter".to_owned()));
        }
        Ok(Settings {
            memory_bytes: self.whole_mebibytes() as u64,
            work: Work { pages: hot.pages as u32, ticks: ticks as u32, anywhere: self.order == Written::Uniform },
            period: Duration::from_secs_f64(1.0 / hot.pages_per_s),
            bandwidth_bytes_per_s: self.bandwidth as u64,
            limit: Duration::from_secs_f64(self.limit),
            patience: Duration::from_secs_f64(self.patience),
            is_observed: self.observe,
            packets: self.network,
            methods: self.method.clone(),
            injection: None,
            repeats: self.repeats,
            qemu: self.qemu.clone(),
            link_bytes_per_s: self.link.map(|link| link as u64),
        })
    }
}

/// What is asked once it is known how fast QEMU sends here.
fn after(asked: &Asked, tried: &Trials) -> Asked {
    let running_s = |trials: &[Trial]| trials.iter().map(|one| one.running.as_secs_f64()).collect::<Vec<_>>();
    let setup_s: Vec<f64> = tried.empty.iter().map(|one| one.setup.as_secs_f64()).collect();
    let [empty_s, filled_s] = [&tried.empty, &tried.filled].map(|trials| running_s(trials));
    let senders = Sender::tried(&setup_s, &empty_s, &filled_s, tried.filled_pages.into());
    let dark_s = || tried.empty.iter().chain(&tried.filled).map(|one| one.dark.as_secs_f64());
    let link = senders.get(senders.len() / 2).map_or(asked.link_bytes_per_s, |one| PAGE_BYTES / one.page_s);
    let bytes_per_s = asked.setting.bytes_per_s.min(link);
    Asked {
        setting: Setting { bytes_per_s, ..asked.setting.clone() },
        link_bytes_per_s: link,
        senders,
        devices_s: [dark_s().fold(f64::INFINITY, f64::min), dark_s().fold(0.0, f64::max)],
        ..asked.clone()
    }
}

fn method(text: &str) -> Result<Method, String> {
    let names = || Method::ALL.map(Method::name).join(", ");
    Method::named(text).ok_or_else(|| format!("the methods are {}", names()))
}

/// `1000/s`, `2kHz`, `most`.
fn packets(text: &str) -> Result<Pace, String> {
    if text == "most" {
        return Ok(Pace::Most);
    }
    let (number, unit) = match text.strip_suffix("kHz") {
        Some(number) => (number, 1e3),
        None => (text.strip_suffix("Hz").or_else(|| text.strip_suffix("/s")).unwrap_or(text), 1.0),
    };
    let rate = number.parse::<f64>().ok().map(|number| number * unit);
    let rate = rate.filter(|rate| (LEAST_PACKETS..=MOST_PACKETS).contains(rate));
    let pace = rate.map(|rate| Pace::Every(Duration::from_secs_f64(1.0 / rate)));
    pace.ok_or_else(|| "packets go at 10/s to 10kHz, or `most`: at what the guest answers".to_owned())
}

/// With fewer in a second nothing is known better than to a tenth of one.
const LEAST_PACKETS: f64 = 10.0;
/// More than that an emulated guest does not answer.
const MOST_PACKETS: f64 = 10_000.0;

/// CPUs that this program, and so its QEMUs, may use.
fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX))
}
