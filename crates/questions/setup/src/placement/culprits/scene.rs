//! Who was on which CPU, as far as two samples show it.
//!
//! A thread that may use one CPU ran there. One that may use several is counted whole on the CPU that it was last seen on, and
//! elsewhere with the part that it would have spent there if it wandered evenly. What a CPU did beyond its interrupts and the
//! listed threads was done by programs too small or too short-lived to be listed.

use super::EXPLAINS;
use super::kinds::{by_name, is_program};
use crate::placement::proposal::ran;
use base::CpuSet;
use facts::shares;
use host::Machine;
use host::machine::{CpuUse, Thread};
use std::collections::BTreeMap;

/// A machine with what its listed threads leave unexplained of each CPU.
pub(in crate::placement) struct Scene<'a> {
    pub(super) machine: &'a Machine,
    unlisted: BTreeMap<u32, f64>,
}

impl<'a> Scene<'a> {
    pub(in crate::placement) fn of(machine: &'a Machine) -> Self {
        let taken = shares::taken(&machine.cpu_use, machine.threads.iter().filter_map(ran));
        let rest = |(cpu, taken): (u32, f64)| {
            let usage = machine.cpu_use.get(&cpu).copied().unwrap_or_default();
            (cpu, (taken - usage.irq - usage.softirq - usage.steal).max(0.0))
        };
        Self { machine, unlisted: taken.into_iter().map(rest).collect() }
    }

    /// The share of a CPU that a thread ran on `cpus`.
    pub(super) fn presence(&self, thread: &Thread, cpus: &CpuSet) -> f64 {
        let Some(run) = thread.run_share.as_ref().map(|run| run.value) else { return 0.0 };
        if thread.last_cpu.as_ref().is_some_and(|last| cpus.contains(last.value)) {
            return run;
        }
        let part = thread.affinity.as_ref().map_or(0.0, |set| {
            let here = set.value.and(cpus).len() as f64;
            here / set.value.len().max(1) as f64
        });
        run * part
    }

    /// Threads that `wanted` takes and that ran on `cpus`, with what they ran there, the busiest first.
    pub(super) fn company(&self, cpus: &CpuSet, wanted: impl Fn(usize, &Thread) -> bool) -> Vec<(usize, f64)> {
        let threads = self.machine.threads.iter().enumerate();
        let mut here: Vec<(usize, f64)> = threads
            .filter(|(position, thread)| wanted(*position, thread))
            .map(|(position, thread)| (position, self.presence(thread, cpus)))
            .filter(|(_, ran)| *ran > 0.0)
            .collect();
        here.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        here
    }

    /// Those of them alone that may run nowhere else, where what these ran explains a wait: the others may have been anywhere.
    pub(super) fn bound(&self, mut here: Vec<(usize, f64)>, cpus: &CpuSet, waited: f64) -> Vec<(usize, f64)> {
        let is_bound = |(position, _): &(usize, f64)| {
            self.machine.threads[*position].affinity.as_ref().is_some_and(|set| set.value.is_within(cpus))
        };
        if here.iter().filter(|one| is_bound(one)).map(|(_, ran)| ran).sum::<f64>() >= EXPLAINS * waited {
            here.retain(is_bound);
        }
        here
    }

    /// What such threads ran together, no more than the CPUs can give; and whether it may be less, because one may run elsewhere: then
    /// no more than the CPUs did beside what `victim` ran there.
    pub(super) fn together(&self, here: &[(usize, f64)], cpus: &CpuSet, victim: &Thread) -> (f64, bool) {
        let sum: f64 = here.iter().map(|(_, ran)| ran).sum();
        let elsewhere = |thread: &Thread| thread.affinity.as_ref().is_none_or(|set| !set.value.is_within(cpus));
        let at_most = here.iter().any(|(position, _)| elsewhere(&self.machine.threads[*position]));
        let busy = self.used(cpus, |usage| 1.0 - usage.idle - usage.irq - usage.softirq - usage.steal);
        let own = self.presence(victim, cpus);
        // Less than the victim itself ran there: the two were not counted over the same time.
        let beside = busy.filter(|busy| at_most && *busy >= own).map(|busy| busy - own);
        (sum.min(beside.unwrap_or(cpus.len() as f64)), at_most)
    }

    /// What ran on `cpus` beyond interrupts and listed threads.
    pub(super) fn unlisted(&self, cpus: &CpuSet) -> f64 {
        cpus.iter().filter_map(|cpu| self.unlisted.get(&cpu)).sum()
    }

    /// A share of each of `cpus` added up; `None` where the use of one is unknown.
    pub(super) fn used(&self, cpus: &CpuSet, share: impl Fn(&CpuUse) -> f64) -> Option<f64> {
        cpus.iter().map(|cpu| self.machine.cpu_use.get(&cpu).map(&share)).sum()
    }
    /// The CPU of these that gave most time to programs of the host, how much, and the busiest of them as the end of a sentence.
    pub(in crate::placement) fn programs(&self, cpus: &CpuSet) -> Option<(u32, f64, String)> {
        let on = |cpu: u32| {
            self.machine.cpu_use.get(&cpu)?;
            let here = self.company(&CpuSet::one(cpu), |_, thread| is_program(thread));
            let ran: f64 = here.iter().map(|(_, ran)| ran).sum();
            let name = by_name(self, &here)
                .into_iter()
                .next()
                .map_or(String::new(), |(name, _)| format!(", most of it {name}"));
            Some((cpu, ran + self.unlisted(&CpuSet::one(cpu)), name))
        };
        cpus.iter().filter_map(on).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
