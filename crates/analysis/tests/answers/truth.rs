//! Does the state machine tell the truth about recordings whose truth is known?
//!
//! The toys' L2 lies at 0x30000, so the level of every exit is known from its RIP; L1's own trace of the Linux stack says
//! which exits were reflected, and why. Golden times were computed by another program (docs/read/flow.md, scores).

mod stream;
mod watch;

use crate::fixtures::fixture;
use kvmscope_analysis::facts::ledger::{build, model::Flow};
use kvmscope_analysis::facts::{Reason, State, TracedLevel};
use kvmscope_analysis::{Given, TraceHints};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stream::Stream;
use watch::{walk, walk_with, wrong_and_unknown};

struct Toy {
    name: &'static str,
    exits: usize,
    /// Closed chains by number of L1's exits.
    chains: &'static [(u64, usize)],
    /// Time per state, interrupts folded back into what they interrupted.
    ledger_ns: [u64; 9],
    wall_ns: u64,
    tid: i32,
}

const STATES: [State; 9] = [
    State::Guest(TracedLevel::L1),
    State::Guest(TracedLevel::L2),
    State::Handling(TracedLevel::L1),
    State::Handling(TracedLevel::L2),
    State::Userspace,
    State::Preempted,
    State::Blocked,
    State::WakeDelay,
    State::Unknown,
];

const TOYS: [Toy; 3] = [
    Toy {
        name: "nested-svm-toy",
        exits: 1_828,
        chains: &[(4, 288), (5, 9), (6, 2)],
        ledger_ns: [
            87_626_430,
            35_633_700,
            145_574_970,
            56_207_950,
            115_624_990,
            57_742_250,
            42_121_690,
            7_332_050,
            266_105_260,
        ],
        wall_ns: 813_969_290,
        tid: 98,
    },
    Toy {
        name: "nested-vmx-shadow-on",
        exits: 588,
        chains: &[(3, 98), (4, 1)],
        ledger_ns: [
            9_580_360, 4_964_340, 39_447_390, 25_501_760, 26_684_370, 3_427_270, 43_708_350, 644_410, 35_909_470,
        ],
        wall_ns: 189_867_720,
        tid: 97,
    },
    Toy {
        name: "nested-vmx-shadow-off-hog",
        exits: 2_644,
        chains: &[(15, 148), (16, 1)],
        ledger_ns: [
            57_348_660,
            7_392_260,
            129_041_640,
            36_771_290,
            32_034_810,
            294_649_590,
            45_631_900,
            1_196_320,
            33_902_850,
        ],
        wall_ns: 637_969_320,
        tid: 98,
    },
];

impl Toy {
    fn stream(&self, ignored: &[&str]) -> Stream {
        Stream::read(&fixture(self.name).join("L0/trace.dat"), ignored)
    }
}

fn toy_level(rip: u64) -> TracedLevel {
    if (0x30000..0x31000).contains(&rip) { TracedLevel::L2 } else { TracedLevel::L1 }
}

fn flow(recording: &Path, ignore_events: &[&str]) -> Flow {
    let input = kvmscope_analysis::open(base::recording::Recording::open(recording).unwrap()).unwrap();
    let ignore_events = ignore_events.iter().map(|name| (*name).to_owned()).collect();
    let given = Given { traces: TraceHints { ignore_events, ..TraceHints::default() }, ..Given::default() };
    build::build(&input, &given, &mut |_, _| {})
}

/// Numbers in no particular order, the same in every run.
fn scattered(seed: u64) -> impl Iterator<Item = usize> {
    // Constants of Knuth's MMIX generator (The Art of Computer Programming, volume 2, 3.3.4).
    let next =
        |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    std::iter::successors(Some(seed), next).map(|state| (state >> 33) as usize)
}

#[test]
fn the_toys_ledgers_are_the_golden_ones() {
    for toy in &TOYS {
        let walk = walk(&toy.stream(&[]));
        let thread = walk.threads.iter().position(|thread| thread.tid == toy.tid).unwrap();
        let told = STATES.map(|state| walk.sink.folded_ns(thread, state));
        assert_eq!(told, toy.ledger_ns, "{}", toy.name);
        assert_eq!(toy.ledger_ns.iter().sum::<u64>(), toy.wall_ns, "{}: no other state has time", toy.name);
    }
}

