//! Which threads ran, which waited for a CPU, and where?
//!
//! In: `/proc` (or a copy), twice. Out: for each thread what share of a CPU it had and what share it waited for one, its
//! last CPU and the CPUs it may use.
//! ```text
//! /proc/PID/task/TID/schedstat   Times: run_ns wait_ns, read with the clock beside it, twice --> Shares: run, wait
//!                    stat        Stat: start time (which thread of that number it is), last CPU, policy
//!                    status      Cpus_allowed_list: the mask in force
//! ```
//! Whoever reads these files - a look at the live machine here, a pair of snapshots in [`crate::machine`] - reads them with
//! `Stat` and `Times` and divides with `Shares`, so that one sample has one answer.
//!
//! Threads are told apart by id and start time: one whose id was used again is another thread, and is counted as such.
//! Sources: Documentation/scheduler/sched-stats.rst; proc_pid_stat(5), fields 9, 22, 39 and 41. A kernel without SCHED_INFO
//! writes zeros, which is no measurement: `known` says whether any thread had time.

use base::CpuSet;
use std::collections::BTreeMap;
use std::path::Path;

/// A thread. Ids are used again, so its start time belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    pub pid: u32,
    pub tid: u32,
    /// Clock ticks from boot to its start.
    pub start_ticks: u64,
}

/// What `stat` says of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Clock ticks from boot to its start.
    pub start_ticks: u64,
    /// The CPU it ran on last.
    pub last_cpu: u32,
    /// Its nice value: what it counts for beside others of its group.
    pub nice: Option<i32>,
    /// Its scheduling policy by number (`sched.h`); kernels before 2.5.19 have none.
    pub policy: Option<u32>,
    /// Whether the kernel refuses another CPU mask for it.
    pub is_fixed: bool,
}

/// `PF_NO_SETAFFINITY` of a thread's flags (include/linux/sched.h, Linux 6.12).
const NO_SETAFFINITY: u64 = 0x0400_0000;

impl Stat {
    /// Fields are counted behind the last bracket: the name may hold blanks and brackets. What follows it is field 3.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            start_ticks: field(22)?,
            last_cpu: u32::try_from(field(39)?).ok()?,
            nice: fields.get(19 - 3).and_then(|nice| nice.parse().ok()),
            policy: field(41).and_then(|policy| u32::try_from(policy).ok()),
            is_fixed: field(9).is_some_and(|flags| flags & NO_SETAFFINITY != 0),
        })
    }
}

/// What `schedstat` says of a thread: times since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    /// On a CPU.
    pub run_ns: u64,
    /// Runnable and not running.
    pub wait_ns: u64,
}

impl Times {
    /// The first two numbers.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        Some(Self { run_ns: words.next()?.parse().ok()?, wait_ns: words.next()?.parse().ok()? })
    }

    /// False if the kernel keeps no times, or the thread had none yet.
    pub(crate) fn counted(self) -> bool {
        self.run_ns > 0 || self.wait_ns > 0
    }
}

/// Shares of the time that a thread ran, and was runnable and did not run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shares {
    pub run: f64,
    pub wait: f64,
}

impl Shares {
    /// The kernel adds a wait when it ends (`sched_info_arrive`, kernel/sched/stats.h, Linux 6.12), so one that began before
    /// the first look counts whole: run and wait together are kept within the time between the looks.
    pub(crate) fn new(run: f64, wait: f64) -> Self {
        let run = run.min(1.0);
        Self { run, wait: wait.min(1.0 - run) }
    }

    /// What was added from one look to the next, over the time between them.
    pub(crate) fn between(before: Times, after: Times, span_ns: u64) -> Self {
        let share = |from: u64, to: u64| to.saturating_sub(from) as f64 / span_ns.max(1) as f64;
        Self::new(share(before.run_ns, after.run_ns), share(before.wait_ns, after.wait_ns))
    }
}

/// What a thread had done when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its name, as the kernel cuts it.
    pub name: String,
    /// The CPU it ran on last.
    pub cpu: u32,
    /// The CPUs it may use.
    pub allowed: CpuSet,
    times: Times,
    at_ns: u64,
}

/// All threads of a machine at about one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    pub threads: BTreeMap<ThreadId, Thread>,
}

/// What a thread did between two samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    pub id: ThreadId,
    pub name: String,
    /// The CPU it ran on last.
    pub cpu: u32,
    /// The CPUs it may use.
    pub allowed: CpuSet,
    /// Share of the time that it ran.
    pub run: f64,
    /// Share of the time that it was ready and another ran.
    pub wait: f64,
}

impl Sample {
    /// Reads all threads below `proc`; `now` is CLOCK_MONOTONIC in ns. Threads that end meanwhile are not in it.
    ///
    /// # Errors
    /// If `proc` cannot be listed.
    pub fn take(proc: &Path, now: &dyn Fn() -> u64) -> std::io::Result<Self> {
        let mut threads = BTreeMap::new();
        for process in std::fs::read_dir(proc)?.flatten() {
            let Some(pid) = number(&process.file_name()) else { continue };
            for task in std::fs::read_dir(process.path().join("task")).into_iter().flatten().flatten() {
                let Some(tid) = number(&task.file_name()) else { continue };
                if let Some((start_ticks, thread)) = Thread::read(&task.path(), now) {
                    threads.insert(ThreadId { pid, tid, start_ticks }, thread);
                }
            }
        }
        Ok(Self { threads })
    }

