//! Do samples taken while a recording grows add up to what a report says of the whole?

use base::gauges::Sample;
use base::recording::Recording;
use base::{Level, Span};
use kvmscope_analysis::facts::State;
use kvmscope_analysis::facts::breach::{Breach, Judge};
use kvmscope_analysis::facts::budget::Budget;
use kvmscope_analysis::facts::ledger::build;
use kvmscope_analysis::facts::ledger::live::LiveFlow;
use kvmscope_analysis::facts::ledger::model::PartFlow;
use kvmscope_analysis::facts::losses::{Definition, Stretches, VcpuLosses};
use kvmscope_analysis::{Case, Given, Input};
use std::path::Path;

fn input(name: &str) -> Input {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap()
}

fn whole(input: &Input) -> PartFlow {
    let given = Given::default();
    build::build(input, &given, &mut |_, _| {}).parts.remove(0)
}

/// The recording in `pieces` equal spans; its last event lies behind the last.
fn samples(input: &Input, part: &PartFlow, pieces: u64) -> Vec<Sample> {
    let mut flow = LiveFlow::new(Level::L0);
    let at = |piece: u64| part.span.from_ns + part.span.length_ns() * piece / pieces;
    let span = |piece| Span { from_ns: at(piece), to_ns: at(piece + 1) + u64::from(piece + 1 == pieces) };
    (0..pieces).map(|piece| flow.sample(input.parts[0].trace.as_ref(), span(piece), 0)).collect()
}

fn seconds(sample: &Sample) -> f64 {
    (sample.to_ns - sample.from_ns) as f64 / 1e9
}

fn near(found: f64, expected: f64, share: f64) -> bool {
    (found - expected).abs() <= share * expected.abs() + 1e-9
}

#[test]
fn samples_add_up_to_the_report() {
    for name in ["nested-vmx-shadow-off-hog", "nested-svm-toy", "nested-vmx-shadow-on"] {
        let input = input(name);
        let part = whole(&input);
        let samples = samples(&input, &part, 40);
        let exits: u64 = part.vcpus.iter().map(|vcpu| vcpu.sums.exit_count()).sum();
        let rate = |sample: &Sample| sample.exits_per_second.unwrap_or(0.0) * seconds(sample);
        // An exit is told when it is over: one may be under way at the end.
        let sampled: f64 = samples.iter().map(rate).sum();
        assert!((exits as f64 - sampled).abs() < 0.5 + part.vcpus.len() as f64, "{name}: {sampled} of {exits}");
        let events: f64 = samples.iter().map(|sample| sample.events_per_second * seconds(sample)).sum();
        assert!((events - part.events as f64).abs() < 0.5, "{name}: {events} of {} events", part.events);
        let chains: f64 = samples.iter().filter_map(|sample| Some(sample.chains_per_second? * seconds(sample))).sum();
        let closed: u64 =
            part.vcpus.iter().flat_map(|vcpu| vcpu.sums.chains.values()).map(|sums| sums.exits.count()).sum();
        assert!((chains - closed as f64).abs() < 0.5, "{name}: {chains} of {closed} chains");
        for sample in samples.iter().filter(|sample| sample.vcpus > 0) {
            let sum: f64 = sample.shares.values().flatten().sum();
            assert!(near(sum, 1.0, 1e-9), "{name}: {sample:?}");
        }
    }
}

#[test]
fn shares_of_the_samples_are_those_of_the_ledger() {
    let input = input("nested-svm-toy");
    let part = whole(&input);
    let samples = samples(&input, &part, 25);
    for (key, wanted) in [
        (
            "guest_l2",
            &(|state: State| matches!(state, State::Guest(level) if level.is_nested())) as &dyn Fn(State) -> bool,
        ),
        ("vmm", &|state| state == State::Userspace),
        ("halted", &|state| matches!(state, State::Halted | State::HaltPoll)),
    ] {
        let of = |sample: &Sample| sample.shares.get(key).copied().flatten().unwrap_or(0.0);
        let sampled: f64 = samples.iter().map(|sample| of(sample) * seconds(sample) * sample.vcpus as f64).sum();
        let states = part.vcpus.iter().flat_map(|vcpu| vcpu.sums.states_ns.iter().enumerate());
        let ns: u64 = states.filter(|(index, _)| wanted(State::of_index(*index))).map(|(_, ns)| ns).sum();
        // At the edges of samples the level of the last exit is not settled yet.
        assert!(near(sampled, ns as f64 / 1e9, 0.05), "{key}: {sampled} of {} s", ns as f64 / 1e9);
    }
}

