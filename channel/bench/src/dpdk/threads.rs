//! The threads of DPDK that poll: which they are, and what the kernel has counted of them.
//!
//! Sources: `/proc/PID/task/TID/{comm,schedstat,status,stat}` (proc(5), Documentation/scheduler/sched-stats.rst); names of threads from
//! `eal_worker_thread_create` of lib/eal/linux/eal.c, DPDK 22.11.

use super::super::side::Usage;
use base::channel::Side;
use lab::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Clone)]
pub(super) struct Poller {
    tid: i32,
    /// Its directory in `/proc`.
    task: PathBuf,
    /// The CPU that it is bound to.
    cpu: u32,
}

impl Poller {
    /// The thread that process `pid` of `proc` has for logical core `lcore`, bound to `cpu`.
    ///
    /// # Errors
    /// If it has none.
    pub(super) fn of(proc: &Path, pid: u32, lcore: u32, cpu: u32) -> Result<Self, Error> {
        let wanted = format!("rte-worker-{lcore}");
        let tasks = proc.join(pid.to_string()).join("task");
        let is_it = |task: &PathBuf| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == wanted);
        let found = std::fs::read_dir(&tasks).into_iter().flatten().flatten().map(|entry| entry.path()).find(is_it);
        let task = found.ok_or_else(|| Error::Absent(format!("{}: no thread is called {wanted}", tasks.display())))?;
        Self::at(task, cpu)
    }

    /// The first thread of that process.
    ///
    /// # Errors
    /// If there is no such process.
    pub(super) fn first(proc: &Path, pid: u32, cpu: u32) -> Result<Self, Error> {
        Self::at(proc.join(pid.to_string()).join("task").join(pid.to_string()), cpu)
    }

    fn at(task: PathBuf, cpu: u32) -> Result<Self, Error> {
        let tid = task.file_name().and_then(|name| name.to_str()?.parse().ok());
        let tid = tid.ok_or_else(|| Error::Malformed(format!("{} is no thread", task.display())))?;
        Ok(Self { tid, task, cpu })
    }

    /// How long it was ready and did not run, since it was started.
    ///
    /// # Errors
    /// If it has ended.
    pub(crate) fn waited_ns(&self) -> Result<u64, Error> {
        Ok(self.times()?.1)
    }

    /// All that the kernel has counted of it.
    ///
    /// # Errors
    /// If it has ended.
    pub(super) fn usage(&self) -> Result<Usage, Error> {
        let (cpu_ns, waited_ns) = self.times()?;
        let status = self.read("status")?;
        let switches = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
        };
        // Fields are counted behind the last bracket, which ends the name: what follows it is field 3.
        let stat = self.read("stat")?;
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let faults = fields.split_whitespace().nth(10 - 3).and_then(|count| count.parse().ok()).unwrap_or(0);
        Ok(Usage {
            cpu_ns,
            waited_ns,
            voluntary: switches("voluntary_ctxt_switches"),
            involuntary: switches("nonvoluntary_ctxt_switches"),
            faults,
        })
    }

    /// As a side of a run that lasted so long, between two moments.
    pub(super) fn side(&self, length: Duration, since: Usage, until: Usage) -> Side {
        let Usage { cpu_ns, waited_ns, voluntary, involuntary, faults } = until.since(since);
        let ns = length.as_nanos() as u64;
        Side { tid: self.tid, cpu: self.cpu, ns, cpu_ns, waited_ns, voluntary, involuntary, faults, ..Side::default() }
    }

    fn times(&self) -> Result<(u64, u64), Error> {
        let text = self.read("schedstat")?;
        let mut words = text.split_whitespace().map(|word| word.parse().ok());
        match (words.next().flatten(), words.next().flatten()) {
            (Some(run_ns), Some(wait_ns)) => Ok((run_ns, wait_ns)),
            _ => Err(Error::Malformed(format!("{}: {text}", self.task.join("schedstat").display()))),
        }
    }

    fn read(&self, file: &str) -> Result<String, Error> {
        let path = self.task.join(file);
        std::fs::read_to_string(&path).map_err(|error| Error::io(path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poller_is_found_by_its_name_and_counted_by_its_files() {
        let proc = tempfile::tempdir().unwrap();
        for (tid, name) in [(70, "dpdk-testpmd"), (75, "rte-worker-1"), (76, "rte-worker-10")] {
            let task = proc.path().join("70/task").join(tid.to_string());
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("comm"), format!("{name}\n")).unwrap();
            std::fs::write(task.join("schedstat"), format!("{tid}000 {tid}00 12\n")).unwrap();
            let status = format!("Name:\t{name}\nvoluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t9\n");
            std::fs::write(task.join("status"), status).unwrap();
            std::fs::write(task.join("stat"), format!("{tid} (a ) b) R 1 2 3 4 5 6 17 18 19\n")).unwrap();
        }
        let poller = Poller::of(proc.path(), 70, 1, 3).unwrap();
        let usage = poller.usage().unwrap();
        assert_eq!((usage.cpu_ns, usage.waited_ns, poller.waited_ns().unwrap()), (75_000, 7_500, 7_500));
        assert_eq!((usage.voluntary, usage.involuntary, usage.faults), (4, 9, 17));
        let side = poller.side(Duration::from_micros(80), Usage { cpu_ns: 5_000, ..Usage::default() }, usage);
        assert_eq!((side.tid, side.cpu, side.ns, side.cpu_ns, side.involuntary), (75, 3, 80_000, 70_000, 9));
        assert_eq!(Poller::first(proc.path(), 70, 0).unwrap().usage().unwrap().cpu_ns, 70_000);
        let missing = Poller::of(proc.path(), 70, 2, 0).unwrap_err().to_string();
        assert!(missing.contains("no thread is called rte-worker-2"), "{missing}");
    }
}
