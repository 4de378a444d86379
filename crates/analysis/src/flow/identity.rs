//! Which VM does a vCPU thread belong to?
//!
//! Names come, best first, from the user (`--vm-map`), from the trace (trace.dat names its guests and their threads),
//! else from thread names: threads of one name with different vCPU numbers are one VM, called after the name and the
//! lowest thread id, and marked as assumed.

use super::model::{Sums, Vcpu};
use crate::Options;
use crate::shared::machine::Thread;
use std::collections::{BTreeMap, BTreeSet};
use trace::Facts;

/// The vCPU threads of a trace with their sums, in the order of VM and vCPU.
pub fn vcpus(
    threads: &[Thread],
    sums: Vec<Sums>,
    comms: &BTreeMap<i32, String>,
    facts: &Facts,
    options: &Options,
) -> Vec<Vcpu> {
    let mut order: Vec<(&Thread, Sums)> = threads.iter().zip(sums).filter(|(thread, _)| thread.is_vcpu).collect();
    order.sort_by_key(|(thread, _)| thread.tid);
    let mut groups: Vec<Group> = Vec::new();
    let mut vcpus = Vec::new();
    for (thread, sums) in order {
        let comm = comms.get(&thread.tid).cloned().unwrap_or_else(|| "vcpu".into());
        let named = named_vm(thread.tid, facts, options);
        let base = named.clone().unwrap_or_else(|| base_name(&comm));
        let group = group_of(&mut groups, &base, thread, named.is_some());
        let vcpu = thread.vcpu_id.unwrap_or_else(|| next_free(&group.members));
        group.members.insert(vcpu);
        vcpus.push(Vcpu {
            vm: group.name.clone(),
            vm_assumed: named.is_none(),
            vcpu,
            tid: thread.tid,
            comm,
            sums,
            contexts: thread.contexts.all.clone(),
        });
    }
    vcpus.sort_by(|a, b| (&a.vm, a.vcpu, a.tid).cmp(&(&b.vm, b.vcpu, b.tid)));
    vcpus
}

struct Group {
    base: String,
    name: String,
    members: BTreeSet<u32>,
}

/// The VM that the user or the trace names for a thread.
fn named_vm(tid: i32, facts: &Facts, options: &Options) -> Option<String> {
    let mapped = options.vm_map.iter().find(|(mapped, _)| *mapped == tid).map(|(_, name)| name.clone());
    mapped.or_else(|| {
        let guest = facts.guests.iter().find(|guest| guest.vcpu_tids.iter().any(|(_, vcpu_tid)| *vcpu_tid == tid))?;
        Some(guest.name.clone())
    })
}

/// The group of `base` that has no vCPU of this thread's number yet.
fn group_of<'g>(groups: &'g mut Vec<Group>, base: &str, thread: &Thread, named: bool) -> &'g mut Group {
    let taken = |group: &Group| thread.vcpu_id.is_some_and(|vcpu| group.members.contains(&vcpu));
    let found = groups.iter().position(|group| group.base == base && (named || !taken(group)));
    let place = found.unwrap_or_else(|| {
        let name = if named { base.to_owned() } else { format!("{base}-{}", thread.tid) };
        groups.push(Group { base: base.to_owned(), name, members: BTreeSet::new() });
        groups.len() - 1
    });
    &mut groups[place]
}

fn next_free(members: &BTreeSet<u32>) -> u32 {
    (0..).find(|number| !members.contains(number)).unwrap_or(0)
}

/// QEMU names vCPU threads `CPU 0/KVM` (softmmu/cpus.c, `-name debug-threads=on`): the number is no part of the VM.
fn base_name(comm: &str) -> String {
    match comm.strip_prefix("CPU ").and_then(|rest| rest.split_once('/')) {
        Some((number, kind)) if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("CPU/{kind}"),
        _ => comm.to_owned(),
    }
}
