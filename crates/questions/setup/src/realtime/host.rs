//! A machine as the audit sees it: the CPUs that real time is for, the kernel's command line, and rates between two samples.

use base::CpuSet;
use host::machine::{Role, Thread};
use host::{Machine, Snapshot};
use std::collections::BTreeMap;

/// Samples closer together than this give no rates.
const SHORTEST_SPAN_NS: u64 = 500_000_000;

pub(super) struct Host<'a> {
    /// Its name in the recording.
    pub id: &'a str,
    pub machine: &'a Machine,
    /// The first sample, where there are two.
    pub first: Option<&'a Snapshot>,
    pub last: &'a Snapshot,
    /// CPUs that real time is for.
    pub cpus: CpuSet,
    /// Words of the kernel's command line, with what stands behind their `=`.
    pub boot: Vec<(String, Option<String>)>,
}

impl<'a> Host<'a> {
    /// Of its samples, the last of which says what holds.
    pub(super) fn of(id: &'a str, machine: &'a Machine, samples: &'a [Snapshot]) -> Option<Self> {
        let last = samples.last()?;
        let first = samples.first().filter(|_| samples.len() > 1);
        let line = last.line("proc/cmdline").unwrap_or_default();
        // What stands behind `--` is for init.
        let words = line.split_whitespace().take_while(|word| *word != "--");
        let boot = words.map(|word| match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word.to_owned(), None),
        });
        let boot = boot.collect();
        Some(Self { id, machine, first, last, cpus: for_real_time(machine), boot })
    }

    pub(super) fn vcpus(&self) -> impl Iterator<Item = &'a Thread> {
        vcpus(self.machine)
    }

    /// CPUs that run, are not set apart, and that no vCPU or polling thread is bound to.
    pub(super) fn rest(&self) -> CpuSet {
        let online = &self.machine.topology.online;
        let bound = self.machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_) | Role::Pmd));
        let sets =
            bound.filter_map(|thread| Some(&thread.affinity.as_ref()?.value)).filter(|set| !online.is_within(set));
        let taken = sets.fold(self.cpus.or(&set_apart(self.machine)), |all, set| all.or(set));
        online.without(&taken)
    }

    /// What stands behind a word of the command line, the last one; `Some(None)`: nothing does.
    pub(super) fn booted(&self, word: &str) -> Option<Option<&str>> {
        let same = |name: &str| name.replace('-', "_") == word;
        self.boot.iter().rev().find(|(name, _)| same(name)).map(|(_, value)| value.as_deref())
    }

    /// Counts of a row of `/proc/interrupts` by CPU, a second: `LOC`, `NMI`.
    pub(super) fn interrupts_per_s(&self, row: &str) -> Option<BTreeMap<u32, f64>> {
        const FILE: &str = "proc/interrupts";
        let (first, last, seconds) = self.both(FILE)?;
        let (before, after) = (counts(&first, row)?, counts(&last, row)?);
        let rate = |(cpu, count): (u32, u64)| {
            let came = count.saturating_sub(before.get(&cpu).copied().unwrap_or(count));
            (cpu, came as f64 / seconds)
        };
        Some(after.into_iter().map(rate).collect())
    }

    /// The same of the number in a file.
    pub(super) fn rate(&self, path: &str) -> Option<f64> {
        let (first, last, seconds) = self.both(path)?;
        let number = |text: String| text.trim().parse::<u64>().ok();
        Some(number(last)?.saturating_sub(number(first)?) as f64 / seconds)
    }

    /// A file in both samples, with the seconds between them.
    pub(super) fn both(&self, path: &str) -> Option<(String, String, f64)> {
        let first = self.first?;
        let span = self.last.read_at_ns(path)?.checked_sub(first.read_at_ns(path)?)?;
        (span >= SHORTEST_SPAN_NS).then_some(())?;
        Some((first.read(path)?, self.last.read(path)?, span as f64 / 1e9))
    }
}

fn vcpus(machine: &Machine) -> impl Iterator<Item = &Thread> {
    machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)))
}

/// SCHED_FIFO or SCHED_RR (1 and 2 of include/uapi/linux/sched.h, Linux 6.12).
pub(super) fn is_real_time(thread: &Thread) -> bool {
    matches!(thread.policy, Some(1 | 2))
}

/// CPUs that were set apart from the scheduler's balancing, or from the tick.
pub(super) fn set_apart(machine: &Machine) -> CpuSet {
    let topology = &machine.topology;
    let sets = [&topology.isolated, &topology.nohz_full].into_iter().flatten();
    sets.fold(CpuSet::default(), |all, set| all.or(set)).and(&topology.online)
}

/// CPUs of vCPUs with a real-time policy and of those on CPUs set apart; else all that were set apart; else of pinned vCPUs.
fn for_real_time(machine: &Machine) -> CpuSet {
    let apart = set_apart(machine);
    let online = &machine.topology.online;
    let bound = |wanted: &dyn Fn(&Thread, &CpuSet) -> bool| {
        let sets = vcpus(machine).filter_map(|thread| Some((thread, thread.affinity.as_ref()?.value.and(online))));
        let sets = sets.filter(|(thread, set)| set.len() < online.len() && wanted(thread, set));
        sets.fold(CpuSet::default(), |all, (_, set)| all.or(&set))
    };
    let real_time = bound(&|thread, set| is_real_time(thread) || set.meets(&apart));
    let known = [real_time, apart.clone(), bound(&|_, _| true)];
    known.into_iter().find(|cpus| !cpus.is_empty()).unwrap_or_default()
}

/// A row of `/proc/interrupts` by the CPUs that its header names.
fn counts(text: &str, row: &str) -> Option<BTreeMap<u32, u64>> {
    let mut lines = text.lines();
    let header = lines.next()?.split_whitespace();
    let cpus: Vec<u32> = header.map_while(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    let counts = lines.find_map(|line| line.trim_start().strip_prefix(row)?.strip_prefix(':'))?;
    Some(cpus.into_iter().zip(counts.split_whitespace().map_while(|count| count.parse().ok())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_interrupts_have_the_cpus_of_the_header() {
        let text = "           CPU0       CPU2\n  0:  5  6  IO-APIC  2-edge  timer\nLOC:   10   20   Local timer interrupts\n\
                    NMI:  1  2  Non-maskable interrupts\n";
        assert_eq!(counts(text, "LOC"), Some([(0, 10), (2, 20)].into()));
        assert_eq!(counts(text, "RES"), None);
    }
}
