//! Holds what the analysis says of a toy's recording against the truth that travels with it.

use analysis::facts::events::roles;
use analysis::facts::state::TracedLevel;
use analysis::facts::thread::{Chain, Exit};
use analysis::facts::{Preemptor, Sink, State, Walk};
use base::recording::{PartKind, Recording};
use labs::nested::toy::Truth;
use std::path::Path;
use trace::replay::Listener;
use trace::{Event, Reading};

/// What the state machine told.
#[derive(Default)]
struct Told {
    exits: Vec<Exit>,
    chains: Vec<Chain>,
}

impl Sink for Told {
    fn interval(&mut self, _: usize, _: State, _: u64, _: u64) {}

    fn exit(&mut self, _: usize, exit: &Exit) {
        self.exits.push(*exit);
    }

    fn chain(&mut self, _: usize, chain: &Chain) {
        self.chains.push(chain.clone());
    }

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}
}

struct Watch(Walk<Told>);

impl Listener for Watch {
    fn start(&mut self, origin_ns: u64) {
        self.0.start(origin_ns);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.0.event(event);
    }
}

/// Exits that an interrupt or a fault puts between any two others.
const ANY_TIME: [&str; 6] = ["INTR", "NPF", "VINTR", "EXTERNAL_INTERRUPT", "EPT_VIOLATION", "EXCEPTION_NMI"];

/// Panics unless every exit has the level that its RIP tells, and every chain is the one that L1's code makes.
pub(super) fn score(directory: &Path) {
    let recording = Recording::open(directory).unwrap();
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    let of_kind = |kind| recording.parts.iter().find(|part| part.kind == kind).unwrap().path.clone();
    let truth = std::fs::read(directory.join(of_kind(PartKind::Notes))).unwrap();
    let truth: Truth = serde_json::from_slice(&truth).unwrap();
    let told = told(&directory.join(of_kind(PartKind::TraceDat)));

    let rounds = (truth.rounds * truth.vcpus) as usize;
    let wrong: Vec<_> = told.exits.iter().filter(|exit| !right(exit, &truth)).collect();
    assert!(wrong.is_empty(), "{} of {} exits have a wrong level: {:?}", wrong.len(), told.exits.len(), wrong[0]);
    let of_l2 = |reason: &str| {
        let there = |exit: &&Exit| exit.level == TracedLevel::L2 && exit.reason.name() == reason;
        told.exits.iter().filter(there).count()
    };
    assert_eq!(of_l2(&truth.reflected), rounds, "L2 makes one {} a round", truth.reflected);
    if let Some(kept) = &truth.kept {
        // The last round ends when L1 has handled it; L2 does not get to the exit that L0 keeps.
        assert_eq!(of_l2(kept), rounds - truth.vcpus as usize, "L2 makes one {kept} a round");
    }

    let closed: Vec<_> = told.chains.iter().filter(|chain| chain.cost_ns.is_some()).collect();
    assert_eq!((told.chains.len(), closed.len()), (rounds, rounds - truth.vcpus as usize), "chains, and closed ones");
    for chain in closed {
        assert_eq!(chain.reason.name(), truth.reflected);
        let own: Vec<_> = chain.sequence.iter().map(|reason| reason.name()).collect();
        let own: Vec<_> = own.iter().filter(|reason| !ANY_TIME.contains(&reason.as_str())).collect();
        assert_eq!(own, truth.chain.iter().collect::<Vec<_>>());
    }
}

/// Panics unless L1's own trace has exactly the exits, in the same order, that L0's trace has as chains.
pub(super) fn score_linux(directory: &Path, machines: usize, least: usize) {
    let recording = Recording::open(directory).unwrap();
    let levels: Vec<_> = recording.machines.iter().map(|machine| (machine.level, machine.parent.as_deref())).collect();
    assert_eq!(levels, [(0, None), (1, Some("L0")), (2, Some("L1"))][..machines]);
    assert!(recording.parts.iter().all(|part| part.clock.as_deref() == Some("x86-tsc")), "{:?}", recording.parts);
    let mut chains = told(&directory.join("L0/trace.dat")).chains;
    let mut exits = told(&directory.join("L1/trace.dat")).exits;
    chains.sort_by_key(|chain| chain.start_ns);
    exits.sort_by_key(|exit| exit.at_ns);
    let injected: Vec<_> = chains.iter().map(|chain| chain.reason.name()).collect();
    let got: Vec<_> = exits.iter().map(|exit| exit.reason.name()).collect();
    assert!(injected.len() >= least, "{} chains", injected.len());
    assert!(injected == got, "L0 injects {} exits, L1 gets {}, in other order", injected.len(), got.len());
}

fn told(trace: &Path) -> Told {
    let trace = trace::open(trace).unwrap();
    assert!(trace.facts().losses.is_empty(), "{:?}", trace.facts().losses);
    let request = roles::request(&[], |_| true);
    let mut watch = Watch(Walk::new(Told::default()));
    let reading = Reading { request: &request, fitted: None };
    let totals = trace::replay(trace.as_ref(), &reading, &mut watch);
    watch.0.end(totals.span_ns.map_or(0, |(_, last_ns)| last_ns));
    watch.0.sink
}

/// What came before a thread's first nested sign is L1's.
fn right(exit: &Exit, truth: &Truth) -> bool {
    let Some(rip) = exit.rip else { return false };
    let in_l2 = (truth.l2_code.0..truth.l2_code.1).contains(&rip);
    let in_l1 = (truth.l1_code.0..truth.l1_code.1).contains(&rip);
    match exit.level {
        TracedLevel::L2 => in_l2,
        TracedLevel::L1 | TracedLevel::Early | TracedLevel::Asked => in_l1,
        _ => false,
    }
}
