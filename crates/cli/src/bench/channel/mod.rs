//! `kvmscope bench channel`: what a ring in shared memory carries between two processes, what its windows cost, what disturbed it, and what
//! DPDK's own paths carry beside it.

mod live;
mod plan;
mod run;

use super::place::PlaceOptions;
use crate::arguments::{JournalPlace, length};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

/// Measure how many frames per second two processes exchange through shared memory, and what protecting it costs
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope bench channel\n  \
    kvmscope bench channel --window none,pkey --batch 1,8,32,64 --size 64,1518 -o channel\n  \
    kvmscope bench channel --path ring,ring-ro --policy poll,kick,adaptive --batch 32\n  \
    sudo kvmscope bench channel --path ring,memif,vhost-user,rte-ring --window none --batch 8,32,64\n  \
    kvmscope bench channel --path ivshmem-plain,ivshmem-doorbell --window none --policy poll,kick --launches 1\n  \
    kvmscope bench channel --window model:vmfunc=196 --batch 1,8,32,64 --only rates\n  \
    kvmscope bench channel --cpus 2,3 --fifo --seconds 3 --launches 7\n  \
    kvmscope bench channel --only delays --rate 1,5,10 --batch 1,32\n  \
    kvmscope bench channel --only rates --vms 2,4,8 --path ring,switch --window none\n  \
    kvmscope bench channel --only flows,faults --changes 20000\n  \
    kvmscope bench channel --json | jq '.sections[].tables.rates'\n\n\
    Rings of our own need no root; with root, a trace of the two CPUs names who took them. memif, vhost-user and rte-ring run DPDK's\n\
    programs (Debian package dpdk-dev) with huge pages: they poll, have no windows, and their frames are not verified. rte-ring moves\n\
    pointers of 8 bytes and copies no frame, in batches of 8 and 32. After kill -9, `kvmscope undo` returns the huge pages.\n\
    Two processes keep two CPUs busy for launches x setups x seconds. Each frame has a number and a checksum, which the receiver\n\
    verifies. Rates are raw, over all of the time, and clean, without the time in which either process did not run.\n\
    Beside rates, the first launch measures: delays of setups without a window, a fifth of --seconds for each rate; a flow\n\
    table for twice --seconds; twelve rules that a hostile peer breaks.\n\
    Paths of ivshmem boot two emulated guests in each launch, from Debian's kernel and this program; without qemu-system-x86 or a\n\
    kernel they are left out, with the reason.\n\
    Exit status: 0 answered, 1 nothing could be measured, 2 wrong usage, 3 a finding at or above --fail-on.\n\
    With --json and without -o, no recording is kept.")]
