//! Whom does a change concern? That is what a trial watches, and what the model is asked about.
//!
//! ```text
//! thread to CPUs, policy, libvirt's pins, cpuset   those threads, and those that want a CPU where they are or go
//! interrupt to CPUs                                the CPUs it comes from and goes to: who waits there, and what
//!                                                  interrupts and softirqs take
//! other values below /sys                          the whole machine: nothing says whom they concern
//! ```

use super::gauge::{Look, Lost};
use analysis::facts::shares::{Move, demand};
use analysis::facts::starvation::FLOOR;
use anyhow::bail;
use base::CpuSet;
use base::number::many;
use host::sched::{Load, ThreadId};
use lab::setting::{Altered, Concern, Host};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Whom some altered settings concern.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub moves: Vec<Move>,
    pub interrupts: Vec<(CpuSet, CpuSet)>,
    /// Threads whose waiting counts.
    threads: BTreeSet<ThreadId>,
    /// CPUs on which all waiting counts, and the time of interrupts.
    cpus: CpuSet,
    machine: bool,
}

impl Watched {
    /// Whom `altered` concern, with what runs now: `loads`.
    ///
    /// # Errors
    /// If they change nothing that runs, so that nothing could be measured.
    pub(crate) fn of(altered: &[Altered], host: &Host, loads: &[Load]) -> anyhow::Result<Self> {
        let mut watched = Self::default();
        let mut changed = BTreeSet::new();
        for one in altered {
            match one.concerns(host)? {
                Concern::Threads(tids, None) => changed.extend(tids),
                Concern::Threads(tids, Some(cpus)) => {
                    watched.moves.extend(tids.into_iter().map(|tid| Move { tid, cpus: cpus.clone() }));
                }
                Concern::Interrupt(from, to) => {
                    watched.cpus = watched.cpus.or(&from).or(&to);
                    watched.interrupts.push((from, to));
                }
                Concern::Nobody => {}
                Concern::Unknown => watched.machine = true,
            }
        }
        changed.extend(watched.moves.iter().map(|one| one.tid));
        let ours: Vec<&Load> = loads.iter().filter(|load| changed.contains(&load.id.tid)).collect();
        let mut cpus: BTreeSet<u32> = watched.moves.iter().flat_map(|one| one.cpus.iter()).collect();
        cpus.extend(ours.iter().map(|load| load.cpu));
        let others = loads.iter().filter(|load| demand(load.run, load.wait) > FLOOR && cpus.contains(&load.cpu));
        watched.threads = ours.into_iter().chain(others).map(|load| load.id).collect();
        Ok(watched)
    }

    /// Fails where there is nothing to watch.
    pub(crate) fn something(&self) -> anyhow::Result<()> {
        if self.threads.is_empty() && self.cpus.is_empty() && !self.machine {
            bail!(
                "a trial needs running threads, and this change affects none (only a domain's next start, or threads \
                 that have ended); run it without --trial"
            );
        }
        Ok(())
    }

    /// CPUs' worth of time that was lost between two looks to waiting and interrupts, as far as it counts.
    pub(crate) fn lost(&self, from: &Look, to: &Look) -> Lost {
        let (mut by_thread, mut elsewhere) = (BTreeMap::new(), 0.0);
        for load in from.threads.until(&to.threads) {
            if self.machine || self.cpus.contains(load.cpu) {
                elsewhere += load.wait;
            } else if self.threads.contains(&load.id) {
                by_thread.insert(load.id, load.wait);
            }
        }
        let usage = from.usage(to);
        let counting = usage.iter().filter(|(cpu, _)| self.machine || self.cpus.contains(**cpu));
        elsewhere += counting.map(|(_, usage)| usage.irq + usage.softirq).sum::<f64>();
        Lost { by_thread, elsewhere }
    }

    /// What is measured, as the subject of a sentence.
    pub(crate) fn subject(&self) -> &'static str {
        if self.machine || !self.cpus.is_empty() { "waiting and interrupts took" } else { "threads waited" }
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.machine {
            return write!(
                out,
                "CPU waiting of all threads, and interrupt time on all CPUs, because it is unknown which threads \
                 this value affects"
            );
        }
        let mut parts = Vec::new();
        if !self.threads.is_empty() {
            parts.push(format!(
                "CPU waiting of {}: those that change, and those that want the CPUs involved",
                many(self.threads.len() as u64, "thread")
            ));
        }
        if !self.cpus.is_empty() {
            parts.push(format!("CPUs {}: waiting threads, interrupts and softirqs", self.cpus));
        }
        write!(out, "{}", parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Setting;

    use std::fs;

    fn load(tid: u32, cpu: u32, run: f64, wait: f64) -> Load {
        let id = ThreadId { pid: tid, tid, start_ticks: 1 };
        Load { id, name: "x".into(), cpu, allowed: CpuSet::one(cpu), run, wait }
    }

    fn tids(watched: &Watched) -> Vec<u32> {
        watched.threads.iter().map(|id| id.tid).collect()
    }

    #[test]
    fn each_kind_of_change_concerns_its_own() {
        let tree = tempfile::tempdir().unwrap();
        let host = Host::at(tree.path());
        let irq = tree.path().join("proc/irq/9");
        let group = tree.path().join("sys/fs/cgroup/cpuset/vm");
        for directory in [&irq, &group] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(irq.join("effective_affinity_list"), "2\n").unwrap();
        fs::write(group.join("tasks"), "7\n8\n").unwrap();
        let loads = [load(7, 0, 0.5, 0.4), load(8, 1, 0.0, 0.0), load(9, 0, 0.5, 0.5), load(10, 3, 1.0, 0.0)];
        let of = |setting, old: &str, new: &str| {
            let altered = Altered { setting, old: old.into(), new: new.into(), was_unset: false };
            Watched::of(&[altered], &host, &loads).unwrap()
        };
        let thread = || base::setting::ThreadId { tid: 7, start_ticks: Some(1), comm: Some("x".into()) };
        let value = |path: &str| Setting::SysfsWrite { path: path.into() };

        let moved = of(Setting::TaskAffinity(thread()), "0-3", "3");
        assert_eq!((tids(&moved), moved.moves.len(), moved.subject()), (vec![7, 9, 10], 1, "threads waited"));
        let policy = of(Setting::TaskPolicy(thread()), "other", "fifo:1");
        assert_eq!((tids(&policy), policy.moves.len()), (vec![7, 9], 0));
        let grouped = of(value("fs/cgroup/cpuset/vm/cpuset.cpus"), "0-3", "3");
        assert_eq!((tids(&grouped), grouped.moves.len()), (vec![7, 8, 9, 10], 2));
        let interrupt = of(Setting::IrqAffinity { irq: 9 }, "0-3", "3");
        assert_eq!(interrupt.cpus.to_string(), "2-3", "the CPU that has it, not all that might");
        assert_eq!((interrupt.interrupts.len(), interrupt.threads.len()), (1, 0));
        let value = of(value("x"), "0", "1");
        assert!(value.machine && value.to_string().contains("all threads"), "{value}");
        assert!(Watched::of(&[], &host, &loads).unwrap().something().is_err());
    }
}
