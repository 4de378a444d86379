//! Which threads ran, which waited for a CPU, and where?
//!
//! In: `/proc` (or a copy), twice. Out: for each thread what share of a CPU it had and what share it waited for one, its
//! last CPU and the CPUs it may use.
//! ```text
//! /proc/PID/task/TID/schedstat   run_ns wait_ns slices, read with the clock beside it, twice --> run, wait
//!                    stat        start time (which thread of that number it is), last CPU
//!                    status      Cpus_allowed_list: the mask in force
//! ```
//! Threads are told apart by id and start time: one whose id was used again is another thread, and is counted as such.
//! Sources: Documentation/scheduler/sched-stats.rst; proc_pid_stat(5), fields 22 and 39. A kernel without SCHED_INFO writes
//! zeros, which is no measurement: `known` says whether any thread had time.

use base::CpuSet;
use std::collections::BTreeMap;
use std::path::Path;

/// A thread. Ids are used again, so its start time belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    /// Its process.
    pub pid: u32,
    /// Itself.
    pub tid: u32,
    /// Clock ticks from boot to its start.
    pub start_ticks: u64,
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
    /// Time on a CPU since its start.
    pub run_ns: u64,
    /// Time runnable and not running since its start.
    pub wait_ns: u64,
    /// When this was read.
    pub at_ns: u64,
}

/// All threads of a machine at about one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// The threads.
    pub threads: BTreeMap<ThreadId, Thread>,
}

/// What a thread did between two samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The thread.
    pub id: ThreadId,
    /// Its name.
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

impl Load {
    /// The share of a CPU that it would take at least, if it had one for itself.
    pub fn demand(&self) -> f64 {
        (self.run + self.wait).min(1.0)
    }

    /// Waiting over wanting: 0 it ran whenever it could, 0.5 it waited as long as it ran.
    pub fn starvation(&self) -> f64 {
        let wanted = self.run + self.wait;
        if wanted > 0.0 { self.wait / wanted } else { 0.0 }
    }
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
    ///
    /// The kernel adds a wait when it ends (`sched_info_arrive`, kernel/sched/stats.h), so one that began before the first
    /// look counts whole: run and wait together are kept within the time between the looks.
    pub fn until(&self, later: &Self) -> Vec<Load> {
        let both = self.threads.iter().filter_map(|(id, before)| Some((id, before, later.threads.get(id)?)));
        let load = |(id, before, after): (&ThreadId, &Thread, &Thread)| {
            let span_ns = after.at_ns.saturating_sub(before.at_ns).max(1) as f64;
            let share = |from: u64, to: u64| to.saturating_sub(from) as f64 / span_ns;
            let run = share(before.run_ns, after.run_ns).min(1.0);
            Load {
                id: *id,
                name: after.name.clone(),
                cpu: after.cpu,
                allowed: after.allowed.clone(),
                run,
                wait: share(before.wait_ns, after.wait_ns).min(1.0 - run),
            }
        };
        both.map(load).collect()
    }

    /// False if the kernel keeps no times of threads.
    pub fn known(&self) -> bool {
        self.threads.values().any(|thread| thread.run_ns > 0)
    }
}

impl Thread {
    fn read(task: &Path, now: &dyn Fn() -> u64) -> Option<(u64, Self)> {
        let text = |name: &str| std::fs::read_to_string(task.join(name)).ok();
        let (stat, status) = (text("stat")?, text("status")?);
        let schedstat = text("schedstat")?;
        let at_ns = now();
        // The name may hold spaces and parentheses: what follows the last one is field 3.
        let (before, fields) = stat.rsplit_once(')')?;
        let field = |number: usize| fields.split_whitespace().nth(number - 3);
        let mut times = schedstat.split_whitespace().map(str::parse);
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let thread = Self {
            name: before.split_once('(')?.1.to_owned(),
            cpu: field(39)?.parse().ok()?,
            allowed: CpuSet::parse(allowed)?,
            run_ns: times.next()?.ok()?,
            wait_ns: times.next()?.ok()?,
            at_ns,
        };
        Some((field(22)?.parse().ok()?, thread))
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
        assert!((loads[0].starvation() - 0.75).abs() < 1e-9 && (loads[0].demand() - 0.8).abs() < 1e-9);
        write(proc.path(), 101, 900_000, 905_000);
        let reused = Sample::take(proc.path(), &|| 3_000_000).unwrap();
        assert!(second.until(&reused).is_empty(), "a thread of the same number is another thread");
        assert!(first.known() && !Sample::default().known());
    }

    #[test]
    fn this_thread_is_found_with_its_name_and_mask() {
        let sample = Sample::take(Path::new("/proc"), &|| 0).unwrap();
        let own = sample.threads.iter().find(|(id, _)| id.pid == std::process::id()).unwrap().1;
        assert!(own.allowed.contains(own.cpu) && !own.name.is_empty(), "{own:?}");
    }
}
