//! Where did samples of perf land: in which state of which vCPU thread, at which level, in which function?
//!
//! In:  a trace with sampled counters beside KVM's events (`perf record -e cycles,kvm:*,sched:sched_switch`, or
//! `perf kvm --guest`). Out: samples and their periods by thread, state, mode and instruction pointer.
//!
//! ```text
//! state of thread 170    |--- guest L2 ---|- handling L2 -|--- guest L1 ---|
//! samples of thread 170       x     x           x             x
//! ```
//! A sample's state is the one that the walk gives to its thread at its time. A counter's sample in a guest is an NMI's: it
//! ends the guest's stretch, and comes before `kvm_exit` is written (vmx_vcpu_enter_exit in arch/x86/kvm/vmx/vmx.c, Linux
//! 6.12). One by a timer (`cpu-clock`) is an interrupt's, served after it: the kernel says that the code was the guest's
//! (`kvm_arch_pmi_in_guest` in arch/x86/include/asm/kvm_host.h), so it belongs to the stretch that the interrupt ended.
//! Threads that are no vCPU are left out. Memory grows with the number of different instruction pointers, up to a bound.

use crate::Part;
use crate::state::{State, TracedLevel};
use crate::thread::{Chain, Exit};
use crate::walk::backfill::backfilled;
use crate::walk::replay::{ExtraEvents, WalkObserver, walked};
use crate::walk::{Preemptor, Sink, Walk};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use trace::{Event, Wanted};

/// Different places kept; samples elsewhere count without their instruction pointer.
const MOST_PLACES: usize = 65_536;

/// Where the CPU was: PERF_RECORD_MISC_CPUMODE_MASK in include/uapi/linux/perf_event.h, Linux 6.12.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Not told.
    Unknown,
    Kernel,
    /// A program of the host.
    User,
    GuestKernel,
    GuestUser,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Thread of the recorded machine.
    pub tid: i32,
    pub state: State,
    pub mode: Mode,
    /// Where; 0 where too many different ones were seen.
    pub ip: u64,
}

/// Samples and the sum of their periods, by place.
pub type Profile = FxHashMap<Place, (u64, u64)>;

/// The sampled counters of a trace: kinds of events with an instruction pointer and a mode.
fn counters(part: &Part) -> Vec<String> {
    let facts = part.trace.facts();
    let sampled = facts.event_types.iter().filter(|event| {
        let has = |name: &str| event.fields.iter().any(|field| field.name == name);
        event.system == "perf" && has("ip") && has("cpumode")
    });
    sampled.map(|event| format!("perf:{}", event.name)).collect()
}

/// Reads the samples of vCPU threads, without the events that are `ignored` by name; empty for a trace that has none, at no cost.
pub fn profile(part: &Part, ignored: &[String]) -> Profile {
    let names = counters(part);
    if names.is_empty() {
        return Profile::default();
    }
    let fields = ["ip", "cpumode", "period"].map(|field| vec![field.to_owned()]).to_vec();
    let besides = ExtraEvents { fitted: None, events: Some(Wanted { names, fields }) };
    let mut samples = Samples::default();
    let (mut walk, totals) = walked(part, ignored, besides, Pieces::default(), &mut samples);
    // The last piece of a thread ends with the trace, and a sample may be its last event.
    samples.settle(&mut walk, totals.span_ns.map(|(_, last)| last));
    let Samples { profile, .. } = samples;
    let mut settled_profile = Profile::default();
    for (place, (samples, period)) in profile {
        let level = |level: TracedLevel| {
            let thread = walk.threads.iter().find(|thread| thread.tid == place.tid);
            thread.map_or(level, |thread| backfilled(level, thread, &walk.seen))
        };
        let state = match place.state {
            State::Guest(known) => State::Guest(level(known)),
            State::Handling(known) => State::Handling(level(known)),
            other => other,
        };
        let sums = settled_profile.entry(Place { state, ..place }).or_default();
        *sums = (sums.0 + samples, sums.1.saturating_add(period));
    }
    settled_profile
}

/// A sample whose thread's state is not told yet.
struct Sample {
    at_ns: u64,
    mode: Mode,
    ip: u64,
    period: u64,
}

#[derive(Default)]
struct Samples {
    waiting: FxHashMap<i32, VecDeque<Sample>>,
    /// The guest that each thread ran last.
    guests: FxHashMap<usize, State>,
    profile: Profile,
}

impl WalkObserver<Pieces> for Samples {
    fn event(&mut self, walk: &mut Walk<Pieces>, event: &Event<'_>) {
        walk.event(event);
        self.settle(walk, None);
    }

    fn other(&mut self, walk: &mut Walk<Pieces>, event: &Event<'_>) {
        let mode = match event.get(1) {
            Some(1) => Mode::Kernel,
            Some(2) => Mode::User,
            Some(4) => Mode::GuestKernel,
            Some(5) => Mode::GuestUser,
            _ => Mode::Unknown,
        };
        let sample = Sample { at_ns: event.time_ns, mode, ip: event.or_zero(0), period: event.get(2).unwrap_or(1) };
        let is_vcpu = || walk.threads.iter().any(|one| one.tid == event.tid && one.is_vcpu);
        match self.waiting.get_mut(&event.tid) {
            Some(waiting) => waiting.push_back(sample),
            None if is_vcpu() => drop(self.waiting.insert(event.tid, VecDeque::from([sample]))),
            None => {}
        }
    }
}

impl Samples {
    /// Gives waiting samples to the pieces that were told; a piece that ends at `end_ns` has those of that moment too.
    fn settle(&mut self, walk: &mut Walk<Pieces>, end_ns: Option<u64>) {
        for (thread, state, to_ns) in std::mem::take(&mut walk.sink.told) {
            if matches!(state, State::Guest(_)) {
                self.guests.insert(thread, state);
            }
            let guest = self.guests.get(&thread).copied().unwrap_or(state);
            let tid = walk.threads[thread].tid;
            let Some(waiting) = self.waiting.get_mut(&tid) else { continue };
            let is_last = end_ns == Some(to_ns);
            while waiting.front().is_some_and(|sample| sample.at_ns < to_ns || (is_last && sample.at_ns == to_ns)) {
                let Some(sample) = waiting.pop_front() else { break };
                let state = if matches!(sample.mode, Mode::GuestKernel | Mode::GuestUser) { guest } else { state };
                let mut place = Place { tid, state, mode: sample.mode, ip: sample.ip };
                if self.profile.len() >= MOST_PLACES && !self.profile.contains_key(&place) {
                    place.ip = 0;
                }
                let sums = self.profile.entry(place).or_default();
                *sums = (sums.0 + 1, sums.1.saturating_add(sample.period));
            }
        }
    }
}

/// Pieces of time told since they were last taken: thread, state, end.
#[derive(Default)]
struct Pieces {
    told: Vec<(usize, State, u64)>,
}

impl Sink for Pieces {
    fn interval(&mut self, thread: usize, state: State, _: u64, to_ns: u64) {
        self.told.push((thread, state, to_ns));
    }

    fn exit(&mut self, _: usize, _: &Exit) {}

    fn chain(&mut self, _: usize, _: &Chain) {}

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}
}
