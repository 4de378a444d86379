//! What does the operating system tell of both QEMUs? Looked up in /proc while a guest is moved.
//!
//! ```text
//! every 10 ms, of each side: /proc/PID/stat (is it stopped?), of the thread that moves memory schedstat and stat (did it run, did it wait?)
//! where that thread was ready and did not run: who was on its CPU
//! ```
//! The thread that looks goes before what takes a CPU from others; what it costs is some hundred microseconds a look.

use super::observe::pin;
use super::qemu::realtime_ns;
use super::worker::Worker;
use crate::bench::priority;
use base::processes::{Look, Mover};
use lab::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// The shortest stop that is told apart from none is two of these.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// At most so many looks are kept of a side: ten minutes.
const MOST_LOOKS: usize = 60_000;
/// Threads that are named as those on the CPU.
const MOST_NAMED: usize = 4;
/// The thread that sends, as QEMU 7.2 and 10.0 name it; what a target loads, its main thread does.
const MOVERS: [&str; 2] = ["live_migration", "mig/src/main"];

type Looks = [Vec<Look>; 2];

/// Looks until it is told to end.
pub(super) struct Watched(Worker<Looks>);

impl Watched {
    /// Looks at the processes of source and target from now on.
    pub(super) fn start(pids: [u32; 2]) -> Result<Self, Error> {
        let watch = move |ends: &AtomicBool| {
            pin(priority::WATCHDOG);
            let mut looks = Looks::default();
            while !ends.load(Ordering::Relaxed) && looks[0].len() < MOST_LOOKS {
                for ((pid, looks), is_source) in pids.iter().zip(&mut looks).zip([true, false]) {
                    looks.extend(look(*pid, is_source, looks.last()));
                }
                std::thread::sleep(LOOK_EVERY);
            }
            looks
        };
        Worker::start(Builder::new(), watch).map(Self)
    }

    pub(super) fn end(self) -> Looks {
        self.0.end().unwrap_or_default()
    }
}

/// What `stat` says of a thread (proc_pid_stat(5), fields 2, 3 and 39).
struct Stat {
    name: String,
    state: char,
    cpu: u32,
}

impl Stat {
    fn read(path: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name may hold blanks and brackets.
        let (head, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        Some(Self {
            name: head.split_once('(')?.1.to_owned(),
            state: fields.first()?.chars().next()?,
            cpu: fields.get(39 - 3)?.parse().ok()?,
        })
    }
}

/// One look at a side; `None` if it is gone.
fn look(pid: u32, is_source: bool, before: Option<&Look>) -> Option<Look> {
    let process = format!("/proc/{pid}");
    let at_ns = realtime_ns();
    let state = Stat::read(Path::new(&format!("{process}/stat")))?.state;
    // One that has ended and was not waited for is none that can be stopped.
    if state == 'Z' {
        return None;
    }
    let tid = if is_source { mover(pid) } else { Some(pid) };
    let mover = tid.and_then(|tid| {
        let task = format!("{process}/task/{tid}");
        let (run_ns, wait_ns) = times(&std::fs::read_to_string(format!("{task}/schedstat")).ok()?)?;
        let Stat { name, state, cpu } = Stat::read(Path::new(&format!("{task}/stat")))?;
        // The kernel adds a wait once it is over: while it lasts, neither number grows.
        let stands = before.and_then(|look| look.mover.as_ref()).is_some_and(|mover| mover.run_ns == run_ns);
        let stands = stands && state == 'R';
        let instead = if stands { on(cpu, tid) } else { Vec::new() };
        Some(Mover { name, cpu, run_ns, wait_ns, stands, instead })
    });
    Some(Look { at_ns, is_stopped: state == 'T', mover })
}

/// The thread of a source that sends, once there is one.
pub(crate) fn mover(pid: u32) -> Option<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let is_mover = |task: &std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        MOVERS.contains(&name.trim())
    };
    tasks.filter(is_mover).find_map(|task| task.file_name().to_str()?.parse().ok())
}

/// Run and wait times of `schedstat` (Documentation/scheduler/sched-stats.rst).
fn times(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    Some((words.next()??, words.next()??))
}

/// Threads other than `tid` that run or are ready on a CPU.
fn on(cpu: u32, tid: u32) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let tasks = numbers.flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten());
    let others = tasks.filter_map(|task| {
        let stat = Stat::read(&task.path().join("stat"))?;
        let is_other = ![Some(tid), Some(gettid())].contains(&task.file_name().to_str()?.parse().ok());
        (stat.state == 'R' && stat.cpu == cpu && is_other).then_some(stat.name)
    });
    let mut named: Vec<String> = others.take(MOST_NAMED).collect();
    named.sort_unstable();
    named.dedup();
    named
}

fn gettid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_brackets_and_a_state_is_behind_it() {
        let fields = ["0"; 34].join(" ");
        let stat = Stat::parse(&format!("7 (mig/src (x)) T 1 {fields} 5 0 0")).unwrap();
        assert_eq!((stat.name.as_str(), stat.state, stat.cpu), ("mig/src (x)", 'T', 5));
        assert!(Stat::parse("7 (short) R 1").is_none());
        assert_eq!(times("12 34 5\n"), Some((12, 34)));
        assert_eq!(times("12"), None);
    }

    #[test]
    fn a_process_that_is_stopped_is_seen_and_one_that_has_ended_is_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(5);
        let is_stopped = || look(child.id(), true, None).is_some_and(|look| look.is_stopped);
        while !is_stopped() && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(is_stopped());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(look(child.id(), true, None).is_none());
    }
}
