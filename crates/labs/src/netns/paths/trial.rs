//! One trial: frames are sent, what arrives is counted, and every other one is looked for.

use super::bed::Bed;
use super::counters::Counters;
use super::ledger::Ledger;
use super::{check, sender};
use crate::interference::others;
use base::datapath::{Books, DatapathRun, Traffic};
use host::sched::{Load, Sample};
use lab::Error;
use lab::clocks;
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    /// Size of each frame, FCS counted.
    pub(super) size_bytes: u32,
    /// Frames per second; `None`: as many as the sender can.
    pub(super) pps: Option<u64>,
    pub(super) length: Duration,
}

/// Frames on their way have arrived when all counters stand still for so long.
const STANDS_STILL: Duration = Duration::from_millis(20);
/// The same where a frame is missing: a thread that carries frames waits no longer for its CPU.
const GETS_A_CPU: Duration = Duration::from_secs(1);
/// A chain that moves frames for longer after the last was sent is no chain.
const ARRIVES: Duration = Duration::from_secs(5);

impl Bed<'_> {
    /// Makes one trial. Its window is the time of sending; what is on its way then is waited for and counted.
    pub(super) fn trial(&self, offer: &Offer) -> Result<DatapathRun, Error> {
        let (before, busy_before) = (Counters::read(self)?, Busy::read()?);
        let threads = threads()?;
        let begin_ns = now_ns();
        let sent = sender::send(&self.source, self.cpus.sender, offer, self.stop)?;
        check(self.stop)?;
        let (busy, loads) = (Busy::read()?, threads.until(&self::threads()?));
        let steal_share = busy.stolen_since(&busy_before);
        let books = self.at_rest(&before, sent.frames)?;
        Ok(DatapathRun {
            design: self.path.name().to_owned(),
            pattern: Traffic::Chain,
            vnfs: self.vnfs,
            size_bytes: offer.size_bytes,
            repeat: 0,
            offered_pps: offer.pps.map(|pps| pps as f64),
            begin_ns,
            traced_from_ns: None,
            window_ns: sent.took_ns,
            window_error_ns: 0,
            window_sent: sent.frames,
            window_received: books.received,
            samples: Vec::new(),
            books,
            pollers: Vec::new(),
            steal_share,
            interference: others(&[self.cpus.sender, self.cpus.chain], is_own, &loads, steal_share),
            bound_by: None,
            cores: Some(1),
        })
    }

    /// Sends a few frames that nobody counts: the first of a flow cost more, and are in no flow's count.
    pub(super) fn warm_up(&self) -> Result<(), Error> {
        let offer = Offer { size_bytes: 64, pps: Some(1_000), length: STANDS_STILL };
        sender::send(&self.source, self.cpus.sender, &offer, self.stop)?;
        let (since, mut last) = (Instant::now(), Counters::default());
        loop {
            check(self.stop)?;
            std::thread::sleep(STANDS_STILL);
            let now = Counters::read(self)?;
            if now == last || since.elapsed() > ARRIVES {
                return Ok(());
            }
            last = now;
        }
    }

    /// The books once nothing moves any more. Where they are not whole, somebody may not have had a CPU yet: they get some time.
    fn at_rest(&self, before: &Counters, sent: u64) -> Result<Books, Error> {
        let (ledger, since) = (Ledger::of(self.path, self.vnfs), Instant::now());
        let (mut last, mut still_since) = (Counters::read(self)?, Instant::now());
        loop {
            std::thread::sleep(STANDS_STILL);
            let now = Counters::read(self)?;
            if now == last {
                let books = ledger.books(before, &now, sent)?;
                if books.faults().is_empty() || still_since.elapsed() > GETS_A_CPU {
                    return Ok(books);
                }
            } else {
                (last, still_since) = (now, Instant::now());
            }
            if since.elapsed() > ARRIVES {
                let seconds = ARRIVES.as_secs();
                return Err(Error::TimedOut(format!("frames still moved {seconds} s after the last was sent")));
            }
        }
    }
}

/// What all threads have run by now.
fn threads() -> Result<Sample, Error> {
    const PROC: &str = "/proc";
    Sample::take(Path::new(PROC), &now_ns).map_err(|error| Error::io(PROC, error))
}

fn now_ns() -> u64 {
    clocks::pair("L0", base::recording::Moment::Begin).monotonic_ns
}

/// What threads of the bed's programs are called, beside this program's: the kernel's that poll a port, testpmd's.
const OWN: [&str; 3] = ["napi/port", "dpdk-testpmd", "rte-worker"];

/// A thread of the bed: of this program, which sends and copies, or one of [`OWN`].
fn is_own(load: &Load) -> bool {
    load.id.pid == std::process::id() || OWN.iter().any(|own| load.name.starts_with(own))
}

/// Ticks of all CPUs, and those that the machine below kept for itself (proc_stat(5), eighth number).
struct Busy {
    all: u64,
    stolen: u64,
}

impl Busy {
    fn read() -> Result<Self, Error> {
        const PATH: &str = "/proc/stat";
        let text = std::fs::read_to_string(PATH).map_err(|error| Error::io(PATH, error))?;
        let ticks =
            |line: &str| line.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect::<Vec<u64>>();
        let ticks = text.lines().next().map(ticks).unwrap_or_default();
        // Guests' time is part of the user's.
        Ok(Self { all: ticks.iter().take(8).sum(), stolen: ticks.get(7).copied().unwrap_or(0) })
    }

    fn stolen_since(&self, before: &Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some(self.stolen.checked_sub(before.stolen)? as f64 / all as f64)
    }
}
