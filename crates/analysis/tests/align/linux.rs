//! A Linux guest inside a Linux guest, recorded at both levels with the same counter: KVM's own offsets are the truth.

use base::recording::{Named, Recording};
use kvmscope_analysis::shared::align::{self, Alignment, Map, Placed};
use kvmscope_analysis::{Input, Options};
use std::path::{Path, PathBuf};

const OFFSETS: &str = "kvm_write_tsc_offset";

fn fixture() -> Recording {
    Recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/svm-linux")).unwrap()
}

/// The whole recording, which is too large to be kept here.
fn whole() -> Option<Recording> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let traces = std::env::var_os("KVMSCOPE_SHARED").map_or(beside, PathBuf::from).join("traces");
    let files = [(0, "svm_linux_l0.dat"), (1, "svm_linux_l1.dat")];
    let named = files.map(|(level, file)| Named { level, name: None, path: traces.join(file) });
    if named.iter().any(|file| !file.path.exists()) {
        println!("skipped: {} lacks them; KVMSCOPE_SHARED names the directory above `traces`", traces.display());
        return None;
    }
    Some(Recording::of_files(&named, None).unwrap())
}

fn align(recording: Recording, hidden: &[&str]) -> Alignment {
    let input = Input::open(recording).unwrap();
    let ignore_events = hidden.iter().map(|name| (*name).to_owned()).collect();
    let options = Options { ignore_events, ..Options::default() };
    let clock = trace::calibrate::fit(input.parts[0].trace.as_ref()).unwrap();
    let [below, guest] = [&input.parts[0], &input.parts[1]];
    align::align((below, &clock), (guest, &guest.trace.facts().clock), &options, &|_| Some("L1vm".into()))
}

/// All exits of L1 are found, none of its events lies where it cannot, and the offsets are exact.
fn exits_and_events_by_offsets(recording: Recording) -> (usize, u64) {
    let alignment = align(recording, &[]);
    assert_eq!(alignment.cpus.iter().map(|cpu| (cpu.cpu, cpu.vcpu.tid)).collect::<Vec<_>>(), [(0, 170), (1, 171)]);
    let (mut exits, mut events) = (0, 0);
    for cpu in &alignment.cpus {
        assert!(matches!(cpu.map, Some(Map::Offsets(_, 0))) && cpu.paired_by_exits);
        let all: Vec<(usize, usize)> = (0..cpu.own.exits.len()).map(|place| (place, place)).collect();
        assert_eq!(cpu.common, all, "the k-th is the k-th");
        assert_eq!(cpu.vcpu.reflected.len(), cpu.own.exits.len(), "none is left over");
        assert_eq!((cpu.outside.violations, cpu.outside.errors.max(), cpu.vcpu.steps.breaks), (0, 0, 0));
        assert!(cpu.outside.unjudged <= 1);
        exits += cpu.common.len();
        events += cpu.outside.events;
    }
    assert_eq!(alignment.unpaired, 0);
    (exits, events)
}

/// The causal pairs alone, held against the offsets: how many exits they place, and the largest error.
fn pairs_agree_with_offsets(recording: Recording) -> (usize, f64) {
    let (exact, paired) = (align(recording.clone(), &[]), align(recording, &[OFFSETS]));
    let (mut placed, mut worst, mut wrong) = (0, 0, Vec::new());
    for (truth, cpu) in exact.cpus.iter().zip(&paired.cpus) {
        assert_eq!(truth.common, cpu.common, "found by order alone");
        let (truth, map) = (truth.map.as_ref().unwrap(), cpu.map.as_ref().unwrap());
        assert_eq!(cpu.outside.violations, 0);
        for exit in &cpu.own.exits {
            let Some(found) = map.place(exit.at) else { continue };
            let Placed { value, .. } = truth.place(exit.at).unwrap();
            placed += 1;
            worst = worst.max(found.error());
            if !(found.low..=found.high).contains(&value) {
                wrong.push((exit.at, found.low.wrapping_sub(value) as i64, value.wrapping_sub(found.high) as i64));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {placed} are off by more than stated: {:?}",
        wrong.len(),
        &wrong[..5.min(wrong.len())]
    );
    (placed, paired.axis.length_ns(worst as f64))
}

#[test]
fn the_cuts_exits_and_events_are_placed_by_kvms_offsets() {
    assert_eq!(exits_and_events_by_offsets(fixture()), (900, 13_995));
}

#[test]
fn all_43_249_exits_and_314_649_events_are_placed_by_kvms_offsets() {
    let Some(recording) = whole() else { return };
    assert_eq!(exits_and_events_by_offsets(recording), (43_249, 314_649));
}

#[test]
fn with_the_offsets_hidden_causal_pairs_place_the_cut_within_their_error() {
    let (placed, worst_ns) = pairs_agree_with_offsets(fixture());
    println!("{placed} placed, error at most {worst_ns} ns");
}

#[test]
fn with_the_offsets_hidden_causal_pairs_place_the_whole_recording_within_their_error() {
    let Some(recording) = whole() else { return };
    let (placed, worst_ns) = pairs_agree_with_offsets(recording);
    println!("{placed} placed, error at most {worst_ns} ns");
}
