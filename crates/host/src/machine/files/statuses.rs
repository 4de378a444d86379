//! Threads of a tree that has processes' `status` and `cgroup` but no threads: a sosreport.
//!
//! `/proc/<pid>/status` is that of a process's first thread: QEMU's main loop, and each vhost worker that is a thread of the
//! kernel. Masks of QEMU's other threads are not in it; libvirt's pins stand for them, as they were asked for.
//! Files: sos 4, plugins process (`/proc/<pid>/status`) and libvirt (`cgroup`, `numa_maps` of each QEMU).

use super::tasks::cgroup;
use crate::Snapshot;
use crate::machine::{Fact, Machine, Role, Thread, role_of};
use base::CpuSet;
use std::collections::BTreeMap;

/// Gives threads the masks in force, and adds workers of the kernel.
pub(super) fn masks(snapshot: &Snapshot, machine: &mut Machine) {
    let mut owners: BTreeMap<i32, String> = BTreeMap::new();
    for domain in machine.domains.iter().rev() {
        owners.extend(domain.pid.map(|pid| (pid, domain.name.clone())));
    }
    let mut workers = Workers::of(&machine.threads);
    let processes = snapshot.names("proc").into_iter().filter_map(|name| name.parse::<i32>().ok());
    for pid in processes {
        let place = format!("proc/{pid}/status");
        let Some(status) = snapshot.read(&place) else { continue };
        let field = |key: &str| status.lines().find_map(|line| Some(line.strip_prefix(key)?.trim()));
        let mask = field("Cpus_allowed_list:").and_then(CpuSet::parse).map(|cpus| Fact::new(cpus, place.as_str()));
        if let Some((Role::Vhost, Some(owner))) = field("Name:").and_then(role_of) {
            let name = field("Name:").unwrap_or_default();
            workers.note(&mut machine.threads, pid, owners.get(&owner).cloned(), name);
        }
        let groups = snapshot.read(&format!("proc/{pid}/cgroup"));
        let group = |controller| groups.as_deref().and_then(|text| cgroup(text, controller));
        for index in workers.by_tid.get(&pid).into_iter().flatten() {
            let thread = &mut machine.threads[*index];
            thread.affinity = mask.clone().or_else(|| thread.affinity.take());
            (thread.cgroup, thread.time_group) = (group("cpuset"), group("cpu"));
        }
    }
}

/// Which threads have an id, and which workers of each VM have none yet.
struct Workers {
    by_tid: BTreeMap<i32, Vec<usize>>,
    /// By VM, those that its interfaces ask for, the first at the end.
    nameless: BTreeMap<String, Vec<usize>>,
}

impl Workers {
    fn of(threads: &[Thread]) -> Self {
        let mut workers = Self { by_tid: BTreeMap::new(), nameless: BTreeMap::new() };
        for (index, thread) in threads.iter().enumerate().rev() {
            match (thread.tid, &thread.vm) {
                (Some(tid), _) => workers.by_tid.entry(tid).or_default().push(index),
                (None, Some(vm)) if thread.role == Role::Vhost => {
                    workers.nameless.entry(vm.clone()).or_default().push(index);
                }
                _ => {}
            }
        }
        workers
    }

    /// Notes a worker, in place of one that the VM's interfaces ask for.
    fn note(&mut self, threads: &mut Vec<Thread>, tid: i32, vm: Option<String>, name: &str) {
        let Some(vm) = vm.filter(|_| !self.by_tid.contains_key(&tid)) else { return };
        let asked = self.nameless.get_mut(&vm).and_then(Vec::pop);
        let mut thread = Thread::new(Role::Vhost, name);
        (thread.vm, thread.pid, thread.tid) = (Some(vm), Some(tid), Some(tid));
        let index = asked.unwrap_or(threads.len());
        match threads.get_mut(index) {
            Some(known) => *known = thread,
            None => threads.push(thread),
        }
        self.by_tid.entry(tid).or_default().push(index);
    }
}
