//! What do the vCPUs of a host do right now? The same walk as for a report, told piece by piece while events come.
//!
//! ```text
//! pages of the last second --replay--> walk, which goes on from where it was --> sums since the last sample
//!                                        |
//!                 each vCPU as if the recording ended here: where its time has gone so far --> Sample
//! ```
//! States are carried from sample to sample, so a guest that sleeps for a minute is halted in each of them, without an
//! event.

use super::identity;
use crate::ledger::levels;
use base::gauges::{Sample, Shares, VmSample};
use base::{Histogram, Level, Span};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use trace::{Event, Facts, Request, Trace, Wanted};
use walk::backfill::backfilled;
use walk::continued::{Come, Continued};
use walk::events::roles::{self, ROLES, Role};
use walk::state::{STATES, State};
use walk::thread::{Chain, Doubts, Exit, Surroundings, Thread};
use walk::{Preemptor, Sink, Waker, Walk};

pub struct LiveFlow {
    host: Level,
    walk: Continued<Told>,
    /// Time of the recording's first event.
    origin_ns: Option<u64>,
    /// A `kvm_exit` has fired, so a second without one had none.
    exits_fire: bool,
    number: u64,
}

/// What the walk has told since the last sample.
#[derive(Default)]
struct Told {
    /// What lies before belongs to earlier samples.
    from_ns: u64,
    threads: Vec<OfThread>,
    /// Chains that were closed, and those of them that nothing disturbed, with their exits.
    chains: u64,
    undisturbed: u64,
    exits_in_undisturbed: u64,
    /// Thread, and how long it took from being woken to running.
    wakeups: Vec<(usize, u64)>,
}

#[derive(Clone)]
struct OfThread {
    states_ns: [u64; STATES],
    exits: u64,
}

impl Told {
    fn since(from_ns: u64) -> Self {
        Self { from_ns, ..Self::default() }
    }

    fn of(&mut self, thread: usize) -> &mut OfThread {
        if thread >= self.threads.len() {
            self.threads.resize(thread + 1, OfThread { states_ns: [0; STATES], exits: 0 });
        }
        &mut self.threads[thread]
    }
}

impl Sink for Told {
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        let length_ns = to_ns.saturating_sub(from_ns.max(self.from_ns));
        self.of(thread).states_ns[state.index()] += length_ns;
    }

    fn exit(&mut self, thread: usize, _: &Exit) {
        self.of(thread).exits += 1;
    }

    fn chain(&mut self, _: usize, chain: &Chain) {
        self.chains += u64::from(chain.cost_ns.is_some());
        if chain.is_undisturbed() {
            self.undisturbed += 1;
            self.exits_in_undisturbed += chain.exits;
        }
    }

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}

    fn ran_after_waking(&mut self, thread: usize, _: Waker, _: Option<usize>, woken_ns: u64, ran_ns: u64) {
        self.wakeups.push((thread, ran_ns.saturating_sub(woken_ns)));
    }
}

impl LiveFlow {
    /// The flow of a machine that is being recorded at this level.
    pub fn new(host: Level) -> Self {
        Self { host, walk: Continued::default(), origin_ns: None, exits_fire: false, number: 0 }
    }

