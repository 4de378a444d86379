//! Benches in processes of their own: the program starts itself again, once for each launch.
//!
//! ```text
//! here     Job as JSON --stdin-->  launch   pins itself to its CPU, measures
//!          a Measured a line <--stdout--    each result as soon as it is there, so that a crash loses only the rest
//! ```
//! One process measures a little fast or slow for all of its life: where its pages lie and how its branches alias does
//! not change. Only the spread between processes says how far a number can be trusted.

#[cfg(feature = "channel")]
use super::channel;
use super::{clock, exits, priority, zeropages};
use crate::Error;
use crate::program::tie;
use crate::setting::thread;
use base::CpuSet;
use base::bench::Measured;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process that was asked to end has so long.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Whether to stop is asked this often: each time takes something of a CPU, which may be measured.
const STOPS_WITHIN: Duration = Duration::from_millis(250);

/// What a launch is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Job {
    /// Exits.
    Exits(exits::Plan),
    /// Clocks.
    Clock(clock::Plan),
    /// Pages of zeros.
    ZeroPages(zeropages::Plan),
    /// Frames through a ring.
    #[cfg(feature = "channel")]
    Channel(Box<channel::Plan>),
}

impl Job {
    fn cpu(&self) -> u32 {
        match self {
            Job::Exits(plan) => plan.cpu,
            Job::Clock(plan) => plan.cpu,
            Job::ZeroPages(plan) => plan.cpu,
            #[cfg(feature = "channel")]
            Job::Channel(plan) => plan.cpus.0,
        }
    }

    fn fifo(&self) -> bool {
        match self {
            Job::Exits(plan) => plan.fifo,
            Job::Clock(plan) => plan.fifo,
            Job::ZeroPages(plan) => plan.fifo,
            #[cfg(feature = "channel")]
            Job::Channel(plan) => plan.fifo,
        }
    }
}

/// Starts `program` with `arguments`, which must call [`inside`], and tells what it measures.
///
/// # Errors
/// If the process cannot be started or does not end well, or if `tell` fails; [`Error::Stopped`] soon after `stop` says so, or if `tell`
/// does. What was told before stays.
pub fn run(
    program: &Path,
    arguments: &[&str],
    job: &Job,
    stop: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Measured) -> Result<(), Error>,
) -> Result<(), Error> {
    let io = |error| Error::io(program, error);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    // What it has started is tied to it, and ends with this process too; it may have files to remove.
    tie(&mut command, Signal::TERM);
    let mut child = command.spawn().map_err(io)?;
    let told = listen(&mut child, job, stop, tell);
    if told.is_err() {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    }
    let ended = end(&mut child);
    told?;
    match ended.map_err(io)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Error::Died(format!("a launch of the bench ended with {status}"))),
        None => Err(Error::TimedOut("a launch of the bench does not end: KVM hangs in one of its guests".to_owned())),
    }
}

fn listen(
    child: &mut Child,
    job: &Job,
    stop: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Measured) -> Result<(), Error>,
) -> Result<(), Error> {
    let broken = |error: std::io::Error| Error::refused("no result was received from a launch of the bench", error);
    if let Some(mut orders) = child.stdin.take() {
        let text = serde_json::to_vec(job).map_err(|error| broken(error.into()))?;
        orders.write_all(&text).map_err(broken)?;
    }
    let Some(out) = child.stdout.take() else { return Ok(()) };
    let (mut out, mut line) = (BufReader::new(out), String::new());
    let look_every = Timespec { tv_sec: 0, tv_nsec: STOPS_WITHIN.as_nanos() as i64 };
    loop {
        // A setup may take minutes; who asks for the end does not wait for it.
        while out.buffer().is_empty() {
            if stop() {
                return Err(Error::Stopped);
            }
            match poll(&mut [PollFd::new(out.get_ref(), PollFlags::IN)], Some(&look_every)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => break,
                Err(error) => return Err(broken(error.into())),
            }
        }
        line.clear();
        if out.read_line(&mut line).map_err(broken)? == 0 {
            return Ok(());
        }
        tell(serde_json::from_str(&line).map_err(|error| broken(error.into()))?)?;
    }
}

/// Waits for a process whose output has ended; `None` if it does not end even when killed.
fn end(child: &mut Child) -> std::io::Result<Option<std::process::ExitStatus>> {
    for last in [false, true] {
        let since = Instant::now();
        while since.elapsed() < ENDS_WITHIN {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        if !last {
            child.kill()?;
        }
    }
    Ok(None)
}

/// Does the job that stands on standard input, in this process.
///
/// # Errors
/// If there is none, or if its results cannot be told.
pub fn inside() -> Result<(), Error> {
    let io = |error| Error::io("standard input", error);
    let mut orders = String::new();
    std::io::stdin().read_to_string(&mut orders).map_err(io)?;
    let job: Job = serde_json::from_str(&orders).map_err(|error| io(error.into()))?;
    thread::set_affinity(thread::own(), &CpuSet::one(job.cpu()))?;
    if job.fifo() {
        priority::fifo(priority::WATCHDOG)?;
    }
    let mut out = std::io::stdout().lock();
    let mut tell = |measured: Measured| {
        let told = serde_json::to_string(&measured).map_err(std::io::Error::from);
        let told = told.and_then(|line| writeln!(out, "{line}")).and_then(|()| out.flush());
        told.map_err(|error| Error::io("standard output", error))
    };
    match &job {
        Job::Exits(plan) => exits::run(plan, &mut tell),
        Job::Clock(plan) => clock::run(plan, &mut tell),
        Job::ZeroPages(plan) => zeropages::run(plan, &mut tell),
        #[cfg(feature = "channel")]
        Job::Channel(plan) => channel::run(plan, &mut tell),
    }
}

/// Nanoseconds of a tick of the time-stamp counter, over a few milliseconds.
pub fn ns_per_tick() -> f64 {
    const OVER: Duration = Duration::from_millis(5);
    let ticks = || {
        // SAFETY: every x86-64 processor has RDTSC, which touches no memory.
        unsafe { std::arch::x86_64::_rdtsc() }
    };
    let (since, begin) = (Instant::now(), ticks());
    while since.elapsed() < OVER {}
    let (end, took) = (ticks(), since.elapsed());
    took.as_nanos() as f64 / end.wrapping_sub(begin).max(1) as f64
}
