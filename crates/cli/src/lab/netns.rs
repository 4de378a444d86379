//! `kvmscope lab netns`: starve a forwarder on purpose, find who did it, move it, and measure both.

use super::course::unless_stopped;
use crate::arguments::{Answered, DestinationOptions, JournalPlace, OutputOptions, described};
use crate::experiments::starve::{Bench, STATES, Setup, StarveExperiment, in_state};
use analysis::contention::Trial;
use analysis::{About, Answers, Case, Given};
use anyhow::{anyhow, bail};
use base::CpuSet;
use base::recording::Recording;
use base::utc::Utc;
use clap::Args;
use lab::setting::thread;
use labs::machine::default_cache;
use labs::netns::own::{self, End, Traffic};
use labs::netns::{self, Forwarder, LoadKind, Places, Settings};
use process::exit::{Exit, WrongUse, complain};
use process::interrupt::Interrupt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Starve a packet forwarder on purpose, find the cause, move the thread, and measure before and after
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope lab netns\n  \
    kvmscope lab netns --forwarder kernel --repeats 10\n  \
    kvmscope lab netns --forwarder tap --load iperf3 --streams 64\n  \
    kvmscope lab netns --seconds 1 --repeats 3 -o bench --json\n  \
    kvmscope lab netns --dev1 em1 --ip1 10.1.72.62/16 --gw1 10.1.72.1 \\\n    \
    --dev2 em2 --ip2 10.2.72.62/16 --gw2 10.2.72.1\n\n\
    Needs root. Everything it creates is removed at the end, also on Ctrl-C; after kill -9, by `kvmscope undo`.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding at or above --fail-on,\n\
    130 Ctrl-C.")]
pub(super) struct Netns {
    /// Forwarder between the two ends
    #[arg(long, value_parser = described(FORWARDERS, Forwarder::name), default_value = "vhost")]
    forwarder: Forwarder,
    /// Sender: this program, or this host's iperf3
    #[arg(long, value_parser = described(LOADS, LoadKind::name), default_value = "own")]
    load: LoadKind,
    /// Length of each run
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Number of runs before, and as many after the move, alternating
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeats: u32,
    /// TCP connections
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    streams: u32,
    /// Busy threads on the forwarder's CPU (the fault)
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=64))]
    busy: u32,
    /// Your own NIC as the client end; it is moved into a namespace and back
    #[arg(long, value_name = "NIC", requires_all = ["gw1", "ip1", "dev2", "gw2", "ip2"])]
    dev1: Option<String>,
    /// The client's address and network
    #[arg(long, value_name = "ADDRESS/BITS", requires = "dev1")]
    ip1: Option<String>,
    /// The client's gateway
    #[arg(long, value_name = "ADDRESS", requires = "dev1")]
    gw1: Option<String>,
    /// Your own NIC as the server end
    #[arg(long, value_name = "NIC", requires = "dev1")]
    dev2: Option<String>,
    /// The server's address and network
    #[arg(long, value_name = "ADDRESS/BITS", requires = "dev1")]
    ip2: Option<String>,
    /// The server's gateway
    #[arg(long, value_name = "ADDRESS", requires = "dev1")]
    gw2: Option<String>,
    #[command(flatten)]
    destination: DestinationOptions,
    /// With --forwarder tap: cache directory for the guest's kernel [default: kvmscope in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    place: JournalPlace,
    #[command(flatten)]
    output: OutputOptions,
}

const FORWARDERS: [(Forwarder, &str); 4] = [
    (Forwarder::Vhost, "Threads named vhost-PID, which work like vhost workers"),
    (Forwarder::Kernel, "The kernel routes, in NAPI threads"),
    (Forwarder::Bridge, "A bridge of the kernel, in NAPI threads"),
    (Forwarder::Tap, "A QEMU guest (TCG) between two taps routes, in QEMU's threads"),
];

const LOADS: [(LoadKind, &str); 2] = [
    (LoadKind::Own, "Threads of this program, which keep sending between runs"),
    (LoadKind::Iperf3, "One server, and a new client for each run"),
];

