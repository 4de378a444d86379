//! Which VM does a vCPU thread belong to, and which vCPU is it?
//!
//! ```text
//! --vm-map          the user names it
//! trace.dat         names its guests and their threads
//! process           recorder, snapshot or trace say whose thread it is; its command line names the VM
//! recording cut from which threads ran vCPUs, with their numbers and processes
//! thread names      else: `CPU 1/KVM` is vCPU 1, and threads of one name are one VM where that is certain enough
//! ```
//! Two VMs never become one: a thread that may belong to several VMs is a VM of its own. What thread names alone decide
//! is marked as assumed.

use super::model::{Sums, Vcpu};
use crate::Given;
use base::recording::{VcpuThread, VmProcess, VmProcesses};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use trace::Facts;
use walk::Part;
use walk::thread::Thread;
use walk::vcpu_names;

/// What is known of threads beside their names.
pub(crate) struct Known<'a> {
    facts: &'a Facts,
    processes: Option<&'a VmProcesses>,
    cut_from: &'a [VcpuThread],
}

impl<'a> Known<'a> {
    pub(crate) fn of_part(part: &'a Part) -> Self {
        Self { facts: part.trace.facts(), processes: Some(&part.processes), cut_from: &part.cut_from.vcpus }
    }
}

/// Names of threads while a recording grows.
pub(crate) fn live_comms(threads: &[Thread], facts: &Facts) -> BTreeMap<i32, String> {
    let met = threads.iter().filter(|thread| !thread.comm.is_empty());
    let met = met.map(|thread| (thread.tid, thread.comm.clone()));
    facts.comms.iter().map(|(tid, comm)| (*tid, comm.clone())).chain(met).collect()
}

/// The vCPU threads among those met so far, without sums; `processes` are known to run VMs.
pub(crate) fn live_vcpus(
    threads: &[Thread],
    comms: &BTreeMap<i32, String>,
    facts: &Facts,
    processes: Option<&VmProcesses>,
) -> Vec<Vcpu> {
    let nothing = threads.iter().map(|_| Sums::default()).collect();
    vcpus(threads, nothing, comms, &Known { facts, processes, cut_from: &[] }, &Given::default())
}

/// A thread that is a vCPU, on its way to a VM.
struct Candidate<'t> {
    thread: &'t Thread,
    sums: Sums,
    comm: String,
    /// Its number by events, else by its name.
    number: Option<u32>,
    owner: Owner,
}

/// What decides on a thread's VM.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// The user or the trace names the VM.
    Named(String),
    /// Its process, and what its VM is called.
    Process(i32, String),
    /// Nothing but its name, without the number in it.
    Name(String),
}