#[test]
fn time_that_was_passed_over_is_said_and_the_walk_starts_anew() {
    let input = input("nested-svm-toy");
    let part = whole(&input);
    let mut flow = LiveFlow::new(Level::L0);
    let trace = input.parts[0].trace.as_ref();
    let (from_ns, length_ns) = (part.span.from_ns, part.span.length_ns());
    let span =
        |from: u64, to: u64| Span { from_ns: from_ns + length_ns * from / 10, to_ns: from_ns + length_ns * to / 10 };
    flow.sample(trace, span(0, 2), 0);
    let later = flow.sample(trace, span(8, 10), length_ns * 8 / 10 - length_ns * 2 / 10);
    assert!(near(later.seen_share, 0.25, 1e-6) && later.number == 1, "{later:?}");
    assert_eq!(later.from_ns, length_ns * 2 / 10);
    assert!(later.exits_per_second.unwrap() > 0.0);
}

#[test]
fn a_cpu_that_is_missing_from_the_trace_is_no_preemption() {
    let directory = tempfile::tempdir().unwrap();
    for file in ["metadata", "ch_1"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/lttng-svm-l0/L0/ctf").join(file);
        std::fs::copy(from, directory.path().join(file)).unwrap();
    }
    std::fs::write(directory.path().join("ch_0"), b"").unwrap();
    let input = kvmscope_analysis::open(Recording::open(directory.path()).unwrap()).unwrap();
    assert!(input.parts[0].trace.facts().coverage.values().any(|part| *part != trace::facts::Coverage::Whole));
    let part = whole(&input);
    let waited_ns = |state| part.vcpus.iter().map(|vcpu| vcpu.sums.ns(state)).sum::<u64>() as f64;
    let waited = (waited_ns(State::Preempted) + waited_ns(State::WakeDelay)) / 1e9;
    let share = |sample: &Sample| sample.shares.get("preempted").copied().flatten().unwrap_or(0.0);
    let samples = samples(&input, &part, 40);
    let sampled: f64 = samples.iter().map(|sample| share(sample) * sample.vcpus as f64 * seconds(sample)).sum();
    assert!(sampled <= waited * 1.01 + 1e-6, "{sampled} s told while it is recorded, {waited} s in the report");
}

/// How the first `length_ns` of the trace of a host break a goal, judged in pieces.
fn breaches(input: &Input, (part, length_ns): (&PartFlow, u64), pieces: u64, goal: &str) -> Vec<Breach> {
    let budget = format!("schema = \"kvmscope.budget/1\"\nname = \"test\"\n[[goal]]\nid = \"only\"\n{goal}");
    let budget = Budget::read("test.toml", &budget).unwrap();
    let mut judge = Judge::of(&budget).unwrap();
    let at = |piece: u64| part.span.from_ns + length_ns * piece / pieces;
    let span = |piece| Span { from_ns: at(piece), to_ns: at(piece + 1) };
    let trace = input.parts[0].trace.as_ref();
    (0..pieces).filter_map(|piece| judge.look(trace, span(piece), 0, &input.parts[0].processes)).collect()
}

