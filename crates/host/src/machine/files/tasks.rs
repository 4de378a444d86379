//! Threads of VMs, whatever the kernel: which they are, where they may run, how long they ran and waited.
//!
//! vhost workers are processes of their own (`vhost-<owner>`, before Linux 6.4, and again where chosen) or threads of QEMU
//! (since 6.4): the threads themselves tell, never the kernel's version. `schedstat` of zeros means that the kernel does not
//! count, not that nothing waited. Fields: Documentation/filesystems/proc.rst and scheduler/sched-stats.rst, Linux 6.12.

use super::Samples;
use crate::machine::{Domain, Fact, Machine, Role, Thread, domain_of, role_of, vm_processes};
use crate::sched::{Shares, Stat, Times};
use crate::{Snapshot, budget};
use base::CpuSet;
use std::collections::{BTreeMap, BTreeSet};

/// A thread of no VM is kept if it ran more than this share of a CPU: somebody may wait for it.
const NOTABLE: f64 = 0.05;

/// All threads of VMs, and busy ones of nobody.
pub(super) fn threads(samples: &Samples<'_>, machine: &mut Machine) {
    let snapshot = samples.last;
    let vms = vm_processes(snapshot).vms;
    let number = |pid: i32| numbered(&snapshot.read(&format!("proc/{pid}/cmdline"))?);
    let names = told_apart(vms.iter().map(|process| (process.pid, process.name())).collect(), &number);
    let processes = snapshot.names("proc").into_iter().filter_map(|name| name.parse::<i32>().ok());
    for pid in processes {
        let vm = names.get(&pid).cloned();
        for tid in snapshot.names(&format!("proc/{pid}/task")).into_iter().filter_map(|tid| tid.parse::<i32>().ok()) {
            let Some(mut thread) = thread(samples, pid, tid, &mut machine.passing) else { continue };
            let told = role_of(&thread.name);
            thread.vm.clone_from(&vm);
            match told {
                // A kernel thread that a VM's process owns by name.
                Some((Role::Vhost, Some(owner))) if vm.is_none() => {
                    thread.vm = names.get(&owner).cloned();
                    thread.role = Role::Vhost;
                }
                // Only QEMU's first thread is its main loop; others under the program's name are not told apart.
                Some((Role::Emulator, _)) => thread.role = if tid == pid { Role::Emulator } else { Role::Other },
                Some((role, _)) => thread.role = role,
                None if vm.is_some() && tid == pid => thread.role = Role::Emulator,
                None => {}
            }
            let notable = thread.run_share.as_ref().is_some_and(|run| run.value > NOTABLE);
            if thread.vm.is_some() || thread.role == Role::Pmd || notable {
                machine.threads.push(thread);
            }
        }
    }
    machine.passing.1 = gone(samples);
    machine.threads.sort_by(|a, b| (&a.vm, a.role, a.tid).cmp(&(&b.vm, b.role, b.tid)));
    let mut vcpus: BTreeMap<&str, u32> = BTreeMap::new();
    for thread in machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_))) {
        *vcpus.entry(thread.vm.as_deref().unwrap_or_default()).or_default() += 1;
    }
    let mut known: BTreeSet<String> = machine.domains.iter().map(|domain| domain.name.clone()).collect();
    for (pid, name) in names.into_iter().take(budget::DOMAINS) {
        let vcpus = vcpus.get(name.as_str()).copied().unwrap_or(0);
        let path = format!("proc/{pid}/cmdline");
        let started = domain_of(&snapshot.read(&path).unwrap_or_default(), &name, &path);
        if known.insert(name.clone()) {
            machine.domains.push(Domain { vcpus: Some(vcpus), ..started });
        } else if let Some(domain) = machine.domains.iter_mut().find(|domain| domain.name == name) {
            domain.complete(started);
        }
    }
}

/// The number by which Proxmox knows a VM, `-id 101` of its command.
fn numbered(command: &str) -> Option<u32> {
    let mut words = command.split('\0');
    words.find(|word| *word == "-id")?;
    words.next()?.parse().ok()
}

/// Names of VMs by their processes; those that several have get their `number`, else their process's: Proxmox allows it.
fn told_apart(mut names: BTreeMap<i32, String>, number: &dyn Fn(i32) -> Option<u32>) -> BTreeMap<i32, String> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    names.values().for_each(|name| *counts.entry(name.clone()).or_default() += 1);
    for (pid, name) in &mut names {
        if counts.get(name.as_str()).is_some_and(|count| *count > 1) {
            *name = match number(*pid) {
                Some(number) => format!("{name}-{number}"),
                None => format!("{name}-{pid}"),
            };
        }
    }
    names
}