#[test]
fn the_flow_of_a_toy_has_the_golden_sums_up_to_interrupts() {
    for toy in &TOYS {
        let flow = flow(&fixture(toy.name), &[]);
        let [vcpu] = flow.parts[0].vcpus.as_slice() else { panic!("{}: one vCPU", toy.name) };
        assert_eq!((vcpu.tid, vcpu.sums.wall_ns()), (toy.tid, toy.wall_ns));
        let irq_ns = vcpu.sums.ns(State::Irq);
        let mut missing_ns = 0;
        for (state, golden_ns) in STATES.into_iter().zip(toy.ledger_ns) {
            let ns = vcpu.sums.ns(state);
            match state {
                State::Handling(_) | State::Userspace => missing_ns += golden_ns - ns,
                _ => assert_eq!(ns, golden_ns, "{}: {state:?}", toy.name),
            }
        }
        assert_eq!(missing_ns, irq_ns, "{}: interrupts took what handling and userspace lack", toy.name);
        assert_eq!(vcpu.sums.exit_count(), toy.exits as u64);
        let closed: u64 = vcpu.sums.chains.values().map(|chains| chains.count - chains.censored).sum();
        assert_eq!(closed, toy.chains.iter().map(|(_, count)| *count as u64).sum::<u64>());
    }
}

#[test]
fn every_exit_of_the_toys_has_its_level_whatever_witness_is_missing() {
    let rows: [&[&str]; 3] = [
        &[],
        &["kvm_nested_vmenter"],
        &["kvm_nested_vmenter", "kvm_nested_vmexit_inject", "kvm_nested_intr_vmexit", "kvm_nested_intercepts"],
    ];
    for toy in &TOYS {
        for ignored in rows {
            let walk = walk(&toy.stream(ignored));
            assert_eq!(walk.sink.exits.len(), toy.exits);
            let score = wrong_and_unknown(&walk.sink.exits, toy_level);
            assert_eq!(score, (0, 0), "{} without {ignored:?}: wrong and unknown", toy.name);
            assert_eq!(walk.doubts.level_conflicts, 0, "{} without {ignored:?}", toy.name);
        }
    }
}

#[test]
fn entries_and_exits_alone_tell_no_level() {
    for toy in &TOYS {
        let nested = ["kvm_nested_vmenter", "kvm_nested_vmexit", "kvm_nested_vmexit_inject"];
        let flow = flow(&fixture(toy.name), &nested);
        let sums = &flow.parts[0].vcpus[0].sums;
        assert_eq!(sums.exit_count(), toy.exits as u64);
        assert!(sums.exits.keys().all(|(level, _)| level.is_open()), "{}: a level was guessed", toy.name);
        assert!(sums.ns(State::Guest(TracedLevel::Lost)) > 0 && sums.ns(State::Guest(TracedLevel::L1)) == 0);
    }
}

#[test]
fn the_multiplication_of_the_toys_is_known_chain_by_chain() {
    for toy in &TOYS {
        let walk = walk(&toy.stream(&[]));
        let mut lengths = BTreeMap::new();
        for chain in walk.sink.chains.iter().filter(|chain| chain.cost_ns.is_some()) {
            *lengths.entry(chain.exits).or_insert(0) += 1;
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), toy.chains, "{}", toy.name);
    }
}

#[test]
fn a_recording_started_in_the_middle_has_the_right_levels() {
    for toy in &TOYS {
        let stream = toy.stream(&[]);
        for first in (1..stream.len()).step_by(41) {
            let walk = walk(&stream.started_after(first));
            let (wrong, unknown) = wrong_and_unknown(&walk.sink.exits, toy_level);
            assert_eq!((wrong, unknown), (0, 0), "{} from event {first}: wrong and unknown", toy.name);
        }
    }
}

#[test]
fn a_gap_makes_no_level_wrong_or_unknown() {
    for toy in &TOYS {
        let stream = toy.stream(&[]);
        let mut numbers = scattered(1);
        for _ in 0..150 {
            let count = 1 + numbers.next().unwrap() % 50;
            let first = numbers.next().unwrap() % (stream.len() - count);
            let walk = walk(&stream.with_gap(first, count));
            let (wrong, unknown) = wrong_and_unknown(&walk.sink.exits, toy_level);
            let case = format!("{} without {count} events from {first}", toy.name);
            assert_eq!((wrong, unknown), (0, 0), "{case}: wrong and unknown");
            assert!(walk.losses.len() == 1, "{case}");
        }
    }
}

#[test]
fn the_ledger_of_every_fixture_closes() {
    let toys = TOYS.map(|toy| toy.name);
    for name in toys.into_iter().chain(["svm-linux", "lttng-svm-l0", "vmx-linux-shadow-on", "vmx-linux-shadow-off"]) {
        for part in &flow(&fixture(name), &[]).parts {
            assert!(!part.vcpus.is_empty(), "{name}: {}", part.path);
            for vcpu in &part.vcpus {
                assert_eq!(vcpu.sums.wall_ns(), part.window.length_ns(), "{name}: thread {}", vcpu.tid);
            }
        }
    }
}

#[test]
fn the_ledger_closes_after_every_event_of_the_toys() {
    for toy in &TOYS {
        walk_with(&toy.stream(&[]), |walk, _, origin_ns, now_ns| {
            let mut walk = walk.clone();
            walk.end(now_ns);
            walk.sink.assert_closed(walk.threads.len(), origin_ns, now_ns);
        });
    }
}

