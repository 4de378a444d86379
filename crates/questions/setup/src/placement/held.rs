//! Which CPUs has a VM for itself, however idle it was while somebody looked?
//!
//! ```text
//! one VM's vCPU alone is bound to the CPU alone                              its CPU
//! as many vCPUs of one VM as a set has CPUs, and no vCPU of another bound    its set
//! ```
//! Whoever pinned a VM so meant these CPUs for it: what it leaves now it wants again when it works. A wider mask of another VM that takes
//! such CPUs in is what is wrong, not the pin.

use base::CpuSet;
use host::Machine;
use host::machine::{Role, Thread};
use std::collections::BTreeMap;

/// The VM that has each CPU for itself.
pub(super) fn held(machine: &Machine) -> BTreeMap<u32, &str> {
    let online = &machine.topology.online;
    let vcpus = machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    let bound = vcpus.filter_map(|thread| Some((thread.vm.as_deref()?, &thread.affinity.as_ref()?.value)));
    let bound: Vec<(&str, &CpuSet)> = bound.filter(|(_, set)| !online.is_empty() && !online.is_within(set)).collect();
    let mut pins: BTreeMap<u32, Option<&str>> = BTreeMap::new();
    let mut sets: BTreeMap<(&str, String), (&CpuSet, usize)> = BTreeMap::new();
    for (vm, set) in &bound {
        match set.first().filter(|_| set.len() == 1) {
            // A CPU that vCPUs of two VMs are bound to is neither's.
            Some(cpu) => {
                pins.entry(cpu).and_modify(|one| *one = one.filter(|one| one == vm)).or_insert(Some(vm));
            }
            None => sets.entry((vm, set.to_string())).or_insert((set, 0)).1 += 1,
        }
    }
    let mut held: BTreeMap<u32, &str> = pins.iter().filter_map(|(cpu, vm)| Some((*cpu, (*vm)?))).collect();
    for ((vm, _), (set, count)) in sets {
        let is_shared = || bound.iter().any(|(other, theirs)| *other != vm && theirs.meets(set));
        if count >= set.len() && !is_shared() {
            held.extend(set.iter().map(|cpu| (cpu, vm)));
        }
    }
    held
}

/// CPUs of a thread's mask that other VMs have for themselves; none where it would have no other left.
pub(super) fn covered(machine: &Machine, held: &BTreeMap<u32, &str>, thread: &Thread) -> CpuSet {
    let set = thread.affinity.as_ref().map(|set| set.value.and(&machine.topology.online)).unwrap_or_default();
    let of_others = |cpu: &u32| held.get(cpu).is_some_and(|vm| thread.vm.as_deref() != Some(vm));
    let covered: CpuSet = set.iter().filter(of_others).collect();
    if set.is_within(&covered) { CpuSet::default() } else { covered }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::machine::Fact;

    #[test]
    fn a_cpu_is_one_vms_own_by_its_pins() {
        let mut machine = Machine { threads: Vec::new(), ..Machine::default() };
        machine.topology.online = CpuSet::parse("0-11").unwrap();
        let mut add = |vm: &str, vcpu: u32, cpus: &str| {
            let mut thread = Thread::new(Role::Vcpu(vcpu), "CPU n/KVM");
            thread.vm = Some(vm.to_owned());
            thread.affinity = Some(Fact::new(CpuSet::parse(cpus).unwrap(), "test"));
            machine.threads.push(thread);
        };
        add("a", 0, "4");
        add("a", 1, "5");
        add("b", 0, "5");
        add("c", 0, "0-5");
        add("c", 1, "0-11");
        (0..2).for_each(|vcpu| add("d", vcpu, "8-9"));
        add("e", 0, "10-11");
        let held = held(&machine);
        assert_eq!(held, [(4, "a"), (8, "d"), (9, "d")].into(), "5 is of two, and 10-11 is more than one vCPU takes");
        let covered = |position: usize| super::covered(&machine, &held, &machine.threads[position]).to_string();
        assert_eq!(covered(3), "4");
        assert_eq!(covered(4), "4,8-9");
        assert_eq!(covered(0), "");
    }
}
