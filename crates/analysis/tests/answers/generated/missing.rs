//! A CPU whose stream is missing: the view of a growing recording and the drawn flow know of it as the report does.

use super::equal::flow_of;
use base::recording::{Named, Recording};
use base::timeline::{LaneId, Timeline};
use base::{Level, Span};
use generate::{Target, scenario};
use kvmscope_analysis::facts::State;
use kvmscope_analysis::facts::ledger::live::LiveFlow;
use kvmscope_analysis::facts::{ledger::build, timeline};
use kvmscope_analysis::{Given, Input};
use std::path::{Path, PathBuf};
use trace::format::Endian;

/// Pieces in which a recording is looked at while it grows.
const PIECES: u64 = 16;

/// Empties the stream of the last CPU, as a recorder leaves it whose thread for that CPU died.
fn without_last_cpu(trace: &Path) {
    let files = std::fs::read_dir(trace).unwrap().map(|entry| entry.unwrap().path());
    let mut streams: Vec<PathBuf> = files.filter(|path| path.is_file() && !path.ends_with("metadata")).collect();
    streams.sort();
    std::fs::write(streams.last().unwrap(), "").unwrap();
}

/// Time without a CPU that the samples of a growing recording tell, in ns.
fn sampled_ns(input: &Input, span: Span) -> f64 {
    let mut flow = LiveFlow::new(Level::L0);
    let at = |piece: u64| span.from_ns + span.length_ns() * piece / PIECES;
    let samples = (0..PIECES).map(|piece| {
        let to_ns = at(piece + 1) + u64::from(piece + 1 == PIECES);
        let sample = flow.sample(input.parts[0].trace.as_ref(), Span { from_ns: at(piece), to_ns }, 0);
        let share = sample.shares.get("preempted").copied().flatten().unwrap_or(0.0);
        share * (sample.vcpus * (sample.to_ns - sample.from_ns)) as f64
    });
    samples.sum()
}

#[test]
fn nobody_is_told_to_wait_for_a_cpu_that_the_trace_lacks() {
    let mut waited = 0;
    for seed in 1..=24 {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::Ctf1 { endian: Endian::Little, lttng: false };
        let path = scenario::random(seed).write(target, directory.path()).unwrap();
        waited += flow_of(&path).vcpus.iter().map(|vcpu| vcpu.sums.ns(State::Preempted)).sum::<u64>();
        without_last_cpu(&path);
        let input = kvmscope_analysis::open(Recording::of_files(&[Named::at_l0(&path)], None).unwrap()).unwrap();
        let given = Given::default();
        let flow = build::build(&input, &given, &mut |_, _| {});
        let part = &flow.parts[0];
        let ledger_ns = |state| part.vcpus.iter().map(|vcpu| vcpu.sums.ns(state)).sum::<u64>();
        let preempted_ns = ledger_ns(State::Preempted);
        let told_ns = sampled_ns(&input, part.span);
        let most_ns = (preempted_ns + ledger_ns(State::WakeDelay)) as f64;
        assert!(told_ns <= most_ns * 1.01 + 1.0, "story {seed}: {told_ns} ns told while it grows, {most_ns} ns waited");
        let drawn = timeline::draw(&input, &given, &flow, &mut |_, _| {});
        let states = drawn.timeline.states();
        let place = states.iter().position(|state| state.name == "preempted");
        let lane_ns = |lane| {
            let coverage = drawn.timeline.coverage(LaneId(lane), drawn.timeline.span(), 1);
            place.map_or(0, |place| coverage.time_ns[place])
        };
        let lanes = 0..part.vcpus.len() as u32;
        assert_eq!(lanes.map(lane_ns).sum::<u64>(), preempted_ns, "story {seed}: the drawn flow");
    }
    assert!(waited > 0, "in no story a vCPU waits, whatever is missing");
}
