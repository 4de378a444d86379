//! `kvmscope agent`: the time of every vCPU as metrics, all day, and a short recording every so often.
//!
//! Only the full program has it, as it listens; the slim one takes the same arguments and says how to get it.

use crate::arguments::{JournalPlace, duration, kept, length};
use crate::completed::budgets;
use clap::{Args, ValueHint};
use process::exit::Exit;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Observe all vCPUs, record every few minutes, and serve metrics
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope agent /var/lib/kvmscope\n  \
    kvmscope agent /var/lib/kvmscope --every 10min --seconds 5 --share 0.5%\n  \
    kvmscope agent /var/lib/kvmscope --keep 100 --size 2G --dataset /srv/fleet\n  \
    kvmscope agent /var/lib/kvmscope --socket /run/kvmscope/metrics.sock\n  \
    kvmscope agent /var/lib/kvmscope --flight 30s --stop-on kvm4nfv-2015\n  \
    kvmscope agent . --rounds 1\n\n\
    Needs root. http://127.0.0.1:9476/metrics serves OpenMetrics: of each vCPU its time by state since the agent began, CPU Ready and who\n\
    took it, exits by reason with their cost; of recordings exits by level, findings, lost events; and the cost of the agent itself. Where\n\
    the kernel does not allow to observe exactly, CPU Ready is all there is between recordings. If a recording costs more than --share\n\
    allows, the next one is delayed. The cost of the tracepoints in the traced threads, and of --flight, is not part of that share.\n\
    SIGTERM and Ctrl-C end it after the current recording. Exit status: 0 ended, 1 it could not start, 2 wrong usage.")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "the slim program only parses them"))]
pub(crate) struct Agent {
    /// Directory of the recordings; it is created if needed
    #[arg(id = "recordings", value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,
    /// Minimum time from the start of one recording to the start of the next
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5min")]
    every: Duration,
    /// Seconds of each recording
    #[arg(long, value_name = "SECONDS", value_parser = length, default_value = "5")]
    seconds: u64,
    /// Maximum share of one CPU, on average, that recording and counting may take
    #[arg(long, value_name = "PERCENT", value_parser = share, default_value = "1%")]
    share: f64,
    /// Number of most recent recordings to keep, and as many of --flight
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Maximum size of all recordings together, and of those of --flight
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1G")]
    size: u64,
    /// Loopback address on which to serve /metrics; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9476", conflicts_with = "socket")]
    listen: SocketAddr,
    /// Unix socket on which to serve /metrics instead
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    socket: Option<PathBuf>,
    /// Add each recording to this data set, as kvmscope export --dataset does
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dataset: Option<PathBuf>,
    /// Stop after this many recordings
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Also keep the last TIME of events; SIGUSR1, or a line written into DIR/trigger, saves them
    #[arg(long, value_name = "TIME", value_parser = kept)]
    flight: Option<Duration>,
    /// Save them when a vCPU breaks this budget: kvm4nfv-2015, kvm4nfv-future, or a file (docs/read/latency.md)
    #[arg(long, value_name = "NAME|FILE", add = budgets(), requires = "flight")]
    stop_on: Option<PathBuf>,
    #[command(flatten)]
    place: JournalPlace,
}

impl Agent {
    /// Says that this program has no agent.
    #[cfg(not(feature = "full"))]
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        anyhow::bail!("this is the slim build, without the agent; `make full` builds the full one")
    }

    /// Observes, records and counts until a signal ends it.
    #[cfg(feature = "full")]
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let listen = self.socket.clone().map_or(agent::Listen::Address(self.listen), agent::Listen::Socket);
        // One that cannot be read is said now, not by each flight.
        self.stop_on.as_deref().map(crate::arguments::read_budget_text).transpose()?;
        let stop_on = self.stop_on.as_ref().map(|budget| budget.as_os_str().to_owned());
        let plan = agent::Plan {
            directory: self.directory.clone(),
            every: self.every,
            length_ns: self.seconds,
            share: self.share,
            keep: self.keep as usize,
            keep_bytes: self.size,
            dataset: self.dataset.clone(),
            rounds: self.rounds,
            journal: self.place.directory().as_os_str().to_owned(),
            listen,
            flight: self.flight.map(|keep| agent::LastSeconds { keep, stop_on }),
        };
        agent::run(&plan, std::path::Path::new("/"))?;
        Ok(Exit::Answered)
    }
}

/// `1%`, `0.5 %`: more than none, and no more than one CPU.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').ok_or_else(|| "write a share of a CPU such as 1% or 0.5%".to_owned())?;
    let percent: f64 = number.trim().parse().map_err(|_| "write a share of a CPU such as 1% or 0.5%".to_owned())?;
    if percent > 0.0 && percent <= 100.0 {
        Ok(percent / 100.0)
    } else {
        Err("use more than 0% and at most 100%".to_owned())
    }
}

fn size(text: &str) -> Result<u64, String> {
    const BYTES_PER_KIB: u64 = 1 << 10;
    let bytes = lab::tracefs::buffer_kib(text).and_then(|kib| kib.checked_mul(BYTES_PER_KIB));
    bytes.ok_or_else(|| "write a size such as 500M or 2G".to_owned())
}
