//! Does the picture show what the ledger says? Time per lane and state, and chains, are those of the section's sums.

use base::Level;
use base::recording::Recording;
use base::timeline::{LaneId, Timeline};
use kvmscope_analysis::facts::State;
use kvmscope_analysis::facts::{
    ledger::{build, model::Flow},
    timeline,
};
use kvmscope_analysis::{Given, Input};
use std::collections::BTreeMap;
use std::path::Path;

/// The last one lacks parts of two CPUs.
const FIXTURES: [&str; 5] =
    ["nested-svm-toy", "nested-vmx-shadow-on", "nested-vmx-shadow-off-hog", "svm-linux", "lttng-svm-l0"];

fn flow_of(name: &str) -> (Input, Flow, Given) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    let (input, given) = (kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap(), Given::default());
    let mut progress = |_, _| {};
    let flow = build::build(&input, &given, &mut progress);
    (input, flow, given)
}

#[test]
fn lanes_hold_the_ledgers_time_and_chains_the_sections_count() {
    for name in FIXTURES {
        let (input, flow, given) = flow_of(name);
        let drawn = timeline::draw(&input, &given, &flow, &mut |_, _| {});
        let part = &flow.parts[0];
        assert_eq!((part.level, drawn.vcpus.len()), (Level::L0, part.vcpus.len()), "{name}");
        for (lane, vcpu) in part.vcpus.iter().enumerate() {
            let lane = LaneId(lane as u32);
            let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
            for (index, ns) in vcpu.sums.states_ns.iter().enumerate().filter(|(_, ns)| **ns > 0) {
                *expected.entry(ledger_name(State::of_index(index))).or_default() += ns;
            }
            for width in [1, 97] {
                let coverage = drawn.timeline.coverage(lane, drawn.timeline.span(), width);
                let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
                for pixel in coverage.time_ns.chunks(coverage.states) {
                    for (state, ns) in drawn.timeline.states().iter().zip(pixel).filter(|(_, ns)| **ns > 0) {
                        let known = expected.keys().find(|known| **known == state.name);
                        *seen.entry(known.unwrap_or_else(|| panic!("{name}: {}", state.name))).or_default() += ns;
                    }
                }
                assert_eq!(seen, expected, "{name}, {width} pixels");
            }
            let chains: Vec<_> = drawn.chains.iter().filter(|chain| chain.lane == lane).collect();
            assert_eq!(chains.len() as u64, vcpu.sums.chains.values().map(|sums| sums.count).sum::<u64>(), "{name}");
            let undisturbed = chains.iter().filter(|chain| chain.is_undisturbed());
            let costs: u64 = undisturbed.filter_map(|chain| chain.cost_ns).sum();
            assert_eq!(costs, vcpu.sums.chains.values().map(|sums| sums.cost_ns.sum()).sum::<u64>(), "{name}");
            assert!(chains.iter().all(|chain| chain.cost_ns.unwrap_or(0) <= chain.span.length_ns()), "{name}");
        }
    }
}

#[test]
fn a_slice_says_why_the_guest_was_left() {
    let (input, flow, given) = flow_of("nested-vmx-shadow-off-hog");
    let drawn = timeline::draw(&input, &given, &flow, &mut |_, _| {});
    let chain = drawn.chains.iter().find(|chain| chain.exits == 15).unwrap();
    let slices = drawn.timeline.slices(chain.lane, chain.span, 1_000).slices;
    let why: Vec<&str> = slices.iter().filter_map(|slice| Some(drawn.timeline.detail(slice.id)?.1)).collect();
    let why: Vec<&str> = why.into_iter().filter(|why| !why.is_empty()).collect();
    assert_eq!(why[0], chain.reason, "{why:?}");
    assert_eq!(why[1..], chain.sequence[..], "each of L1's exits begins a slice");
}

/// The ledger's column of a state in a trace of L0.
fn ledger_name(state: State) -> &'static str {
    const LEVELS: [(&str, &str); 5] = [
        ("guest_l1", "handling_l1"),
        ("guest_l2", "handling_l2"),
        ("guest_l3", "handling_l3"),
        ("guest_l4", "handling_l4"),
        ("guest_l5", "handling_l5"),
    ];
    let unknown = ("guest_unknown_level", "handling_unknown_level");
    let level = |depth: Option<u8>| depth.map_or(unknown, |depth| LEVELS[usize::from(depth) - 1]);
    match state {
        State::Guest(at) => level(at.depth()).0,
        State::Handling(at) => level(at.depth()).1,
        State::Userspace => "userspace",
        State::Irq => "irq",
        State::Softirq => "softirq",
        State::Nmi => "nmi",
        State::HaltPoll => "halt_poll",
        State::Halted => "halted",
        State::WakeDelay => "wake_delay",
        State::Preempted => "preempted",
        State::Blocked => "blocked",
        State::Unknown => "unknown",
    }
}