impl Netns {
    /// Runs the experiment.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if !rustix::process::geteuid().is_root() {
            bail!("namespaces, packet sockets and pins need root; run `sudo kvmscope lab netns`");
        }
        let online = thread::affinity(thread::own())?;
        let cpus: Vec<u32> = online.iter().collect();
        self.output.check(1, self.destination.replaces())?;
        let interrupt = Interrupt::watch()?;
        let stop = interrupt.hold();
        self.destination.unpacked()?;
        let destination = self.destination.unchecked("netns", Utc::of(SystemTime::now()))?;
        STATES.iter().try_for_each(|state| in_state(&destination, state).check())?;
        let output = &destination.path;
        let journal = self.place.journal();
        let entry = journal.begin("netns")?;
        let began = Instant::now();
        let say = |line: &str| {
            // If stderr is closed nobody wants to know.
            let _ = writeln!(std::io::stderr(), "lab: {:3} s  {line}", began.elapsed().as_secs());
        };
        let proc = Path::new("/proc");
        let setup = Setup {
            root: Path::new("/"),
            journal: &journal,
            seconds: Duration::from_secs(self.seconds),
            repeats: self.repeats,
            stop: &stop,
            say: &say,
            output: &destination,
            online,
        };
        let load_cpus = load_cpus(&cpus);
        let (testbed, what) = match self.own()? {
            Some(ends) => {
                say("moving the NICs into namespaces");
                let traffic = Traffic { kind: self.load, streams: self.streams as usize, cpus: load_cpus };
                let what = format!("{} TCP streams through your own path, {}", self.streams, sender(self.load));
                (own::start(&ends, &traffic, entry, proc)?, what)
            }
            None => {
                let guest = if self.forwarder == Forwarder::Tap { ", booting the guest" } else { "" };
                say(&format!("making namespaces, forwarder and load{guest}"));
                let begun = netns::start(&self.settings(cpus[0], load_cpus)?, entry, proc, &stop);
                let Some(testbed) = unless_stopped(begun, &stop)? else { return Ok(Exit::Interrupted) };
                let through = format!("{} TCP streams through {}", self.streams, carrier(self.forwarder));
                (testbed, format!("{through}, {}; {} busy threads", sender(self.load), self.busy))
            }
        };
        let bench = Bench { load: &testbed.load, forwarders: &testbed.forwarders, what: &what };
        let answered = StarveExperiment::new(&setup, &bench).answer();
        let (answered, put_back) = (or_trouble(answered, testbed.trouble()), testbed.end());
        match answered? {
            None => {
                // What was recorded is not whole and already gone; what stays is an empty directory.
                let _ = std::fs::remove_dir(output);
                put_back?;
                Ok(Exit::Interrupted)
            }
            Some(trial) => {
                let recording = Recording::open(&output.join("before"))?;
                let given = Given::query(trial);
                let case = Case::new(analysis::open(recording)?, given);
                let Answers { sections, problems, failed } = Answers::about(&case, &[About::Trial]);
                failed.into_iter().for_each(|error| complain(&error.into()));
                let answered = Answered::of(case.input().recording.clone(), sections, problems);
                let exit = self.output.end("lab", &[answered], &interrupt)?;
                put_back?;
                Ok(exit)
            }
        }
    }

    fn settings(&self, fault_cpu: u32, load_cpus: CpuSet) -> anyhow::Result<Settings> {
        let cache = self.cache.clone().or_else(|| default_cache(|name| std::env::var_os(name)));
        let places = Places { program: std::env::current_exe()?, cache };
        let (streams, busy) = (self.streams as usize, self.busy as usize);
        Ok(Settings { forwarder: self.forwarder, load: self.load, streams, busy, fault_cpu, load_cpus, places })
    }

    fn own(&self) -> anyhow::Result<Option<[End; 2]>> {
        let end = |device: &Option<String>, address: &Option<String>, gateway: &Option<String>| {
            let (device, address, gateway) = (device.clone()?, address.clone()?, gateway.clone()?);
            Some(End { device, address, gateway })
        };
        let ends = (end(&self.dev1, &self.ip1, &self.gw1), end(&self.dev2, &self.ip2, &self.gw2));
        match ends {
            (Some(client), Some(server)) if client.device == server.device => {
                Err(WrongUse("--dev1 and --dev2 must be two NICs".to_owned()).into())
            }
            (Some(client), Some(server)) => Ok(Some([client, server])),
            _ => Ok(None),
        }
    }
}

/// The answer, or why a thread of the bench could not go on.
fn or_trouble(answered: anyhow::Result<Option<Trial>>, trouble: Option<String>) -> anyhow::Result<Option<Trial>> {
    match trouble {
        Some(trouble) => answered.and_then(|_| Err(anyhow!("{trouble}"))),
        None => answered,
    }
}

fn sender(load: LoadKind) -> &'static str {
    match load {
        LoadKind::Own => "sent by this program",
        LoadKind::Iperf3 => "sent by iperf3",
    }
}

fn carrier(forwarder: Forwarder) -> &'static str {
    match forwarder {
        Forwarder::Vhost => "threads vhost-PID, frames of up to 64 KB (segmentation offload is on)",
        Forwarder::Kernel => "the kernel's routing in NAPI threads, frames of 1.5 KB (offloads are off at the ends)",
        Forwarder::Bridge => "a bridge in NAPI threads, frames of 1.5 KB (offloads are off at the ends)",
        Forwarder::Tap => "a guest that routes, emulated by QEMU (TCG), virtio-net on taps without vhost",
    }
}

/// The load's CPUs: beside the forwarder's, and not all the others, so that one is free to move to.
fn load_cpus(cpus: &[u32]) -> CpuSet {
    match cpus {
        [_, one, _] | [_, one] => CpuSet::from_iter([*one]),
        [_, one, two, _, ..] => CpuSet::from_iter([*one, *two]),
        few => CpuSet::from_iter(few.iter().copied()),
    }
}