#[test]
fn the_ledger_of_the_linux_stack_closes_wherever_it_is_cut_off() {
    for machine in ["L0", "L1"] {
        let stream = Stream::read(&fixture("svm-linux").join(machine).join("trace.dat"), &[]);
        let mut cuts: Vec<usize> = scattered(2).take(200).map(|number| number % stream.len()).collect();
        cuts.sort_unstable();
        let mut latest_ns = 0;
        walk_with(&stream, |walk, position, origin_ns, now_ns| {
            latest_ns = now_ns.max(latest_ns);
            if cuts.binary_search(&position).is_ok() {
                let mut walk = walk.clone();
                walk.end(latest_ns);
                walk.sink.assert_closed(walk.threads.len(), origin_ns, latest_ns);
            }
        });
    }
}

/// Chains at L0 must be L1's exits seen from below: as many, with the same reasons in the same order.
fn chains_are_the_exits_of_l1(l0: &Path, l1: &Path) -> usize {
    let below = walk(trace::open(l0).unwrap().as_ref());
    let above = walk(trace::open(l1).unwrap().as_ref());
    let mut exits: Vec<_> = above.sink.exits.iter().map(|exit| (exit.at_ns, exit.reason)).collect();
    exits.sort_by_key(|(at_ns, _)| *at_ns);
    let exits: Vec<Reason> = exits.into_iter().map(|(_, reason)| reason).collect();
    assert_eq!(below.sink.chain_reasons(), exits);
    assert_eq!(below.doubts.level_conflicts, 0);
    exits.len()
}

#[test]
fn two_tracers_of_one_run_tell_the_same_exits_and_chains() {
    let told = ["L0/trace.dat", "L0/ctf"].map(|part| {
        let walk = walk(trace::open(&fixture("two-tracers").join(part)).unwrap().as_ref());
        assert_eq!(wrong_and_unknown(&walk.sink.exits, toy_level), (0, 0), "{part}: wrong and unknown");
        let exits: Vec<_> = walk.sink.exits.iter().map(|exit| (exit.reason, exit.rip)).collect();
        let chains = walk.sink.chains.iter().map(|chain| (chain.reason, chain.exits, chain.cost_ns.is_some()));
        (exits, chains.collect::<Vec<_>>())
    });
    assert_eq!(told[0], told[1]);
    assert_eq!((told[0].0.len(), told[0].1.len()), (620, 100), "exits and chains");
}

#[test]
fn the_linux_stacks_chains_are_l1s_own_exits() {
    let recording = fixture("svm-linux");
    let chains = chains_are_the_exits_of_l1(&recording.join("L0/trace.dat"), &recording.join("L1/trace.dat"));
    assert_eq!(chains, 900);
}

#[test]
fn a_linux_l1_on_vmx_has_the_exits_that_l0_gave_it_and_shadowing_takes_its_vmreads_away() {
    let of_vmcs = ["vmx-linux-shadow-on", "vmx-linux-shadow-off"].map(|name| {
        let l0 = fixture(name).join("L0/trace.dat");
        assert_eq!(chains_are_the_exits_of_l1(&l0, &fixture(name).join("L1/trace.dat")), 1_000, "{name}");
        let told = walk(trace::open(&l0).unwrap().as_ref()).sink;
        let closed = told.chains.iter().filter(|chain| chain.cost_ns.is_some());
        assert_eq!(closed.count(), 1_000, "{name}: every chain ends with an entry of L2");
        let of_l1 = told.exits.iter().filter(|exit| exit.level == TracedLevel::L1);
        of_l1.filter(|exit| ["VMREAD", "VMWRITE"].contains(&exit.reason.name().as_str())).count()
    });
    assert_eq!(of_vmcs, [1_249, 10_767], "VMREADs and VMWRITEs of L1 that L0 carries out for 1,000 exits of L2");
}

#[test]
#[ignore = "torture"]
fn all_43_249_chains_of_the_whole_linux_recording_are_l1s_own_exits() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let traces = std::env::var_os("KVMSCOPE_SHARED").map_or(beside, PathBuf::from).join("traces");
    let (l0, l1) = (traces.join("svm_linux_l0.dat"), traces.join("svm_linux_l1.dat"));
    if !l0.exists() || !l1.exists() {
        println!("skipped: {} is not there; KVMSCOPE_SHARED names the directory above `traces`", l0.display());
        return;
    }
    assert_eq!(chains_are_the_exits_of_l1(&l0, &l1), 43_249);
    let told = walk(trace::open(&l0).unwrap().as_ref()).sink.chains;
    let closed: Vec<_> = told.iter().filter(|chain| chain.cost_ns.is_some()).collect();
    let interrupted = closed.iter().filter(|chain| chain.interrupted).count();
    assert_eq!((closed.len(), interrupted), (43_247, 56), "no chain is cut where nothing was lost");
}
