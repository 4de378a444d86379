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
use host::machine::{Role, role_of};
use host::sched::{Load, ThreadId};
use lab::apply::{Host, is_cpuset};
use lab::journal::pin::{self, Pinned, Scope};
use lab::journal::{Owner, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// Where libvirt notes its domains' processes.
const RUN: &str = "/run";

/// What some steps concern.
#[derive(Debug, Default)]
pub struct Watched {
    /// Threads that are moved, and where to.
    pub moves: Vec<Move>,
    /// Interrupts that are moved: from which CPUs to which.
    pub interrupts: Vec<(CpuSet, CpuSet)>,
    /// Threads whose waiting counts.
    threads: BTreeSet<ThreadId>,
    /// CPUs on which all waiting counts, and the time of interrupts.
    cpus: CpuSet,
    /// Everything counts.
    machine: bool,
}

impl Watched {
    /// What `steps` concern, with what runs now: `loads`.
    ///
    /// # Errors
    /// If they change nothing that runs, so that nothing could be measured.
    pub fn of(steps: &[Step], host: &Host, loads: &[Load]) -> anyhow::Result<Self> {
        let mut watched = Self::default();
        let mut changed = BTreeSet::new();
        for step in steps {
            match step {
                Step::TaskAffinity { thread, new, .. } => watched.moved(&[thread.pid], new),
                Step::TaskPolicy { thread: Owner { pid, .. }, .. } => {
                    changed.insert(*pid);
                }
                Step::Pin { pin, new, .. } if pin.scope == Scope::Live => {
                    let threads = pin::threads(pin, &host.proc, Path::new(RUN))?;
                    let mut tids: Vec<u32> = threads.iter().map(|(tid, _)| *tid).collect();
                    if pin.pinned == Pinned::Emulator {
                        tids.extend(workers(&tids, loads));
                    }
                    watched.moved(&tids, new);
                }
                Step::Pin { .. } => {}
                Step::CpuList { path, new, .. } if is_cpuset(path) => watched.moved(&of_group(path)?, new),
                Step::CpuList { path, old, new } => {
                    let effective = std::fs::read_to_string(path.with_file_name("effective_affinity_list"));
                    let from = effective.ok().and_then(|text| CpuSet::parse(&text)).filter(|cpus| !cpus.is_empty());
                    let from = from.or_else(|| CpuSet::parse(old)).unwrap_or_default();
                    let to = CpuSet::parse(new).unwrap_or_default();
                    watched.cpus = watched.cpus.or(&from).or(&to);
                    watched.interrupts.push((from, to));
                }
                _ => watched.machine = true,
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

    fn moved(&mut self, tids: &[u32], cpus: &str) {
        if let Some(cpus) = CpuSet::parse(cpus) {
            self.moves.extend(tids.iter().map(|tid| Move { tid: *tid, cpus: cpus.clone() }));
        }
    }

    /// Fails where there is nothing to watch.
    pub fn something(&self) -> anyhow::Result<()> {
        if self.threads.is_empty() && self.cpus.is_empty() && !self.machine {
            bail!(
                "a trial needs running threads, and this change affects none (only a domain's next start, or threads \
                 that have ended); run it without --trial"
            );
        }
        Ok(())
    }

    /// CPUs' worth of time that was lost between two looks to waiting and interrupts, as far as it counts.
    pub fn lost(&self, from: &Look, to: &Look) -> Lost {
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
    pub fn subject(&self) -> &'static str {
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

/// vhost workers that are processes of their own (before Linux 6.4): they are in the control group of their owner, QEMU.
fn workers(of_qemu: &[u32], loads: &[Load]) -> Vec<u32> {
    let Some(qemu) = loads.iter().find(|load| of_qemu.contains(&load.id.tid)) else { return Vec::new() };
    let owned = |load: &&Load| match role_of(&load.name) {
        Some((Role::Vhost, Some(owner))) => u32::try_from(owner) == Ok(qemu.id.pid) && !of_qemu.contains(&load.id.tid),
        _ => false,
    };
    loads.iter().filter(owned).map(|load| load.id.tid).collect()
}

/// The threads of the control group whose CPUs stand in `path`: `cgroup.threads` in version 2, `tasks` in version 1.
fn of_group(path: &Path) -> anyhow::Result<Vec<u32>> {
    let read = |name| std::fs::read_to_string(path.with_file_name(name));
    let text = read("cgroup.threads").or_else(|_| read("tasks"))?;
    Ok(text.split_whitespace().filter_map(|tid| tid.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let of = |step: Step| Watched::of(&[step], &host, &loads).unwrap();
        let thread = Owner { pid: 7, start_ticks: 1 };
        let (name, old, new) = (|| "x".to_owned(), || "0-3".to_owned(), || "3".to_owned());

        let moved = of(Step::TaskAffinity { thread, name: name(), old: old(), new: new() });
        assert_eq!((tids(&moved), moved.moves.len(), moved.subject()), (vec![7, 9, 10], 1, "threads waited"));
        let policy = of(Step::TaskPolicy { thread, name: name(), old: "other".into(), new: "fifo:1".into() });
        assert_eq!((tids(&policy), policy.moves.len()), (vec![7, 9], 0));
        let list = |path: &Path| Step::CpuList { path: path.to_owned(), old: old(), new: new() };
        let grouped = of(list(&group.join("cpuset.cpus")));
        assert_eq!((tids(&grouped), grouped.moves.len()), (vec![7, 8, 9, 10], 2));
        let interrupt = of(list(&irq.join("smp_affinity_list")));
        assert_eq!(interrupt.cpus.to_string(), "2-3", "the CPU that has it, not all that might");
        assert_eq!((interrupt.interrupts.len(), interrupt.threads.len()), (1, 0));
        let value = of(Step::SysfsWrite { path: "/sys/x".into(), old: "0".into(), new: "1".into() });
        assert!(value.machine && value.to_string().contains("all threads"), "{value}");
        assert!(Watched::of(&[], &host, &loads).unwrap().something().is_err());
    }
}
