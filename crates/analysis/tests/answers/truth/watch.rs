//! A listener that keeps what the walk tells, so that it can be held against the truth.

use kvmscope_analysis::facts::events::roles;
use kvmscope_analysis::facts::state::STATES;
use kvmscope_analysis::facts::thread::{Chain, Exit};
use kvmscope_analysis::facts::{Preemptor, Reason, Sink, State, TracedLevel, Walk};
use trace::replay::Listener;
use trace::{Event, Reading, Trace};

#[derive(Clone, Default)]
pub(super) struct Told {
    pub exits: Vec<Exit>,
    pub chains: Vec<Chain>,
    threads: Vec<Ledger>,
}

/// Time of one thread.
#[derive(Clone)]
struct Ledger {
    first_ns: u64,
    last_ns: u64,
    /// Time per state, that of interrupts given to the state they interrupted.
    folded_ns: [u64; STATES],
    interrupted: State,
}

impl Told {
    /// Time that a thread spent in a state, interrupts folded back. What came before its first nested sign is L1's.
    pub(super) fn folded_ns(&self, thread: usize, state: State) -> u64 {
        let early = match state {
            State::Guest(TracedLevel::L1) => Some(State::Guest(TracedLevel::Early)),
            State::Handling(TracedLevel::L1) => Some(State::Handling(TracedLevel::Early)),
            _ => None,
        };
        let states = std::iter::once(state).chain(early);
        states.map(|state| self.threads[thread].folded_ns[state.index()]).sum()
    }

    /// Panics unless every thread's pieces fill `[origin_ns, end_ns)` without gap and overlap.
    pub(super) fn assert_closed(&self, threads: usize, origin_ns: u64, end_ns: u64) {
        let told = self.threads.len();
        assert!(told == threads || origin_ns == end_ns, "{threads} threads, pieces of {told}");
        for ledger in &self.threads {
            assert_eq!((ledger.first_ns, ledger.last_ns), (origin_ns, end_ns));
            assert_eq!(ledger.folded_ns.iter().sum::<u64>(), end_ns - origin_ns);
        }
    }

    /// Reasons of the chains, in the order in which the injections happened.
    pub(super) fn chain_reasons(&self) -> Vec<Reason> {
        let mut chains: Vec<_> = self.chains.iter().map(|chain| (chain.start_ns, chain.reason)).collect();
        chains.sort_by_key(|(start_ns, _)| *start_ns);
        chains.into_iter().map(|(_, reason)| reason).collect()
    }
}

impl Sink for Told {
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        if thread >= self.threads.len() {
            let empty =
                Ledger { first_ns: from_ns, last_ns: from_ns, folded_ns: [0; STATES], interrupted: State::Unknown };
            self.threads.resize(thread + 1, empty);
        }
        let ledger = &mut self.threads[thread];
        if ledger.first_ns == ledger.last_ns {
            (ledger.first_ns, ledger.last_ns) = (from_ns, from_ns);
        }
        assert_eq!(ledger.last_ns, from_ns, "pieces follow each other");
        ledger.last_ns = to_ns;
        let folded = match (state, ledger.interrupted) {
            // An interrupt ends the guest: what it takes is KVM's time.
            (State::Irq | State::Softirq, State::Guest(level)) => State::Handling(level),
            (State::Irq | State::Softirq, interrupted) => interrupted,
            _ => state,
        };
        ledger.interrupted = folded;
        ledger.folded_ns[folded.index()] += to_ns - from_ns;
    }

    fn exit(&mut self, _: usize, exit: &Exit) {
        self.exits.push(*exit);
    }

    fn chain(&mut self, _: usize, chain: &Chain) {
        self.chains.push(chain.clone());
    }

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}
}

/// Feeds a replay to a walk.
pub(super) struct Watch<F> {
    pub walk: Walk<Told>,
    pub origin_ns: u64,
    pub end_ns: u64,
    /// Called after each event with its position.
    after: F,
    position: usize,
}

impl<F: FnMut(&Walk<Told>, usize, u64, u64)> Listener for Watch<F> {
    fn start(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
        self.walk.start(origin_ns);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.walk.event(event);
        (self.after)(&self.walk, self.position, self.origin_ns, event.time_ns);
        self.position += 1;
    }
}

/// Walks a trace to its end, and calls `after` with the walk so far, the position, the origin and the time of each event.
pub(super) fn walk_with<F: FnMut(&Walk<Told>, usize, u64, u64)>(trace: &dyn Trace, after: F) -> Watch<F> {
    let request = roles::request(&[], |_| true);
    let fitted = trace::calibrate::fit(trace);
    let mut watch = Watch { walk: Walk::new(Told::default()), origin_ns: 0, end_ns: 0, after, position: 0 };
    let totals = trace::replay(trace, &Reading { request: &request, fitted }, &mut watch);
    watch.end_ns = totals.span_ns.map_or(0, |(_, last_ns)| last_ns);
    watch.walk.end(watch.end_ns);
    watch.walk.sink.assert_closed(watch.walk.threads.len(), watch.origin_ns, watch.end_ns);
    watch
}

pub(super) fn walk(trace: &dyn Trace) -> Walk<Told> {
    walk_with(trace, |_, _, _, _| {}).walk
}

/// Exits whose level is wrong, and exits whose level the whole trace leaves unknown, by what `truth` says of their RIP.
///
/// What came before a thread's first nested sign is L1's (backfill), and so is what was asked for in silence, for all streams here have `kvm_nested_vmexit`.
pub(super) fn wrong_and_unknown(exits: &[Exit], truth: impl Fn(u64) -> TracedLevel) -> (usize, usize) {
    let truth = |exit: &Exit| truth(exit.rip.unwrap());
    let wrong = |exit: &&Exit| match exit.level {
        TracedLevel::Lost => false,
        TracedLevel::Early | TracedLevel::Asked => truth(exit) != TracedLevel::L1,
        _ => exit.level != truth(exit),
    };
    (exits.iter().filter(wrong).count(), exits.iter().filter(|exit| exit.level == TracedLevel::Lost).count())
}