    /// What happened in `span`, on the trace's own clock, given `trace` that holds all its events; `skipped_ns` before it
    /// were passed over. Spans come in order.
    pub fn sample(&mut self, trace: &dyn Trace, span: Span, skipped_ns: u64) -> Sample {
        let facts = trace.facts();
        let origin_ns = *self.origin_ns.get_or_insert(span.from_ns - skipped_ns);
        let mut events = 0;
        let mut userspace_exits: FxHashMap<i32, u64> = FxHashMap::default();
        let mut hear = |event: &Event<'_>| {
            events += 1;
            if ROLES.get(usize::from(event.kind)) == Some(&Role::UserspaceExit) {
                *userspace_exits.entry(event.tid).or_default() += 1;
            }
        };
        let come = Come { trace, span, skipped_ns };
        let walk = self.walk.go_on(come, &request(facts), |_| Told::since(span.from_ns), &mut hear);
        let told = std::mem::take(&mut walk.sink);
        self.exits_fire |= told.threads.iter().any(|thread| thread.exits > 0);
        let vcpus = vcpus(walk, facts, &told, &userspace_exits, span);
        let seconds = span.length_ns() as f64 / 1e9;
        let per_second = |count: u64| count as f64 / seconds;
        let has_userspace_exits = facts.event_types.iter().any(|event| event.name == "kvm_userspace_exit");
        let said = Said { host: self.host, exits_fire: self.exits_fire, has_userspace_exits, seconds };
        let mut vms: BTreeMap<&str, Vec<&OfVcpu>> = BTreeMap::new();
        vcpus.iter().for_each(|vcpu| vms.entry(&vcpu.vm).or_default().push(vcpu));
        let all = said.of("", &vcpus.iter().collect::<Vec<_>>());
        let number = self.number;
        self.number += 1;
        Sample {
            number,
            from_ns: (span.from_ns - skipped_ns).saturating_sub(origin_ns),
            to_ns: span.to_ns.saturating_sub(origin_ns),
            seen_share: span.length_ns() as f64 / (span.length_ns() + skipped_ns) as f64,
            events_per_second: per_second(events),
            exits_per_second: all.exits_per_second,
            userspace_exits_per_second: all.userspace_exits_per_second,
            chains_per_second: self.exits_fire.then(|| per_second(told.chains)),
            exits_per_chain: (told.undisturbed > 0).then(|| told.exits_in_undisturbed as f64 / told.undisturbed as f64),
            wakeup_p99_ns: wakeup_p99_ns(&vcpus, &told),
            vcpus: all.vcpus,
            shares: all.shares,
            vms: vms.into_iter().map(|(vm, vcpus)| said.of(vm, &vcpus)).collect(),
            lost_events: 0,
            bytes: 0,
            late_bytes: 0,
        }
    }
}

/// The events of the roles, and all others, without their fields, to be counted; so those that show a vCPU where no exit
/// fires cost nothing.
fn request(facts: &Facts) -> Request {
    let mut request = roles::request(&[], |name| facts.event_types.iter().any(|event| event.name == name));
    let others = facts.event_types.iter().filter(|event| request.kind_of(event).is_none());
    let others: Vec<Wanted> = others
        .map(|event| Wanted { names: vec![format!("{}:{}", event.system, event.name)], fields: Vec::new() })
        .collect();
    request.events.extend(others);
    request
}

struct OfVcpu {
    vm: String,
    thread: usize,
    states_ns: [u64; STATES],
    exits: u64,
    userspace_exits: u64,
}

/// The vCPUs, without those that only slept for another reason than a halted guest: stopped ones, and threads that are
/// gone.
fn vcpus(
    walk: &Walk<Told>,
    facts: &Facts,
    told: &Told,
    userspace_exits: &FxHashMap<i32, u64>,
    span: Span,
) -> Vec<OfVcpu> {
    let by_tid: FxHashMap<i32, usize> =
        walk.threads.iter().enumerate().map(|(number, thread)| (thread.tid, number)).collect();
    let comms = identity::live_comms(&walk.threads, facts);
    let named = identity::live_vcpus(&walk.threads, &comms, facts, None);
    let of = |vcpu: super::model::Vcpu| {
        let thread = *by_tid.get(&vcpu.tid)?;
        let states_ns = states(&walk.threads[thread], thread, walk, told, span);
        let awake_ns = states_ns.iter().sum::<u64>() - states_ns[State::Blocked.index()];
        let exits = told.threads.get(thread).map_or(0, |told| told.exits);
        let userspace_exits = userspace_exits.get(&vcpu.tid).copied().unwrap_or(0);
        (awake_ns > 0).then_some(OfVcpu { vm: vcpu.vm, thread, states_ns, exits, userspace_exits })
    };
    named.into_iter().filter_map(of).collect()
}

