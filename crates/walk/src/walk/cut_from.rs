//! What does a trace tell of threads that a window of it may no longer tell?
//!
//! In: a part of a recording, walked, and a window. Out: which threads run vCPUs, what they are called, and who had each CPU
//! when the window began. `kvmscope cut` keeps it beside the window.

use crate::Part;
use crate::state::State;
use crate::thread::{Chain, Exit};
use crate::walk::replay::{ExtraEvents, WalkObserver, walked};
use crate::walk::{Preemptor, Sink, Walk};
use base::recording::{CutTrace, Running, VcpuThread};
use std::collections::BTreeMap;
use std::path::Path;

/// Hears who has the CPUs.
struct Holders {
    /// The start of the window, on the trace's own clock.
    from_ns: u64,
    by_cpu: BTreeMap<usize, Option<i32>>,
}

impl Sink for Holders {
    fn interval(&mut self, _: usize, _: State, _: u64, _: u64) {}
    fn exit(&mut self, _: usize, _: &Exit) {}
    fn chain(&mut self, _: usize, _: &Chain) {}
    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}

    fn has_cpu(&mut self, cpu: usize, tid: Option<i32>, at_ns: u64) {
        if at_ns < self.from_ns {
            self.by_cpu.insert(cpu, tid);
        }
    }
}

/// Sets the start of the window (ns since the trace's first event) when the trace begins.
struct Begin(u64);

impl WalkObserver<Holders> for Begin {
    fn start(&mut self, walk: &mut Walk<Holders>, origin_ns: u64) {
        walk.sink.from_ns = self.0.saturating_add(origin_ns);
    }
}

/// What is known of `part` beyond a window that begins `from_ns` after its first event; the window will lie at `trace`.
pub fn of_part(part: &Part, from_ns: u64, trace: &Path) -> CutTrace {
    let besides = ExtraEvents { fitted: trace::calibrate::fit(part.trace.as_ref()), events: None };
    let holders = Holders { from_ns: 0, by_cpu: BTreeMap::new() };
    let (walk, _) = walked(part, &[], besides, holders, &mut Begin(from_ns));
    let names = comms(part, &walk);
    let known: BTreeMap<i32, &VcpuThread> = part.cut_from.vcpus.iter().map(|thread| (thread.tid, thread)).collect();
    let thread = |tid: i32, vcpu: Option<u32>| {
        let known = known.get(&tid);
        let tgid = known.and_then(|known| known.tgid).or_else(|| part.trace.facts().tgids.get(&tid).copied());
        let process_comm = tgid.and_then(|tgid| names.get(&tgid).cloned());
        VcpuThread { tid, vcpu, comm: names.get(&tid).cloned(), tgid, process_comm }
    };
    let vcpus = walk.threads.iter().filter(|thread| thread.is_vcpu);
    let mut vcpus: Vec<VcpuThread> = vcpus.map(|vcpu| thread(vcpu.tid, vcpu.vcpu_id)).collect();
    vcpus.sort_by_key(|thread| thread.tid);
    let held = walk.sink.by_cpu.iter().filter_map(|(cpu, tid)| Some(Running { cpu: *cpu as u32, tid: (*tid)? }));
    // Before the first event of a trace nothing is known but what it was cut from told.
    let running = if from_ns == 0 { part.cut_from.running.clone() } else { held.collect() };
    CutTrace { trace: trace.into(), vcpus, running }
}

/// Names of threads: as events tell them, as the trace lists them, and of vCPUs and their processes as the recording did
/// that this one was cut from, which saw more of them.
pub fn comms<S: Sink>(part: &Part, walk: &Walk<S>) -> BTreeMap<i32, String> {
    let listed = part.trace.facts().comms.iter().map(|(tid, comm)| (*tid, comm.clone()));
    let named = walk.threads.iter().filter(|thread| !thread.comm.is_empty());
    let seen = named.map(|thread| (thread.tid, thread.comm.clone()));
    let known = part.cut_from.vcpus.iter().flat_map(|thread| {
        let own = thread.comm.clone().map(|comm| (thread.tid, comm));
        own.into_iter().chain(thread.tgid.zip(thread.process_comm.clone()))
    });
    listed.chain(seen).chain(known).collect()
}
