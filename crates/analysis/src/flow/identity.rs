//! Which VM does a vCPU thread belong to?
//!
//! Names come, best first, from the user (`--vm-map`), from the trace (trace.dat names its guests and their threads),
//! else from thread names: threads of one name with different vCPU numbers are one VM, called after the name and the
//! lowest thread id, and marked as assumed.

use super::model::{Sums, Vcpu};
use crate::Options;
use crate::shared::machine::Thread;
use rustc_hash::FxHashMap;
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
    let named = named_threads(facts, options);
    let mut groups = Groups::default();
    let mut vcpus = Vec::new();
    for (thread, sums) in order {
        let comm = comms.get(&thread.tid).cloned().unwrap_or_else(|| "vcpu".into());
        let named = named.get(&thread.tid).cloned();
        let base = named.clone().unwrap_or_else(|| base_name(&comm));
        let group = groups.of(&base, thread, named.is_some());
        let vcpu = thread.vcpu_id.unwrap_or_else(|| group.next_free());
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

/// The VMs that the user or the trace names, by thread. The user decides, then the first guest that names the thread.
fn named_threads(facts: &Facts, options: &Options) -> FxHashMap<i32, String> {
    let mut named = FxHashMap::default();
    for guest in &facts.guests {
        for (_, tid) in &guest.vcpu_tids {
            named.entry(*tid).or_insert_with(|| guest.name.clone());
        }
    }
    named.extend(options.vm_map.iter().rev().map(|(tid, name)| (*tid, name.clone())));
    named
}

struct Group {
    name: String,
    members: BTreeSet<u32>,
    /// No number below is free.
    free_from: u32,
}

/// The VMs found so far. Threads may be many, so that no step looks at all groups.
#[derive(Default)]
struct Groups {
    list: Vec<Group>,
    by_base: FxHashMap<String, Vec<usize>>,
    /// For a base and a vCPU's number: how many of the base's first groups have it. Members only come, so it only grows.
    taken: FxHashMap<(String, u32), usize>,
}

impl Groups {
    /// The group of `base` that has no vCPU of this thread's number yet; the only one, if its name is known.
    fn of(&mut self, base: &str, thread: &Thread, named: bool) -> &mut Group {
        let of_base = self.by_base.entry(base.to_owned()).or_default();
        let mut place = 0;
        if let Some(vcpu) = thread.vcpu_id.filter(|_| !named) {
            let taken = self.taken.entry((base.to_owned(), vcpu)).or_default();
            while of_base.get(*taken).is_some_and(|group| self.list[*group].members.contains(&vcpu)) {
                *taken += 1;
            }
            place = *taken;
        }
        if place == of_base.len() {
            let name = if named { base.to_owned() } else { format!("{base}-{}", thread.tid) };
            of_base.push(self.list.len());
            self.list.push(Group { name, members: BTreeSet::new(), free_from: 0 });
        }
        &mut self.list[of_base[place]]
    }
}

impl Group {
    fn next_free(&mut self) -> u32 {
        while self.members.contains(&self.free_from) {
            self.free_from += 1;
        }
        self.free_from
    }
}

/// QEMU names vCPU threads `CPU 0/KVM` (softmmu/cpus.c, `-name debug-threads=on`): the number is no part of the VM.
fn base_name(comm: &str) -> String {
    match comm.strip_prefix("CPU ").and_then(|rest| rest.split_once('/')) {
        Some((number, kind)) if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("CPU/{kind}"),
        _ => comm.to_owned(),
    }
}
