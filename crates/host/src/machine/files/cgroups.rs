//! CPU sets, quotas and weights of cgroups, version 1 and 2, as far as a thread of the machine is in one.
//!
//! Files: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/cpusets.rst, Linux 6.12. In version 2 an empty `cpuset.cpus`
//! means "those of the group above", and `cpuset.cpus.effective` is what is left. In version 1 `cpuset.effective_cpus` is.
//! Quotas: `cpu.max` and `cpu.stat` (version 2, microseconds), `cpu.cfs_quota_us` and `cpu.stat` (version 1, nanoseconds):
//! Documentation/scheduler/sched-bwc.rst, Linux 6.12.

use super::Samples;
use crate::Snapshot;
use crate::machine::{Cgroup, Fact, Machine, Quota, Thread, Throttled};
use base::CpuSet;
use std::collections::BTreeSet;

/// Where cgroups are mounted, of version 2 and of version 1.
const ROOTS: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/cpuset"];

/// Where the CPU controller is mounted, of version 2 and under the names that it has in version 1.
const TIME_ROOTS: [&str; 4] =
    ["sys/fs/cgroup", "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpuacct,cpu"];

/// The groups that threads are in, and all groups above them.
pub(super) fn groups(samples: &Samples<'_>, machine: &mut Machine) {
    let snapshot = samples.last;
    let known = above(machine, |thread| thread.cgroup.as_deref());
    // The root has what partitions leave of the machine.
    let known = known.into_iter().chain([""]);
    let known = known.filter_map(|path| Some((path.to_owned(), group(snapshot, path)?))).collect();
    let limited = above(machine, |thread| thread.time_group.as_deref());
    let quotas = limited.iter().filter_map(|path| Some(((*path).to_owned(), quota(samples, path)?))).collect();
    let weights = limited.iter().filter_map(|path| Some(((*path).to_owned(), weight(snapshot, path)?))).collect();
    (machine.quotas, machine.weights, machine.cgroups) = (quotas, weights, known);
    // Within an isolated partition the scheduler balances nothing, as with `isolcpus`.
    let isolated = machine.cgroups.values().filter(|group| group.partition.as_deref() == Some("isolated"));
    let isolated: Vec<CpuSet> = isolated.filter_map(|group| Some(group.effective.as_ref()?.value.clone())).collect();
    if !isolated.is_empty() {
        let booted = machine.topology.isolated.take().unwrap_or_default();
        machine.topology.isolated = Some(isolated.iter().fold(booted, |all, cpus| all.or(cpus)));
    }
}

/// The groups of threads, and all groups above them.
pub(super) fn above(machine: &Machine, group: impl Fn(&Thread) -> Option<&str>) -> BTreeSet<&str> {
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    for mut path in machine.threads.iter().filter_map(group) {
        while !path.is_empty() && paths.insert(path) {
            path = &path[..path.rfind('/').unwrap_or(0)];
        }
    }
    paths
}

/// The limit of a group, where it has one, and what that took from it.
fn quota(samples: &Samples<'_>, path: &str) -> Option<Quota> {
    TIME_ROOTS.iter().find_map(|root| {
        let of = |file: &str| format!("{root}{}/{file}", path.trim_end_matches('/'));
        let line = |file: &str| samples.last.line(&of(file));
        let (text, place) = match line("cpu.max") {
            Some(text) => (text, of("cpu.max")),
            None => (format!("{} {}", line("cpu.cfs_quota_us")?, line("cpu.cfs_period_us")?), of("cpu.cfs_quota_us")),
        };
        // `max`, and -1 in version 1, are no limit.
        let (allowed_us, period_us) = text.split_once(' ')?;
        let (allowed_us, period_us): (u64, u64) = (allowed_us.parse().ok()?, period_us.trim().parse().ok()?);
        let cpus = (period_us > 0).then(|| allowed_us as f64 / period_us as f64)?;
        let stat = of("cpu.stat");
        let measured = samples.both(&stat).and_then(|(first, last, span_ns)| {
            // Counts that went back are those of a group that was made anew.
            let (first, last) = (throttled(&first)?, throttled(&last)?);
            let ns = last.ns.checked_sub(first.ns)?;
            let passed = Throttled {
                periods: last.periods.checked_sub(first.periods)?,
                throttled: last.throttled.checked_sub(first.throttled)?,
                ns,
                cpus: ns as f64 / span_ns as f64,
            };
            Some(Fact::new(passed, stat.clone()))
        });
        let since_start = samples.last.read(&stat).and_then(|text| throttled(&text));
        Some(Quota { cpus: Fact::new(cpus, place), since_start, measured })
    })
}

/// The weight of a group beside those next to it.
fn weight(snapshot: &Snapshot, path: &str) -> Option<Fact<u64>> {
    let files =
        TIME_ROOTS.iter().flat_map(|root| ["cpu.weight", "cpu.shares"].map(|file| format!("{root}{path}/{file}")));
    files.into_iter().find_map(|file| Some(Fact::new(snapshot.line(&file)?.trim().parse().ok()?, file)))
}

/// What `cpu.stat` says of throttling; none where the controller is off.
fn throttled(text: &str) -> Option<Throttled> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let ns = value("throttled_time").or_else(|| value("throttled_usec").map(|us| us.saturating_mul(1_000)))?;
    Some(Throttled { periods: value("nr_periods")?, throttled: value("nr_throttled")?, ns, cpus: 0.0 })
}

fn group(snapshot: &Snapshot, path: &str) -> Option<Cgroup> {
    // Version 1 first: on a host with both, version 2 has no cpuset.
    ROOTS.iter().rev().find_map(|root| {
        let of = |file: &str| format!("{root}{}/{file}", path.trim_end_matches('/'));
        let set = |file: &str| {
            let cpus = CpuSet::parse(&snapshot.line(&of(file))?).filter(|cpus| !cpus.is_empty())?;
            Some(Fact::new(cpus, of(file)))
        };
        let cpus = set("cpuset.cpus");
        let effective = set("cpuset.cpus.effective").or_else(|| set("cpuset.effective_cpus"));
        let memory = set("cpuset.mems.effective").or_else(|| set("cpuset.mems"));
        let partition = snapshot.line(&of("cpuset.cpus.partition"));
        let told = cpus.is_some() || effective.is_some() || memory.is_some() || partition.is_some();
        told.then(|| Cgroup {
            // A kernel that does not tell what is left of a set gives all of it.
            effective: effective.or_else(|| cpus.clone()),
            cpus,
            memory_nodes: memory.map(|nodes| nodes.value),
            partition,
        })
    })
}