/// The vCPU threads of a trace with their sums, in the order of VM and vCPU.
pub(crate) fn vcpus(
    threads: &[Thread],
    sums: Vec<Sums>,
    comms: &BTreeMap<i32, String>,
    known: &Known<'_>,
    given: &Given,
) -> Vec<Vcpu> {
    let of_threads = Threads::of(known, given);
    let mut candidates: Vec<Candidate<'_>> = threads
        .iter()
        .zip(sums)
        .filter(|(thread, _)| thread.is_vcpu)
        .map(|(thread, sums)| {
            let comm = comms.get(&thread.tid).cloned().unwrap_or_else(|| "vcpu".into());
            let (base, number) = vcpu_names::split(&comm);
            let owner = of_threads.owner(thread.tid, base, comms);
            Candidate { thread, sums, number: thread.vcpu_id.or(number), owner, comm }
        })
        .collect();
    candidates.sort_by_key(|candidate| candidate.thread.tid);
    let names = names(&candidates);
    // Numbers of each VM, and the first that may be free.
    let mut taken: BTreeMap<&str, (BTreeSet<u32>, u32)> = BTreeMap::new();
    for (candidate, name) in candidates.iter().zip(&names) {
        taken.entry(name).or_default().0.extend(candidate.number);
    }
    let mut vcpus = Vec::new();
    for (candidate, name) in candidates.into_iter().zip(&names) {
        let Candidate { thread, sums, comm, number, owner } = candidate;
        let (numbers, free) = taken.entry(name).or_default();
        let vcpu = number.unwrap_or_else(|| {
            *free = (*free..).find(|free| !numbers.contains(free)).unwrap_or(0);
            *free
        });
        numbers.insert(vcpu);
        vcpus.push(Vcpu {
            vm: name.clone(),
            vm_assumed: matches!(owner, Owner::Name(_)),
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

/// What is known of each thread by its id: threads may be many, so that none is searched for.
struct Threads<'k> {
    named: FxHashMap<i32, String>,
    processes: BTreeMap<i32, &'k VmProcess>,
    tgids: &'k BTreeMap<i32, i32>,
    /// The same of threads of which the recording that this one was cut from told it.
    cut_from: BTreeMap<i32, i32>,
}

impl<'k> Threads<'k> {
    /// The user decides on names, then the first guest that names the thread.
    fn of(known: &Known<'k>, given: &Given) -> Self {
        let mut named = FxHashMap::default();
        for guest in &known.facts.guests {
            for (_, tid) in &guest.vcpu_tids {
                named.entry(*tid).or_insert_with(|| guest.name.clone());
            }
        }
        named.extend(given.traces.vm_map.iter().rev().map(|(tid, name)| (*tid, name.clone())));
        let processes = known.processes.map(VmProcesses::by_thread).unwrap_or_default();
        let cut_from = known.cut_from.iter().filter_map(|thread| Some((thread.tid, thread.tgid?))).collect();
        Self { named, processes, tgids: &known.facts.tgids, cut_from }
    }

    fn owner(&self, tid: i32, base: String, comms: &BTreeMap<i32, String>) -> Owner {
        if let Some(name) = self.named.get(&tid) {
            return Owner::Named(name.clone());
        }
        if let Some(process) = self.processes.get(&tid) {
            return Owner::Process(process.pid, process.name());
        }
        match self.cut_from.get(&tid).or_else(|| self.tgids.get(&tid)).filter(|tgid| **tgid > 0) {
            // QEMU's first thread keeps the program's name; without it the process has that of its vCPUs.
            Some(tgid) => Owner::Process(*tgid, format!("{}-{tgid}", comms.get(tgid).unwrap_or(&base))),
            None => Owner::Name(base),
        }
    }
}

/// The name of each candidate's VM. They come in the order of their threads' ids.
fn names(candidates: &[Candidate<'_>]) -> Vec<String> {
    let mut members: BTreeMap<&Owner, Vec<usize>> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        members.entry(&candidate.owner).or_default().push(at);
    }
    let mut bearers: FxHashMap<&str, u32> = FxHashMap::default();
    for owner in members.keys() {
        if let Owner::Named(name) | Owner::Process(_, name) = owner {
            *bearers.entry(name).or_default() += 1;
        }
    }
    let mut names = vec![String::new(); candidates.len()];
    for (owner, members) in &members {
        let threads: Vec<(i32, Option<u32>)> =
            members.iter().map(|at| (candidates[*at].thread.tid, candidates[*at].number)).collect();
        match owner {
            Owner::Named(name) => members.iter().for_each(|at| names[*at].clone_from(name)),
            Owner::Process(pid, name) => {
                // Two processes may have been started with one name.
                let shared_name = bearers.get(name.as_str()).is_some_and(|bearers| *bearers > 1);
                let name = if shared_name { format!("{name}-{pid}") } else { name.clone() };
                // And one process may run several VMs, whose vCPUs then have the same numbers.
                let groups = vcpu_names::collide(&threads).then(|| vcpu_names::grouped(&threads));
                let first = threads.first().map_or(*pid, |(tid, _)| *tid);
                for (place, at) in members.iter().enumerate() {
                    let lowest = groups.as_ref().map_or(first, |groups| groups[place]);
                    names[*at] = if lowest == first { name.clone() } else { format!("{name}-{lowest}") };
                }
            }
            Owner::Name(base) => {
                for (at, lowest) in members.iter().zip(vcpu_names::grouped(&threads)) {
                    names[*at] = format!("{base}-{lowest}");
                }
            }
        }
    }
    names
}
