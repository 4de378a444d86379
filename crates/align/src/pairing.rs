//! Which CPU of a guest is which vCPU thread of the machine below?
//!
//! Evidence, best first: the exits of a nested guest, which were reflected on the thread and which the CPU wrote down in the same
//! order; then values of MSRs, which the machine below served for the thread and the CPU wrote down; then, for the other
//! CPUs, the CPU's number, in the VM that the others belong to, or whose threads the lower machine's trace names, or that
//! is called as the guest is, or that is the only one.

use super::guest_side::GuestCpu;
use super::host_side::HostSide;
use super::matches::{Pairs, by_order};
use super::registers;
use std::collections::{BTreeMap, BTreeSet};

/// Which VM a thread belongs to.
pub(crate) type VmOf<'a> = &'a dyn Fn(i32) -> Option<String>;

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum By {
        Exits = "exits",
        /// Values of MSRs that both saw.
        Registers = "msrs",
        /// The CPU's number, or what a file says.
        Number = "number",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The guest's CPU.
    pub cpu: u32,
    /// Place of the thread in `HostSide::vcpus`.
    pub thread: usize,
    pub by: By,
    /// Exits that both saw, by order alone.
    pub common: Pairs,
}

/// What is known of the guest beside its events.
pub struct PairingHints<'a> {
    pub cpus: u32,
    /// Its CPUs and their threads below.
    pub threads: &'a [(u32, i32)],
    pub name: Option<&'a str>,
}

/// Pairs CPUs and threads; every one occurs once at most.
pub fn pair(below: &HostSide, above: &BTreeMap<u32, GuestCpu>, hints: &PairingHints<'_>, vm_of: VmOf<'_>) -> Vec<Pair> {
    let mut found: Vec<Pair> = Vec::new();
    for (cpu, own) in above.iter().filter(|(_, own)| !own.exits.is_empty()) {
        for (thread, vcpu) in below.vcpus.iter().enumerate().filter(|(_, vcpu)| !vcpu.reflected.is_empty()) {
            let common = by_order(&vcpu.reflected, &own.exits);
            if !common.is_empty() {
                found.push(Pair { cpu: *cpu, thread, by: By::Exits, common });
            }
        }
    }
    let by_number = |pair: &Pair| below.vcpus[pair.thread].vcpu == Some(pair.cpu);
    found.sort_by_key(|pair| std::cmp::Reverse((pair.common.len(), by_number(pair))));
    found.extend(registers::pairing(&below.vcpus, above).into_iter().map(|(cpu, thread)| {
        let by = By::Registers;
        Pair { cpu, thread, by, common: Pairs::new() }
    }));
    let (mut cpus_done, mut threads_done) = (BTreeSet::new(), BTreeSet::new());
    found.retain(|pair| {
        let free = !cpus_done.contains(&pair.cpu) && !threads_done.contains(&pair.thread);
        if free {
            cpus_done.insert(pair.cpu);
            threads_done.insert(pair.thread);
        }
        free
    });
    for (cpu, tid) in hints.threads {
        let thread = below.vcpus.iter().position(|vcpu| vcpu.tid == *tid);
        if let Some(thread) = thread.filter(|thread| !threads_done.contains(thread) && !cpus_done.contains(cpu)) {
            cpus_done.insert(*cpu);
            threads_done.insert(thread);
            found.push(Pair { cpu: *cpu, thread, by: By::Number, common: Pairs::new() });
        }
    }
    let mut vms: BTreeSet<Option<String>> = match found.first() {
        Some(_) => found.iter().map(|pair| vm_of(below.vcpus[pair.thread].tid)).collect(),
        None => below.vcpus.iter().map(|vcpu| vm_of(vcpu.tid)).collect(),
    };
    let own = hints.name.map(|name| Some(name.to_owned())).filter(|own| vms.contains(own));
    if let (Some(own), true) = (own, found.is_empty()) {
        vms = BTreeSet::from([own]);
    }
    let numbers_are_cpus = found.iter().all(by_number);
    if vms.len() == 1 && numbers_are_cpus {
        for cpu in (0..hints.cpus).filter(|cpu| !cpus_done.contains(cpu)) {
            let same = |(place, vcpu): &(usize, &super::host_side::HostVcpu)| {
                vcpu.vcpu == Some(cpu) && vms.contains(&vm_of(vcpu.tid)) && !threads_done.contains(place)
            };
            if let Some((thread, _)) = below.vcpus.iter().enumerate().find(same) {
                found.push(Pair { cpu, thread, by: By::Number, common: Pairs::new() });
            }
        }
    }
    found.sort_by_key(|pair| pair.cpu);
    found
}
