//! A trace in which nothing is wrong, and what tests add to it.

use super::begin::Begin;
use super::model::{ChainSums, ExitSums, PartFlow, Sums, Vcpu};
use base::{Clock, Level, Span};
use std::collections::{BTreeMap, BTreeSet};
use walk::events::details::Detail;
use walk::events::reasons::{Isa, Reason};
use walk::state::{State, TracedLevel};
use walk::thread::{Doubts, Seen};

/// A trace of one vCPU over one second, in which nothing is wrong.
pub fn quiet(isa: Isa) -> PartFlow {
    let mut sums = Sums::default();
    sums.states_ns[State::Guest(TracedLevel::L1).index()] = 1_000_000_000;
    let hlt = if isa == Isa::Vmx { 12 } else { 0x78 };
    *sums.exits.at((TracedLevel::L1, Reason { isa, code: hlt })) = exits(10_000, Detail::None);
    let vcpu = Vcpu {
        vm: "web".into(),
        vm_assumed: false,
        vcpu: 0,
        tid: 100,
        comm: "CPU 0/KVM".into(),
        sums,
        contexts: Vec::new(),
    };
    PartFlow {
        path: "L0/trace.dat".into(),
        machine: "L0".into(),
        level: Level::L0,
        format: trace::Format::TraceDat { version: 7 },
        kernel: None,
        clock: Clock::nanoseconds("mono"),
        clock_fitted_to: None,
        span: Span { from_ns: 0, to_ns: 1_000_000_000 },
        begin: Begin::default(),
        window: Span { from_ns: 0, to_ns: 1_000_000_000 },
        tally: Vec::new(),
        halts: BTreeMap::new(),
        events: 100_000,
        vcpus: vec![vcpu],
        vhost: Vec::new(),
        helpers: Vec::new(),
        ambiguous_accepts: 0,
        comms: BTreeMap::from([(7, "busybox".to_owned()), (8, "trace-cmd".to_owned()), (9, "ksoftirqd/2".to_owned())]),
        settled: Default::default(),
        silent_vcpus: 0,
        gone: BTreeSet::new(),
        threads: BTreeMap::new(),
        quotas: BTreeMap::new(),
        handlers: Default::default(),
        snapshot: None,
        losses: Vec::new(),
        seen: Seen { exit: true, ..Seen::default() },
        doubts: Doubts::default(),
        stale_entries: 0,
        faults: Vec::new(),
        unattributed: 0,
        work: BTreeMap::new(),
        pauses: Vec::new(),
        unseen_cpus: Vec::new(),
        cpus: 4,
        has_switches: true,
        problems: Vec::new(),
        aligned: None,
        profile: Vec::new(),
        twin_of: None,
    }
}

/// So many exits of 2 us each, all with this detail.
pub fn exits(count: u64, detail: Detail) -> ExitSums {
    let mut sums = ExitSums { count, handled: [count, 0, 0], ..ExitSums::default() };
    sums.cost_ns.record(2_000);
    if detail != Detail::None {
        *sums.details.at(detail) = (count, 2_000 * count);
    }
    sums
}

/// The sums of its first vCPU.
pub fn sums(part: &mut PartFlow) -> &mut Sums {
    &mut part.vcpus[0].sums
}

/// Adds exits of L1 for this reason to its first vCPU.
pub fn add(part: &mut PartFlow, code: u32, count: u64, detail: Detail) {
    let isa = sums(part).exits.keys().next().map_or(Isa::Vmx, |(_, reason)| reason.isa);
    *sums(part).exits.at((TracedLevel::L1, Reason { isa, code })) = exits(count, detail);
}

/// Moves time from the guest to `state`.
pub fn spend(part: &mut PartFlow, state: State, ns: u64) {
    let states = &mut sums(part).states_ns;
    states[State::Guest(TracedLevel::L1).index()] -= ns;
    states[state.index()] += ns;
}

/// Adds 100 chains of this sequence to its first vCPU.
pub fn chain(part: &mut PartFlow, isa: Isa, codes: &[u32]) {
    let sequence: Vec<Reason> = codes.iter().map(|code| Reason { isa, code: *code }).collect();
    let mut chains = ChainSums { count: 100, ..ChainSums::default() };
    for _ in 0..100 {
        chains.exits.record(sequence.len() as u64);
        chains.cost_ns.record(50_000);
    }
    chains.sequences.insert(sequence, 100);
    *sums(part).chains.at(Reason { isa, code: 10 }) = chains;
}

/// A host of `count` VMs of one vCPU each, as [`quiet`] as that one.
pub fn host(count: u32) -> PartFlow {
    let mut part = quiet(Isa::Vmx);
    let one = part.vcpus.remove(0);
    part.vcpus =
        (0..count).map(|number| Vcpu { vm: format!("vm{number}"), tid: 100 + number as i32, ..one.clone() }).collect();
    part
}
