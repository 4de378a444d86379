//! Every scenario in every format gives the truth, but for the declared limits.

use super::answer::{Answer, differences};
use super::limits::{self, Missing};
use super::lost;
use base::recording::{Named, Recording};
use generate::scenario::{self, ALL};
use generate::{Generation, Story, Target, Vendor};
use kvmscope_analysis::Given;
use kvmscope_analysis::facts::ledger::build;
use kvmscope_analysis::facts::ledger::model::PartFlow;
use kvmscope_analysis::facts::losses::PartLosses;
use proptest::prelude::*;
use std::path::Path;
use trace::format::Endian;
use trace::write::tracedat::Compression;

const PLAIN: Target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None };
const LTTNG: Target = Target::Ctf1 { endian: Endian::Little, lttng: true };

/// How many times more is tried in `make torture`.
pub(super) fn torture() -> u64 {
    if std::env::var_os("KVMSCOPE_TORTURE").is_some() { 40 } else { 1 }
}

/// What the analysis makes of `story` as `target`.
pub(super) fn flow(story: &Story, target: Target) -> PartFlow {
    let directory = tempfile::tempdir().unwrap();
    flow_of(&story.write(target, directory.path()).unwrap())
}

/// What the analysis makes of a file.
pub(super) fn flow_of(path: &Path) -> PartFlow {
    parts_of(Recording::of_files(&[Named::at_l0(path)], None).unwrap()).remove(0)
}

/// The same, and what its vCPUs lost.
pub(super) fn ledger_of(path: &Path) -> (PartFlow, PartLosses) {
    let input = kvmscope_analysis::open(Recording::of_files(&[Named::at_l0(path)], None).unwrap()).unwrap();
    let mut ledger = build::ledger(&input, &Given::default(), &mut |_, _| {});
    (ledger.flow.parts.remove(0), ledger.losses.remove(0))
}

fn parts_of(recording: Recording) -> Vec<PartFlow> {
    let input = kvmscope_analysis::open(recording).unwrap();
    build::build(&input, &Given::default(), &mut |_, _| {}).parts
}

#[test]
fn two_traces_of_one_machine_count_once() {
    let (kernel, perf) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let story = scenario::random(1);
    let files = [
        story.write(PLAIN, kernel.path()).unwrap(),
        story.write(Target::PerfData { endian: Endian::Little }, perf.path()).unwrap(),
    ];
    let named = |path, name: &str| Named { name: Some(name.into()), ..Named::at_l0(path) };
    let mut recording = Recording::of_files(&[named(&files[0], "a"), named(&files[1], "b")], None).unwrap();
    let apart = parts_of(recording.clone());
    recording.parts[1].machine = recording.parts[0].machine.clone();
    let together = parts_of(recording);
    let vcpus = |parts: &[PartFlow]| parts.iter().map(|part| part.vcpus.len()).collect::<Vec<_>>();
    let count = vcpus(&apart)[0];
    assert!(count > 0);
    assert_eq!((vcpus(&apart), vcpus(&together)), (vec![count, count], vec![count, 0]));
    assert_eq!(together[1].twin_of.as_ref(), Some(&together[0].path));
}

/// Where the analysis of `story` as `target` is not true.
fn wrong(story: &Story, target: Target) -> Vec<String> {
    let missing = limits::of(story, target);
    let directory = tempfile::tempdir().unwrap();
    let (part, losses) = ledger_of(&story.write(target, directory.path()).unwrap());
    let (mut expected, mut found) = (Answer::true_of(&story.truth), Answer::found_in(&part));
    let wall_ns = part.window.length_ns();
    let mut wrong = lost::otherwise(&part, &losses);
    for (tid, answer) in &found {
        if answer.wall_ns() != wall_ns {
            wrong.push(format!("thread {tid}: the ledger has {} of {wall_ns} ns", answer.wall_ns()));
        }
    }
    if !missing.contains(&Missing::Nanoseconds) && wall_ns != story.truth.wall_ns() {
        wrong.push(format!("{wall_ns} ns long, true {}", story.truth.wall_ns()));
    }
    for missing in missing {
        expected.values_mut().chain(found.values_mut()).for_each(|answer| missing.taken_from(answer));
    }
    for tid in expected.keys().chain(found.keys().filter(|tid| !expected.contains_key(tid))) {
        let (Some(expected), Some(found)) = (expected.get(tid), found.get(tid)) else {
            wrong.push(format!("thread {tid} is a vCPU here and none there"));
            continue;
        };
        if expected.vcpu != found.vcpu {
            wrong.push(format!("thread {tid} is vCPU {}, true {}", found.vcpu, expected.vcpu));
        }
        let mut lines = differences("ledger", &expected.ledger, &found.ledger);
        lines.extend(differences("exits", &expected.exits, &found.exits));
        lines.extend(differences("chains", &expected.chains, &found.chains));
        lines.extend(differences("preemptors", &expected.preemptors, &found.preemptors));
        lines.extend(differences("host interrupts", &expected.host_interrupts, &found.host_interrupts));
        lines.extend(differences("stages", &expected.stages, &found.stages));
        wrong.extend(lines.into_iter().map(|line| format!("thread {tid}: {line}")));
    }
    wrong
}