    /// What each thread did that is in this sample and in a `later` one.
    pub fn until(&self, later: &Self) -> Vec<Load> {
        let both = self.threads.iter().filter_map(|(id, before)| Some((id, before, later.threads.get(id)?)));
        let load = |(id, before, after): (&ThreadId, &Thread, &Thread)| {
            let span_ns = after.at_ns.saturating_sub(before.at_ns);
            let Shares { run, wait } = Shares::between(before.times, after.times, span_ns);
            Load { id: *id, name: after.name.clone(), cpu: after.cpu, allowed: after.allowed.clone(), run, wait }
        };
        both.map(load).collect()
    }

    /// False if the kernel keeps no times of threads.
    pub fn known(&self) -> bool {
        self.threads.values().any(|thread| thread.times.counted())
    }
}

impl Thread {
    fn read(task: &Path, now: &dyn Fn() -> u64) -> Option<(u64, Self)> {
        let text = |name: &str| std::fs::read_to_string(task.join(name)).ok();
        let (stat, status) = (text("stat")?, text("status")?);
        let schedstat = text("schedstat")?;
        let at_ns = now();
        let Stat { start_ticks, last_cpu, .. } = Stat::parse(&stat)?;
        let (name, _) = stat.split_once('(')?.1.rsplit_once(')')?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let thread = Self {
            name: name.to_owned(),
            cpu: last_cpu,
            allowed: CpuSet::parse(allowed)?,
            times: Times::parse(&schedstat)?,
            at_ns,
        };
        Some((start_ticks, thread))
    }
}

fn number(name: &std::ffi::OsStr) -> Option<u32> {
    name.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(proc: &Path, start: u64, run_ns: u64, wait_ns: u64) {
        let task = proc.join("7/task/8");
        std::fs::create_dir_all(&task).unwrap();
        let stat = format!("8 (vhost-7 (a) b) R 1{} {start}{} 3 0 0", " 0".repeat(17), " 0".repeat(16));
        std::fs::write(task.join("stat"), stat).unwrap();
        std::fs::write(task.join("status"), "Name:\tx\nCpus_allowed_list:\t0,2-3\n").unwrap();
        std::fs::write(task.join("schedstat"), format!("{run_ns} {wait_ns} 4\n")).unwrap();
    }

    #[test]
    fn shares_are_of_the_time_between_two_looks_at_the_same_thread() {
        let proc = tempfile::tempdir().unwrap();
        write(proc.path(), 100, 1_000, 5_000);
        let first = Sample::take(proc.path(), &|| 1_000_000).unwrap();
        write(proc.path(), 100, 201_000, 605_000);
        let second = Sample::take(proc.path(), &|| 2_000_000).unwrap();
        let loads = first.until(&second);
        assert_eq!((loads[0].run, loads[0].wait, loads[0].cpu), (0.2, 0.6, 3));
        assert_eq!((loads[0].name.as_str(), loads[0].allowed.to_string().as_str()), ("vhost-7 (a) b", "0,2-3"));
        write(proc.path(), 101, 900_000, 905_000);
        let reused = Sample::take(proc.path(), &|| 3_000_000).unwrap();
        assert!(second.until(&reused).is_empty(), "a thread of the same number is another thread");
        assert!(first.known() && !Sample::default().known());
    }

    #[test]
    fn one_sample_has_one_answer_whoever_reads_it() {
        let tree = tempfile::tempdir().unwrap();
        let mut looks = Vec::new();
        // Within the span of 2 s it ran 0.5 s; a wait that ended in it had begun before: 1.9 s.
        for (sample, at_ns, run_ns, wait_ns) in
            [("0", 1_000_000_000, 7_000_000, 0), ("1", 3_000_000_000, 507_000_000, 1_900_000_000)]
        {
            let proc = tree.path().join(sample).join("proc");
            write(&proc, 100, run_ns, wait_ns);
            std::fs::write(proc.join("7/task/8/comm"), "vhost-7\n").unwrap();
            let times = format!("{{\"clock\":\"monotonic\",\"files\":{{\"proc/7/task/8/schedstat\":{at_ns}}}}}");
            std::fs::write(tree.path().join(sample).join(crate::snapshot::TIMES_FILE), times).unwrap();
            looks.push(Sample::take(&proc, &|| at_ns).unwrap());
        }
        let live = looks[0].until(&looks[1]);
        let open = |sample| crate::Snapshot::open(&tree.path().join(sample)).unwrap();
        let machine = crate::Machine::of_snapshots(&[open("0"), open("1")]);
        let (live, copied) = (&live[0], &machine.threads[0]);
        let shares = |thread: &crate::machine::Thread| {
            let share = |fact: &Option<crate::machine::Fact<f64>>| fact.as_ref().unwrap().value;
            (share(&thread.run_share), share(&thread.wait_share))
        };
        assert_eq!((live.run, live.wait), shares(copied));
        assert_eq!((live.run, live.wait), (0.25, 0.75));
        assert_eq!(
            (Some(live.id.start_ticks), live.cpu),
            (copied.start_ticks, copied.last_cpu.as_ref().unwrap().value)
        );
    }

    #[test]
    fn this_thread_is_found_with_its_name_and_mask() {
        let sample = Sample::take(Path::new("/proc"), &|| 0).unwrap();
        let own = sample.threads.iter().find(|(id, _)| id.pid == std::process::id()).unwrap().1;
        assert!(own.allowed.contains(own.cpu) && !own.name.is_empty(), "{own:?}");
    }
}