pub(super) struct Channel {
    /// What to measure [default: all]
    #[arg(long, value_name = "PART", value_delimiter = ',', default_value = "rates,delays,flows,faults", hide_default_value = true,
          value_parser = PossibleValuesParser::new(["rates", "delays", "flows", "faults"]))]
    only: Vec<String>,
    /// Paths: one region that both sides write, a half for each side that the other can only read, a switch between all machines; one of
    /// DPDK's (root); the ring between two emulated guests through a device's memory, without interrupts or with them
    #[arg(long, value_name = "PATH", value_delimiter = ',', default_value = "ring",
          value_parser = PossibleValuesParser::new(
              ["ring", "ring-ro", "switch", "memif", "vhost-user", "rte-ring", "ivshmem-plain", "ivshmem-doorbell"]))]
    path: Vec<String>,
    /// Number of machines: with two over a ring, one sends and one receives; with more, or a switch, each sends to all others, without a
    /// window
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2", value_parser = clap::value_parser!(u32).range(2..=8))]
    vms: Vec<u32>,
    /// Rates at which to measure delays, in millions of frames per second [default: 10, 50 and 90 % of the clean rate, and the highest without loss]
    #[arg(long, value_name = "MPPS", value_delimiter = ',', value_parser = mpps)]
    rate: Vec<f64>,
    /// Changes of the flow table per second
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    changes: u64,
    /// When a process can access the ring: always, or for one batch, by a memory protection key or mprotect; `model:NAME=NS` models a
    /// window that costs NS ns per batch, on the rates without one
    #[arg(long, value_name = "WINDOW", value_delimiter = ',', default_value = "none,pkey,mprotect", value_parser = window)]
    window: Vec<Window>,
    /// Frames per batch
    #[arg(long, value_name = "FRAMES", value_delimiter = ',', default_value = "1,8,32,64",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: Vec<u32>,
    /// Bytes of a frame
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "64",
          value_parser = clap::value_parser!(u32).range(16..=9216))]
    size: Vec<u32>,
    /// What a side does while it waits: poll, sleep until it is kicked, or poll for 50 us and then sleep
    #[arg(long, value_name = "POLICY", value_delimiter = ',', default_value = "poll",
          value_parser = PossibleValuesParser::new(["poll", "kick", "adaptive"]))]
    policy: Vec<String>,
    /// Slots of the ring, a power of two
    #[arg(long, value_name = "N", default_value = "1024", value_parser = slots)]
    slots: u32,
    /// Where lengths are stored: in the slots, in a separate array, or wherever fewer bytes move between the CPUs
    #[arg(long, value_name = "WHERE", default_value = "fewest",
          value_parser = PossibleValuesParser::new(["fewest", "in-slot", "apart"]))]
    lengths: String,
    /// Do not verify numbers and checksums of received frames; the rates are marked as unverified
    #[arg(long)]
    no_verify: bool,
    /// Seconds of each setup in each launch
    #[arg(long, value_name = "SECONDS", value_parser = length, default_value = "0.5")]
    seconds: u64,
    /// Number of times to measure all setups, in random order; rates come with their range
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: u32,
    /// Sending CPU and receiving CPU, then those of further machines [default: the last two available ones that share no core, or no
    /// CPU; further machines have the others]
    #[arg(long, value_name = "CPU,CPU", value_delimiter = ',', num_args = 1)]
    cpus: Vec<u32>,
    /// Allow measuring on one CPU or one core, or more machines than CPUs: they then take turns
    #[arg(long)]
    same_core: bool,
    /// Measure with SCHED_FIFO, which ordinary threads cannot preempt (root)
    #[arg(long)]
    fifo: bool,
    /// Do not trace the two CPUs (root): gaps then have no culprits
    #[arg(long)]
    no_record: bool,
    #[command(flatten)]
    journal: JournalPlace,
    /// With ivshmem: cache directory for the guests' kernel [default: kvmscope in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceOptions,
}

/// A window of [`Channel::window`].
#[derive(Clone)]
enum Window {
    Measured(String),
    Modelled { name: String, ns: f64 },
}

fn window(text: &str) -> Result<Window, String> {
    const MEASURED: [&str; 3] = ["none", "pkey", "mprotect"];
    if MEASURED.contains(&text) {
        return Ok(Window::Measured(text.to_owned()));
    }
    let modelled = text.strip_prefix("model:").and_then(|text| text.split_once('='));
    let is_name = |name: &str| {
        (1..=32).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-_".contains(&byte))
    };
    let modelled = modelled.filter(|(name, _)| is_name(name) && !MEASURED.contains(name)).and_then(|(name, ns)| {
        let ns = ns.parse().ok().filter(|ns: &f64| *ns > 0.0 && *ns <= 1e9)?;
        Some(Window::Modelled { name: name.to_owned(), ns })
    });
    modelled.ok_or_else(|| "none, pkey, mprotect or model:NAME=NS is needed, such as model:vmfunc=196".to_owned())
}

fn slots(text: &str) -> Result<u32, String> {
    let slots: u32 = text.parse().map_err(|_| "a number is needed".to_owned())?;
    let fits = slots.is_power_of_two() && (2..=1 << 16).contains(&slots);
    if fits { Ok(slots) } else { Err("a power of two from 2 to 65536 is needed".to_owned()) }
}

fn mpps(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "a number is needed".to_owned())?;
    let can_be = (0.0001..=1_000.0).contains(&rate);
    if can_be { Ok(rate) } else { Err("millions of frames per second from 0.0001 to 1000 are needed".to_owned()) }
}