/// Collects what is wrong in many cases, so that one run shows all.
#[derive(Default)]
struct Report {
    cases: u64,
    wrong: Vec<String>,
}

impl Report {
    fn add(&mut self, name: &str, story: &Story, target: Target) {
        self.cases += 1;
        let lines = wrong(story, target);
        if !lines.is_empty() {
            let case = format!("{name} {:?} {:?} as {}", story.vendor, story.generation, target.name());
            self.wrong.push(format!("{case}\n    {}", lines.join("\n    ")));
        }
    }

    fn assert_true(&self, at_least: u64) {
        let shown = &self.wrong[..self.wrong.len().min(8)];
        assert!(shown.is_empty(), "{} of {} cases:\n{}", self.wrong.len(), self.cases, shown.join("\n"));
        assert!(self.cases >= at_least, "only {} cases", self.cases);
    }
}

/// The scenarios without losses, with each vendor that can have them.
fn scenarios() -> impl Iterator<Item = (&'static scenario::Scenario, Vendor)> {
    let exact = ALL.iter().filter(|scenario| scenario.name != "losses");
    exact.flat_map(|scenario| scenario.vendors.iter().map(move |vendor| (scenario, *vendor)))
}

#[test]
fn every_format_tells_the_truth() {
    let mut report = Report::default();
    for (scenario, vendor) in scenarios() {
        for seed in 1..=torture() {
            let story = scenario.run_on(vendor, scenario.usual, seed).unwrap();
            Target::all().into_iter().for_each(|target| report.add(scenario.name, &story, target));
        }
    }
    report.assert_true(600);
}

#[test]
fn every_kernel_tells_the_truth() {
    let mut report = Report::default();
    for (scenario, vendor) in scenarios() {
        for generation in Generation::ALL {
            for seed in 2..4 + torture() {
                let Some(story) = scenario.run_on(vendor, generation, seed) else { continue };
                let targets: &[Target] = if seed == 2 { &[PLAIN, LTTNG, Target::TextPrinted] } else { &[PLAIN] };
                targets.iter().for_each(|target| report.add(scenario.name, &story, *target));
            }
        }
    }
    report.assert_true(700);
}

#[test]
fn a_clock_of_ticks_tells_the_truth() {
    let mut report = Report::default();
    for (scenario, vendor) in scenarios() {
        let story = scenario.run_on(vendor, scenario.usual, 3).unwrap().on_tsc(2_250_000_000, true);
        report.add(scenario.name, &story, PLAIN);
    }
    report.assert_true(20);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150 * torture() as u32, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_story_in_any_format_tells_the_truth(seed: u64, target in prop::sample::select(Target::all())) {
        let story = scenario::random(seed);
        let lines = wrong(&story, target);
        prop_assert!(
            lines.is_empty(),
            "{:?} {:?} as {}\n{}", story.vendor, story.generation, target.name(), lines.join("\n")
        );
    }
}

#[test]
fn every_limit_is_needed() {
    for limit in limits::LIMITS {
        let told = |(scenario, vendor): (&scenario::Scenario, Vendor)| {
            let story = scenario.run_on(vendor, scenario.usual, 1).unwrap();
            [LTTNG, Target::TextPrinted].into_iter().any(|target| {
                if !(limit.applies)(&story, target) {
                    return false;
                }
                let (mut expected, mut found) =
                    (Answer::true_of(&story.truth), Answer::found_in(&flow(&story, target)));
                for other in limits::of(&story, target).into_iter().filter(|other| *other != limit.missing) {
                    expected.values_mut().chain(found.values_mut()).for_each(|answer| other.taken_from(answer));
                }
                format!("{expected:?}") != format!("{found:?}")
            })
        };
        assert!(scenarios().any(told), "{:?}: {}", limit.missing, limit.why);
    }
}
