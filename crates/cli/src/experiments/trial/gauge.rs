//! What a trial measures: how much CPU time was lost to waiting and to interrupts, window by window.
//!
//! A thread that ends on the way waits no more, and nothing has helped it: it is left out of all windows, before and after.

use super::watched::Watched;
use analysis::facts::shares::{Contender, Cpus};
use anyhow::{Context, bail};
use host::Snapshot;
use host::machine::{CpuUse, Topology};
use host::sched::{Load, Sample, ThreadId};
use host::usage;
use lab::snapshot::monotonic_ns;
use process::interrupt::rest;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How far apart two looks are, where one number is wanted.
pub(crate) const SPAN: Duration = Duration::from_secs(1);
/// Windows of a measurement.
pub(super) const WINDOWS: u32 = 8;

/// All threads and CPUs at one time.
pub(crate) struct Look {
    pub threads: Sample,
    stat: String,
}

impl Look {
    pub(crate) fn take(proc: &Path) -> anyhow::Result<Self> {
        let stat = proc.join("stat");
        let stat = std::fs::read_to_string(&stat).with_context(|| stat.display().to_string())?;
        Ok(Self { threads: look(proc)?, stat })
    }

    /// How each CPU was used between this look and a later one.
    pub(crate) fn usage(&self, later: &Self) -> BTreeMap<u32, CpuUse> {
        usage::between(&self.stat, &later.stat)
    }
}

/// What all threads and CPUs did for a while.
pub(crate) struct Now {
    pub loads: Vec<Load>,
    /// How each CPU was used.
    pub usage: BTreeMap<u32, CpuUse>,
    /// Which CPUs share a core.
    pub topology: Topology,
}

impl Now {
    /// Looks twice at the host below `root`.
    pub(crate) fn of(root: &Path, span: Duration) -> anyhow::Result<Self> {
        let proc = root.join("proc");
        let first = Look::take(&proc)?;
        std::thread::sleep(span);
        Self::since(&first, root)
    }

    /// What was done from a first look until now.
    pub(crate) fn since(first: &Look, root: &Path) -> anyhow::Result<Self> {
        let last = Look::take(&root.join("proc"))?;
        let topology = Topology::of_snapshot(&Snapshot::open(root)?);
        Ok(Self { loads: first.threads.until(&last.threads), usage: first.usage(&last), topology })
    }

    /// The threads, as the model of shares has them.
    pub(crate) fn contenders(&self) -> Vec<Contender> {
        self.loads.iter().map(Contender::from).collect()
    }

    pub(crate) fn cpus(&self) -> Cpus {
        Cpus::of(&self.topology, &self.usage, self.loads.iter().map(|load| (load.cpu, load.run)))
    }
}

/// What was lost in a window, in CPUs' worth.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lost {
    pub by_thread: BTreeMap<ThreadId, f64>,
    pub elsewhere: f64,
}

/// What was lost in each window before and after, by threads that lived through all of them; and how many did not.
pub(crate) fn sums(before: &[Lost], after: &[Lost]) -> (Vec<f64>, Vec<f64>, usize) {
    let windows = || before.iter().chain(after);
    let all: BTreeSet<ThreadId> = windows().flat_map(|window| window.by_thread.keys().copied()).collect();
    let mut lived = all.clone();
    lived.retain(|id| windows().all(|window| window.by_thread.contains_key(id)));
    let sum = |window: &Lost| window.elsewhere + lived.iter().filter_map(|id| window.by_thread.get(id)).sum::<f64>();
    (before.iter().map(sum).collect(), after.iter().map(sum).collect(), all.len() - lived.len())
}

/// What was lost in each window; `None` if the user ended it.
pub(crate) fn measure(
    proc: &Path,
    watched: &Watched,
    span: Duration,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Vec<Lost>>> {
    let mut lost = Vec::new();
    let mut last = Look::take(proc)?;
    for _ in 0..WINDOWS {
        if rest(span / WINDOWS, stop) {
            return Ok(None);
        }
        let next = Look::take(proc)?;
        lost.push(watched.lost(&last, &next));
        last = next;
    }
    Ok(Some(lost))
}

fn look(proc: &Path) -> anyhow::Result<Sample> {
    let sample = Sample::take(proc, &monotonic_ns).with_context(|| proc.display().to_string())?;
    if !sample.known() {
        bail!("this kernel has no run times of threads (schedstat is all zeros), so nothing can be measured");
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_has_not_been_helped() {
        let id = |tid| ThreadId { pid: 1, tid, start_ticks: 1 };
        let window = |waits: &[(u32, f64)], elsewhere| Lost {
            by_thread: waits.iter().map(|(tid, wait)| (id(*tid), *wait)).collect(),
            elsewhere,
        };
        let before = [window(&[(1, 0.5), (2, 0.5)], 0.25), window(&[(1, 0.5), (2, 0.5)], 0.0)];
        let after = [window(&[(1, 0.5), (2, 0.5)], 0.0), window(&[(1, 0.5)], 0.0)];
        assert_eq!(sums(&before, &after), (vec![0.75, 0.5], vec![0.5, 0.5], 1));
    }
}
