//! Benches in processes of their own: the program starts itself again, once for each launch.
//!
//! ```text
//! here     Job as JSON --stdin-->  launch   pins itself to its CPU, measures
//!          a Measured a line <--stdout--    each result as soon as it is there, so that a crash loses only the rest
//! ```
//! One process measures a little fast or slow for all of its life: where its pages lie and how its branches alias does
//! not change. Only the spread between processes says how far a number can be trusted.

use super::priority;
use base::CpuSet;
use base::bench::Measured;
use lab::Error;
use lab::program::tie;
use lab::setting::thread;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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

pub type Tell<'a> = dyn FnMut(Measured) -> Result<(), Error> + 'a;

/// A bench that measures in launches.
#[derive(Clone, Copy)]
pub struct Launch {
    /// What jobs call it.
    pub name: &'static str,
    /// Measures, as the plan of the job says.
    pub run: fn(Value, &mut Tell<'_>) -> Result<(), Error>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    bench: String,
    /// The CPU that it is pinned to.
    cpu: u32,
    /// Whether it measures by the real-time policy SCHED_FIFO.
    fifo: bool,
    /// What only that bench understands.
    plan: Value,
}

impl Job {
    /// A launch of `bench` on `cpu`.
    ///
    /// # Errors
    /// If the plan cannot be written down.
    pub fn new(bench: Launch, cpu: u32, fifo: bool, plan: &impl Serialize) -> Result<Self, Error> {
        let plan = serde_json::to_value(plan).map_err(|error| Error::refused("a plan of a bench", error))?;
        Ok(Self { bench: bench.name.to_owned(), cpu, fifo, plan })
    }
}

/// The plan of a job, as the bench that it is for has it.
///
/// # Errors
/// If it is of another bench.
pub fn plan<T: DeserializeOwned>(plan: Value) -> Result<T, Error> {
    serde_json::from_value(plan).map_err(|error| Error::io("standard input", error.into()))
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
    tell: &mut Tell<'_>,
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

fn listen(child: &mut Child, job: &Job, stop: &dyn Fn() -> bool, tell: &mut Tell<'_>) -> Result<(), Error> {
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

/// Does the job that stands on standard input, which is of one of `benches`, in this process.
///
/// # Errors
/// If there is none, or if its results cannot be told.
pub fn inside(benches: &[Launch]) -> Result<(), Error> {
    let io = |error| Error::io("standard input", error);
    let mut orders = String::new();
    std::io::stdin().read_to_string(&mut orders).map_err(io)?;
    let job: Job = serde_json::from_str(&orders).map_err(|error| io(error.into()))?;
    thread::set_affinity(thread::own(), &CpuSet::one(job.cpu))?;
    if job.fifo {
        priority::fifo(priority::WATCHDOG)?;
    }
    let mut out = std::io::stdout().lock();
    let mut tell = |measured: Measured| {
        let told = serde_json::to_string(&measured).map_err(std::io::Error::from);
        let told = told.and_then(|line| writeln!(out, "{line}")).and_then(|()| out.flush());
        told.map_err(|error| Error::io("standard output", error))
    };
    let unknown = || Error::Absent(format!("this program has no bench `{}`", job.bench));
    let bench = benches.iter().find(|bench| bench.name == job.bench).ok_or_else(unknown)?;
    (bench.run)(job.plan, &mut tell)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{LAUNCHES, clock};

    #[test]
    fn a_job_arrives_as_it_was_given_and_is_for_one_bench_alone() {
        let [exits, ..] = LAUNCHES;
        let asked = clock::Plan {
            root: "/".into(),
            cpu: 3,
            ns_per_tick: 0.3,
            target: Duration::from_millis(7),
            fifo: true,
            launch: 0,
        };
        let job = asked.launch(2).unwrap();
        let text = serde_json::to_vec(&job).unwrap();
        let job: Job = serde_json::from_slice(&text).unwrap();
        assert_eq!((job.bench.as_str(), job.cpu, job.fifo), ("clock", 3, true));
        assert_eq!(plan::<clock::Plan>(job.plan.clone()).unwrap(), clock::Plan { launch: 2, ..asked });
        assert!((exits.run)(job.plan, &mut |_| Ok(())).is_err(), "clocks are no exits");
    }
}
