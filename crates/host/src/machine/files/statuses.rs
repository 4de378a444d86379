//! Threads of a tree that has processes' `status` and `cgroup` but no threads: a sosreport.
//!
//! `/proc/<pid>/status` is that of a process's first thread: QEMU's main loop, and each vhost worker that is a thread of the
//! kernel. Masks of QEMU's other threads are not in it; libvirt's pins stand for them, as they were asked for.
//! Files: sos 4, plugins process (`/proc/<pid>/status`) and libvirt (`cgroup`, `numa_maps` of each QEMU).

use super::tasks::cgroup;
use crate::Snapshot;
use crate::machine::{Fact, Machine, Role, Thread, role_of};
use base::CpuSet;

/// Gives threads the masks in force, and adds workers of the kernel.
pub(super) fn masks(snapshot: &Snapshot, machine: &mut Machine) {
    let processes = snapshot.names("proc").into_iter().filter_map(|name| name.parse::<i32>().ok());
    for pid in processes {
        let place = format!("proc/{pid}/status");
        let Some(status) = snapshot.read(&place) else { continue };
        let field = |key: &str| status.lines().find_map(|line| Some(line.strip_prefix(key)?.trim()));
        let mask = field("Cpus_allowed_list:").and_then(CpuSet::parse).map(|cpus| Fact::new(cpus, place.as_str()));
        if let Some((Role::Vhost, Some(owner))) = field("Name:").and_then(role_of) {
            let vm = machine.domains.iter().find(|domain| domain.pid == Some(owner)).map(|domain| domain.name.clone());
            worker(&mut machine.threads, pid, vm, field("Name:").unwrap_or_default());
        }
        let group = snapshot.read(&format!("proc/{pid}/cgroup")).and_then(|text| cgroup(&text));
        for thread in machine.threads.iter_mut().filter(|thread| thread.tid == Some(pid)) {
            thread.affinity = mask.clone().or_else(|| thread.affinity.take());
            thread.cgroup.clone_from(&group);
        }
    }
}

/// Notes a worker, in place of one that the VM's interfaces ask for.
fn worker(threads: &mut Vec<Thread>, tid: i32, vm: Option<String>, name: &str) {
    if vm.is_none() || threads.iter().any(|thread| thread.tid == Some(tid)) {
        return;
    }
    let mut thread = Thread::new(Role::Vhost, name);
    (thread.vm, thread.pid, thread.tid) = (vm, Some(tid), Some(tid));
    let asked = |known: &&mut Thread| known.role == Role::Vhost && known.tid.is_none() && known.vm == thread.vm;
    match threads.iter_mut().find(asked) {
        Some(known) => *known = thread,
        None => threads.push(thread),
    }
}
