//! CPU sets of cgroups, version 1 and 2, as far as a thread of the machine is in one.
//!
//! Files: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/cpusets.rst, Linux 6.12. In version 2 an empty `cpuset.cpus`
//! means "those of the group above", and `cpuset.cpus.effective` is what is left. In version 1 `cpuset.effective_cpus` is.

use crate::Snapshot;
use crate::machine::{Cgroup, Fact, Machine, Thread};
use base::CpuSet;
use std::collections::BTreeSet;

/// Where cgroups are mounted, of version 2 and of version 1.
const ROOTS: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/cpuset"];

/// The groups that threads are in, and all groups above them.
pub(super) fn groups(snapshot: &Snapshot, machine: &mut Machine) {
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    for mut path in machine.threads.iter().filter_map(|thread: &Thread| thread.cgroup.as_deref()) {
        while !path.is_empty() && paths.insert(path) {
            path = &path[..path.rfind('/').unwrap_or(0)];
        }
    }
    let known = paths.into_iter().filter_map(|path| Some((path.to_owned(), group(snapshot, path)?)));
    machine.cgroups = known.collect();
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
        let told = cpus.is_some() || effective.is_some() || partition.is_some();
        told.then(|| Cgroup {
            // A kernel that does not tell what is left of a set gives all of it.
            effective: effective.or_else(|| cpus.clone()),
            cpus,
            memory_nodes: memory.map(|nodes| nodes.value),
            partition,
        })
    })
}