pub(super) fn some(snapshot: &Snapshot, wanted: &dyn Fn(i32) -> bool) -> Vec<Thread> {
    let samples = Samples { first: None, last: snapshot };
    let pids = snapshot.names("proc").into_iter().filter_map(|name| name.parse::<i32>().ok());
    let tasks = pids.flat_map(|pid| {
        let tids = snapshot.names(&format!("proc/{pid}/task")).into_iter().filter_map(|name| name.parse::<i32>().ok());
        tids.filter(|tid| wanted(*tid)).map(|tid| (pid, tid)).collect::<Vec<_>>()
    });
    tasks.filter_map(|(pid, tid)| thread(&samples, pid, tid, &mut (0, 0))).collect()
}

fn thread(samples: &Samples<'_>, pid: i32, tid: i32, passing: &mut (u64, u64)) -> Option<Thread> {
    let snapshot = samples.last;
    let of = |file: &str| format!("proc/{pid}/task/{tid}/{file}");
    let now = Stat::parse(&snapshot.read(&of("stat"))?)?;
    let mut thread = Thread::new(Role::Other, snapshot.line(&of("comm"))?);
    (thread.pid, thread.tid, thread.policy, thread.nice) = (Some(pid), Some(tid), now.policy, now.nice);
    thread.is_fixed = now.is_fixed;
    thread.start_ticks = Some(now.start_ticks);
    thread.last_cpu = Some(Fact::new(now.last_cpu, of("stat")));
    let status = snapshot.read(&of("status")).unwrap_or_default();
    let list = |key: &str| status.lines().find_map(|line| CpuSet::parse(line.strip_prefix(key)?));
    thread.affinity = list("Cpus_allowed_list:").map(|cpus| Fact::new(cpus, of("status")));
    thread.memory_nodes = list("Mems_allowed_list:");
    // libvirt gives vCPUs and the emulator groups of their own.
    let groups = [of("cgroup"), format!("proc/{pid}/cgroup")];
    let texts: Vec<String> = groups.iter().filter_map(|path| snapshot.read(path)).collect();
    let group = |controller| texts.iter().find_map(|text| cgroup(text, controller));
    (thread.cgroup, thread.time_group) = (group("cpuset"), group("cpu"));
    if let Some(first) = samples.first {
        // A number that was given to another thread meanwhile is another thread.
        let old = first.read(&of("stat")).and_then(|text| Stat::parse(&text));
        let same = old.is_some_and(|old| old.start_ticks == now.start_ticks);
        if same {
            rates(samples, &of("schedstat"), &mut thread);
        } else {
            passing.0 += 1;
        }
    }
    Some(thread)
}

/// Shares of the time between two reads: run, and ready without running.
fn rates(samples: &Samples<'_>, path: &str, thread: &mut Thread) {
    let Some((first, last, span_ns)) = samples.both(path) else { return };
    if let (Some(first), Some(last)) = (Times::parse(&first), Times::parse(&last))
        && last.counted()
    {
        let shares = Shares::between(first, last, span_ns);
        thread.run_share = Some(Fact::new(shares.run, path));
        thread.wait_share = Some(Fact::new(shares.wait, path));
    }
}

/// The group of a controller of version 1, else the only group of version 2.
pub(super) fn cgroup(text: &str, controller: &str) -> Option<String> {
    let path =
        |line: &str| line.splitn(3, ':').nth(2).filter(|path| path.len() <= budget::PATH_BYTES).map(str::to_owned);
    let of = |wanted: &dyn Fn(&str) -> bool| {
        text.lines().find(|line| line.split(':').nth(1).is_some_and(wanted)).and_then(path)
    };
    of(&|controllers| controllers.split(',').any(|one| one == controller)).or_else(|| of(&str::is_empty))
}

/// Threads of the first sample that the last one has not.
fn gone(samples: &Samples<'_>) -> u64 {
    let Some(first) = samples.first else { return 0 };
    let tasks = |snapshot: &Snapshot| snapshot.find("proc/*/task/*/stat");
    let last: std::collections::BTreeSet<String> = tasks(samples.last).into_iter().collect();
    tasks(first).iter().filter(|path| !last.contains(*path)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_vms_of_one_name_stay_two() {
        let names = [(101, "web"), (201, "web"), (301, "db")].map(|(pid, name)| (pid, name.to_owned()));
        let told =
            |number: &dyn Fn(i32) -> Option<u32>| told_apart(names.clone().into(), number).into_values().collect();
        let by_process: Vec<String> = told(&|_| None);
        assert_eq!(by_process, ["web-101", "web-201", "db"]);
        let by_number: Vec<String> =
            told(&|pid| (pid == 201).then(|| numbered("/usr/bin/kvm\0-id\x00402\0-name\0web"))?);
        assert_eq!(by_number, ["web-101", "web-402", "db"], "people know it by this number");
    }
}
