//! Which processes run VMs, what these are called, and which vCPU a thread runs.

use analysis::facts::walk::vcpu_names;
use analysis::flow::live::Vcpu;
use base::recording::VmProcess;
use host::Snapshot;
use host::machine::{vm_named_in, vm_processes};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names of VMs by their processes; those of one name get their process behind it.
pub(crate) fn distinct_names(names: BTreeMap<u32, String>) -> BTreeMap<u32, String> {
    let all: Vec<String> = names.values().cloned().collect();
    let is_shared = |name: &String| all.iter().filter(|other| *other == name).count() > 1;
    let apart = |(pid, name)| (pid, if is_shared(&name) { format!("{name}-{pid}") } else { name });
    names.into_iter().map(apart).collect()
}

/// What processes run VMs on this host, with their threads.
pub(crate) fn vms(host: &Path) -> Vec<VmProcess> {
    Snapshot::open(host).map(|now| vm_processes(&now).vms).unwrap_or_default()
}

/// A process that runs a vCPU, by what `record` calls it.
pub(crate) fn process(host: &Path, pid: u32) -> VmProcess {
    let command = std::fs::read(host.join(format!("proc/{pid}/cmdline"))).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    VmProcess { pid: pid as i32, vm: vm_named_in(&command), tids: Vec::new() }
}

/// The number of the vCPU that a thread runs, by its name.
pub(crate) fn number_of(task: &Path) -> Option<u32> {
    let comm = std::fs::read_to_string(task.join("comm")).ok()?;
    vcpu_names::split(comm.trim_end()).1
}

/// Whether a thread sleeps (state S of proc_pid_stat(5)).
pub(crate) fn is_asleep(task: &Path) -> bool {
    std::fs::read_to_string(task.join("stat"))
        .is_ok_and(|stat| fields(&stat).first().is_some_and(|state| *state == "S"))
}

/// The fields of `stat` from the state on: a name may contain anything.
pub(crate) fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map_or_else(Vec::new, |(_, rest)| rest.split_whitespace().collect())
}

/// vCPUs without a number get the lowest that are free, in the order of their threads.
pub(crate) fn number(vcpus: &mut [Vcpu]) {
    vcpus.sort_by(|a, b| (&a.vm, a.tid).cmp(&(&b.vm, b.tid)));
    let mut taken: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for vcpu in vcpus.iter().filter(|vcpu| vcpu.vcpu != u32::MAX) {
        taken.entry(vcpu.vm.clone()).or_default().insert(vcpu.vcpu);
    }
    for vcpu in vcpus.iter_mut().filter(|vcpu| vcpu.vcpu == u32::MAX) {
        let taken = taken.entry(vcpu.vm.clone()).or_default();
        vcpu.vcpu = (0..).find(|free| !taken.contains(free)).unwrap_or(0);
        taken.insert(vcpu.vcpu);
    }
    vcpus.sort_by(|a, b| (&a.vm, a.vcpu, a.tid).cmp(&(&b.vm, b.vcpu, b.tid)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_asleep_by_its_state_whatever_its_name() {
        let stat = |state: &str| format!("42 (CPU 0/KVM) R) {state} 1 2 3");
        assert_eq!((fields(&stat("S"))[0], fields(&stat("R"))[0]), ("S", "R"));
    }

    #[test]
    fn two_vms_of_one_name_stay_two() {
        let names = [(7, "web"), (9, "web"), (8, "db")].map(|(pid, name)| (pid, name.to_owned()));
        let apart: Vec<String> = distinct_names(names.into()).into_values().collect();
        assert_eq!(apart, ["web-7", "db", "web-9"]);
    }

    #[test]
    fn vcpus_without_a_number_get_those_that_are_free() {
        let vcpu = |tid, vcpu| Vcpu { vm: "web".to_owned(), tid, vcpu, ..Vcpu::default() };
        let mut vcpus = [vcpu(12, u32::MAX), vcpu(11, 0), vcpu(10, u32::MAX)];
        number(&mut vcpus);
        assert_eq!(vcpus.map(|vcpu| (vcpu.tid, vcpu.vcpu)), [(11, 0), (10, 1), (12, 2)]);
    }
}
