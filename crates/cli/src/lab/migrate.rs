//! `kvmscope lab migrate`: a live migration of a guest whose working set is known, predicted and measured.

use super::booted::Booted;
use crate::arguments::{DestinationOptions, OutputOptions};
use crate::exit::{Exit, WrongUse};
use crate::plan::quantities::{bandwidth, dirtied, memory, time};
use analysis::facts::budget::{WORKLOAD, Workload};
use analysis::migration::model::memory::{Memory, PAGE_MEMORY_BYTES};
use analysis::migration::model::passes::Setting;
use analysis::migration::model::working_set::{Hot, WorkingSet};
use analysis::migration::{Asked, Order, Prediction};
use anyhow::bail;
use clap::{Args, ValueEnum};
use lab::migrate::sector::Work;
use lab::migrate::{self, Settings};
use std::path::PathBuf;
use std::time::Duration;

/// Predict a live migration between two QEMUs of this computer, make it, and compare
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope lab migrate\n  \
    kvmscope lab migrate --ram 256M --hot 64M --rate 24000pages/s --bandwidth 200MB/s -o moved\n  \
    kvmscope lab migrate --observe\n  \
    kvmscope lab migrate --hot 16M --rate 2000pages/s --order uniform --json\n\n\
    The guest is emulated (TCG): which pages are sent is real, how fast it computes is not. Both QEMUs end with this command, also if\n\
    it is killed.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding of at least the severity of --fail-on,\n\
    130 Ctrl-C.")]
pub struct Migrate {
    /// Memory of the guest; all but its hot pages are zeros
    #[arg(long, value_name = "BYTES", value_parser = memory, default_value = "128M")]
    ram: f64,
    /// Memory that it writes to again and again
    #[arg(long, value_name = "BYTES", value_parser = memory, default_value = "32M")]
    hot: f64,
    /// What it dirties of that in a second
    #[arg(long, value_name = "RATE", value_parser = dirtied, default_value = "8000pages/s")]
    rate: f64,
    /// How it writes: in order, or anywhere
    #[arg(long, value_name = "ORDER", default_value = "cyclic")]
    order: Written,
    /// QEMU's max-bandwidth
    #[arg(long, value_name = "RATE", value_parser = bandwidth, default_value = "100MB/s")]
    bandwidth: f64,
    /// QEMU's downtime-limit
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "50ms")]
    limit: f64,
    /// Cancel a migration that has not ended by then
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    patience: f64,
    /// Watch the guest's heartbeat from outside, in memory that both sides share with this program; the first pass is slower for it
    #[arg(long)]
    observe: bool,
    /// How often it is migrated, each time anew
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// Where what it needs meanwhile lies [default: kvmscope in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
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

impl Migrate {
    /// Predicts, migrates, then reports on the recording.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let (asked, settings) = (self.asked()?, self.settings()?);
        let mut said = Prediction::of(&asked).kept(&asked);
        said.given.insert(WORKLOAD.to_owned(), Workload::Memory.name().to_owned());
        let booted = Booted {
            name: "migrate",
            cache: self.cache.as_deref(),
            destination: &self.destination,
            output: &self.output,
        };
        booted.run(|places, created, say, stop| migrate::run(&settings, &said, places, created, say, stop))
    }

    fn hot(&self) -> Hot {
        Hot { pages: (self.hot / PAGE_MEMORY_BYTES).floor(), pages_per_s: self.rate / PAGE_MEMORY_BYTES }
    }

    fn asked(&self) -> anyhow::Result<Asked> {
        let (hot, pages) = (self.hot(), self.ram / PAGE_MEMORY_BYTES);
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
        let setting = Setting { memory, working_set, bytes_per_s: self.bandwidth, limit_s: self.limit, throttle: 0.0 };
        Ok(Asked { setting, order: Order::Unknown, link_bytes_per_s: self.bandwidth, devices_s: 0.0, setup_s: 0.0 })
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let hot = self.hot();
        let Some(tsc_hz) = lab::clocks::tsc_hz() else {
            bail!("this computer has no time-stamp counter to pace the guest by")
        };
        let ticks = tsc_hz / hot.pages_per_s;
        if !(1.0..=f64::from(u32::MAX)).contains(&ticks) {
            bail!(WrongUse("the guest writes between 1 page a second and one each tick of its counter".to_owned()));
        }
        Ok(Settings {
            memory_bytes: self.ram as u64,
            work: Work { pages: hot.pages as u32, ticks: ticks as u32, anywhere: self.order == Written::Uniform },
            period: Duration::from_secs_f64(1.0 / hot.pages_per_s),
            bandwidth_bytes_per_s: self.bandwidth as u64,
            limit: Duration::from_secs_f64(self.limit),
            patience: Duration::from_secs_f64(self.patience),
            is_observed: self.observe,
            repeats: self.repeats,
        })
    }
}