/// Where the thread's time has gone: what was told, and the rest as if the recording ended here.
fn states(thread: &Thread, number: usize, walk: &Walk<Told>, told: &Told, span: Span) -> [u64; STATES] {
    let mut rest = Told::since(span.from_ns);
    let mut doubts = Doubts::default();
    thread.clone().end(span.to_ns, &mut Surroundings { sink: &mut rest, seen: &walk.seen, doubts: &mut doubts, me: 0 });
    let told = told.threads.get(number).map_or([0; STATES], |told| told.states_ns);
    let rest = rest.threads.first().map_or([0; STATES], |rest| rest.states_ns);
    let mut states_ns = [0; STATES];
    for (index, (told, rest)) in told.into_iter().zip(rest).enumerate() {
        let level = |level| backfilled(level, thread, &walk.seen);
        let state = match State::of_index(index) {
            State::Guest(open) => State::Guest(level(open)),
            State::Handling(open) => State::Handling(level(open)),
            plain => plain,
        };
        states_ns[state.index()] += told + rest;
    }
    states_ns
}

fn wakeup_p99_ns(vcpus: &[OfVcpu], told: &Told) -> Option<u64> {
    let mut waits = Histogram::new();
    let of_vcpus = told.wakeups.iter().filter(|(thread, _)| vcpus.iter().any(|vcpu| vcpu.thread == *thread));
    of_vcpus.for_each(|(_, wait_ns)| waits.record(*wait_ns));
    waits.quantile(0.99)
}

/// What can be said of a set of vCPUs.
struct Said {
    host: Level,
    exits_fire: bool,
    has_userspace_exits: bool,
    seconds: f64,
}

impl Said {
    fn of(&self, vm: &str, vcpus: &[&OfVcpu]) -> VmSample {
        let per_second = |count: u64| count as f64 / self.seconds;
        let exits = vcpus.iter().map(|vcpu| vcpu.exits).sum();
        let userspace_exits = vcpus.iter().map(|vcpu| vcpu.userspace_exits).sum();
        VmSample {
            vm: vm.to_owned(),
            vcpus: vcpus.len() as u64,
            exits_per_second: self.exits_fire.then(|| per_second(exits)),
            userspace_exits_per_second: self.has_userspace_exits.then(|| per_second(userspace_exits)),
            shares: self.shares(vcpus),
        }
    }

    /// Where no `kvm_exit` fires, nothing tells the time of the guest, of KVM and of the VMM from each other: all are
    /// unknown.
    fn shares(&self, vcpus: &[&OfVcpu]) -> Shares {
        let all_ns: u64 = vcpus.iter().flat_map(|vcpu| vcpu.states_ns).sum();
        if all_ns == 0 {
            return Shares::new();
        }
        let always = ["guest_l1", "guest_l2", "guest_unknown_level", "kvm", "vmm", "halted", "preempted", "blocked"];
        let mut sums: BTreeMap<String, u64> = always.map(|name| (name.to_owned(), 0)).into();
        let mut unknown_ns = 0;
        for (index, ns) in vcpus.iter().flat_map(|vcpu| vcpu.states_ns.iter().enumerate()) {
            let state = State::of_index(index);
            if state == State::Unknown || (!self.exits_fire && needs_exits(state)) {
                unknown_ns += ns;
            } else if *ns > 0 {
                *sums.entry(self.name(state)).or_default() += ns;
            }
        }
        let share = |ns: u64| ns as f64 / all_ns as f64;
        let unknown = |name: &str| !self.exits_fire && (name.starts_with("guest_") || name == "kvm" || name == "vmm");
        let mut shares: Shares =
            sums.into_iter().map(|(name, ns)| (name.clone(), (!unknown(&name)).then(|| share(ns)))).collect();
        shares.insert("unknown".to_owned(), Some(share(unknown_ns)));
        shares
    }

    fn name(&self, state: State) -> String {
        match state {
            State::Guest(_) => levels::name(self.host, state),
            State::Handling(_) | State::Irq | State::Softirq | State::Nmi => "kvm".to_owned(),
            State::Userspace => "vmm".to_owned(),
            State::HaltPoll | State::Halted => "halted".to_owned(),
            State::WakeDelay | State::Preempted => "preempted".to_owned(),
            State::Blocked | State::Unknown => levels::name(self.host, state),
        }
    }
}

fn needs_exits(state: State) -> bool {
    let of_kvm = matches!(state, State::Handling(_) | State::Irq | State::Softirq | State::Nmi);
    of_kvm || matches!(state, State::Guest(_) | State::Userspace)
}