/// KVM tells nothing of a guest that neither enters nor leaves: its thread's name is all that says that a vCPU waits.
#[test]
fn a_vcpu_of_which_kvm_told_nothing_breaks_a_goal_by_its_name() {
    let switch = |from: &str, tid: u32, state: &str, at: &str, to: &str, next: u32| {
        format!(
            "{from}-{tid} [000] d..2. {at}: sched_switch: prev_comm={from} prev_pid={tid} prev_prio=120 prev_state={state} ==> next_comm={to} next_pid={next} next_prio=120\n"
        )
    };
    let told = |vcpu: &str| {
        let text = [
            switch("<idle>", 0, "R", "10.000000", vcpu, 98),
            switch(vcpu, 98, "R", "10.010000", "hog", 7),
            switch("hog", 7, "R", "10.040000", vcpu, 98),
            switch(vcpu, 98, "S", "10.050000", "<idle>", 0),
        ];
        let file = tempfile::Builder::new().suffix(".txt").tempfile().unwrap();
        std::fs::write(file.path(), text.concat()).unwrap();
        let input = kvmscope_analysis::open(Recording::open(file.path()).unwrap()).unwrap();
        let part = whole(&input);
        let goal = "metric = \"preempt_period\"\nstat = \"max\"\nop = \"<=\"\nlimit = \"1ms\"\n";
        breaches(&input, (&part, part.span.length_ns()), 1, goal)
    };
    let broken = told("CPU 3/KVM");
    assert_eq!((broken[0].vcpu, broken[0].loss_ns, broken[0].causes[0].1), (3, 30_000_000, 30_000_000), "{broken:?}");
    assert!(broken[0].causes[0].0.contains("hog"), "{broken:?}");
    assert_eq!(told("worker"), []);
}

#[test]
fn a_goal_is_broken_live_where_the_whole_recording_breaks_it() {
    for (name, culprit) in [("nested-vmx-shadow-off-hog", Some("busybox")), ("nested-svm-toy", None)] {
        let case = Case::new(input(name), Given::default());
        let part = &case.ledger().parts[0];
        let losses = &case.losses()[0];
        // A vCPU that leaves its guest for good has lost nothing, but that is not known before.
        let span = Span { from_ns: 0, to_ns: part.span.length_ns() * 3 / 4 };
        for window_ns in [Some(1_000_000), Some(20_000_000), None] {
            let of_vcpu = |vcpu: &VcpuLosses| {
                let stretches = vcpu.stretches(Definition::Involuntary);
                let early = Stretches::of(stretches.spans().iter().copied().take_while(|lost| lost.to_ns < span.to_ns));
                match window_ns {
                    Some(window_ns) => early.sup(span, window_ns).map(|worst| (worst.loss_ns, worst.at_ns)),
                    None => early.longest().map(|longest| (longest.length_ns(), longest.from_ns)),
                }
            };
            let rank = |(loss_ns, at_ns): &(u64, u64)| (*loss_ns, std::cmp::Reverse(*at_ns));
            let (loss_ns, at_ns) = losses.vcpus.iter().filter_map(of_vcpu).max_by_key(rank).unwrap();
            let goal = |limit_ns: u64| match window_ns {
                Some(ns) => format!(
                    "metric = \"preempt_window\"\nstat = \"sup\"\nwindow = \"{ns}ns\"\nop = \"<=\"\nlimit = \"{limit_ns}ns\"\n"
                ),
                None => format!("metric = \"preempt_period\"\nstat = \"max\"\nop = \"<=\"\nlimit = \"{limit_ns}ns\"\n"),
            };
            for pieces in [1, 7, 40] {
                let why = format!("{name}, a window of {window_ns:?} ns, in {pieces} pieces");
                assert_eq!(breaches(case.input(), (part, span.to_ns), pieces, &goal(loss_ns)), [], "{why}");
                let broken = breaches(case.input(), (part, span.to_ns), pieces, &goal(loss_ns - 1));
                let first = &broken[0];
                assert_eq!((first.loss_ns, first.during.from_ns - part.span.from_ns), (loss_ns, at_ns), "{why}");
                let named: u64 = first.causes.iter().map(|(_, ns)| ns).sum();
                assert_eq!(named, loss_ns, "{why}: {first:?}");
                if let Some(culprit) = culprit {
                    assert!(first.causes[0].0.contains(culprit), "{why}: {first:?}");
                }
            }
        }
    }
}
