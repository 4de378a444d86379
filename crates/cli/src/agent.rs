//! `kvmscope agent`: a short recording every so often, at a bounded cost, and what all of them counted.
//!
//! ```text
//! record (a child) --> recording --count--> metrics --> /metrics
//!    ^                    |  '--export (a child)--> data set
//!    |                    '--keep--> the last N, below a size
//!    '--- wait: as long as it takes for the cost to be below the share that was asked for
//! ```
//! Only the full program has it, as it listens; the slim one takes the same arguments and says how to get it.

#[cfg(feature = "full")]
mod cost;
#[cfg(feature = "full")]
mod keep;
#[cfg(feature = "full")]
mod metrics;
#[cfg(feature = "full")]
mod round;

use crate::arguments::{JournalPlace, duration, length};
use clap::{Args, ValueHint};
use process::exit::Exit;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Record a few seconds every few minutes, and serve metrics
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope agent /var/lib/kvmscope\n  \
    kvmscope agent /var/lib/kvmscope --every 10min --seconds 5 --share 0.5%\n  \
    kvmscope agent /var/lib/kvmscope --keep 100 --size 2G --dataset /srv/fleet\n  \
    kvmscope agent /var/lib/kvmscope --socket /run/kvmscope/metrics.sock\n  \
    kvmscope agent . --rounds 1\n\n\
    Needs root. http://127.0.0.1:9476/metrics serves OpenMetrics: exits by level and reason, the time of vCPUs by state, what the host\n\
    took from them, lost events, findings of the last recording, and the cost of the agent itself. If a recording costs more than --share\n\
    allows, the next one is delayed. The cost of the tracepoints in the traced threads is not part of that share.\n\
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
    /// Number of most recent recordings to keep
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Maximum size of all recordings together
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
    #[command(flatten)]
    place: JournalPlace,
}

impl Agent {
    /// Says that this program has no agent.
    #[cfg(not(feature = "full"))]
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        anyhow::bail!("this is the slim build, without the agent; `make full` builds the full one")
    }

    /// Records and counts until a signal ends it.
    #[cfg(feature = "full")]
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        use ::serve::{Exposition, Listen};
        use anyhow::{Context, bail};
        use process::interrupt::{Interrupt, rest};
        use std::time::{Instant, SystemTime};

        if !rustix::process::geteuid().is_root() {
            bail!("recording needs root; run `sudo kvmscope agent {}`", self.directory.display());
        }
        std::fs::create_dir_all(&self.directory).with_context(|| self.directory.display().to_string())?;
        let listen = self.socket.clone().map_or(Listen::Address(self.listen), Listen::Socket);
        let exposition = Exposition::start(&listen)?;
        let interrupt = Interrupt::watch()?;
        let stop = interrupt.hold();
        let keep = keep::Keep { directory: self.directory.clone(), most: self.keep as usize, most_bytes: self.size };
        let mut pace = cost::Pace::new(self.every, self.share);
        let mut cost = cost::Cost::of_this("/proc".into())?;
        let mut metrics = metrics::Metrics::default();
        let mut round = round::Round::new(self.seconds, &keep, self.dataset.as_deref(), &self.place)?;
        say(&format!(
            "recording {} every {}; metrics: {}",
            seconds(self.seconds),
            words(self.every),
            exposition.place()
        ));
        for number in 1_u32.. {
            let began = Instant::now();
            let mut made = None;
            if let Some(ahead) = keep.ahead(SystemTime::now()).first().filter(|_| number == 1) {
                say(&format!(
                    "{} is dated in the future: the clock was set back; it is treated as the oldest recording",
                    base::shell::printable(&ahead.display().to_string())
                ));
            }
            match round.run(number, &stop) {
                Ok(Some(done)) => {
                    metrics.add(&done);
                    made = Some(done.place);
                }
                Ok(None) => break,
                // The next one may succeed: a disk gets room, a tracer ends.
                Err(error) => {
                    process::exit::complain(&error);
                    metrics.fail();
                }
            }
            let kept = keep.prune(0, SystemTime::now(), made.as_deref()).unwrap_or_else(|error| {
                process::exit::complain(&error);
                keep::Kept::default()
            });
            let used = cost.since_last()?;
            let every = pace.next(used);
            if let Some(slower) = pace.changed() {
                say(&format!(
                    "a recording takes {} of CPU time: the next one begins after {}, so that it stays at {} of a CPU",
                    words(used),
                    words(slower),
                    base::number::percent(self.share)
                ));
            }
            exposition.set(metrics.text(&metrics::State { kept, every, used, share: pace.taken() }));
            if self.rounds == Some(number) || rest(every.saturating_sub(began.elapsed()), &stop) {
                break;
            }
        }
        Ok(Exit::Answered)
    }
}

/// On stderr, where systemd keeps it; whether anybody reads it does not matter.
#[cfg(feature = "full")]
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "agent: {line}");
}

#[cfg(feature = "full")]
fn seconds(ns: u64) -> String {
    words(Duration::from_nanos(ns))
}

#[cfg(feature = "full")]
fn words(length: Duration) -> String {
    base::number::duration(length.as_nanos() as f64)
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
