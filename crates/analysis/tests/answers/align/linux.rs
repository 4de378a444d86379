//! A Linux guest inside a Linux guest, recorded at both levels with the same counter: KVM's own offsets are the truth.

use base::recording::{Named, Recording};
use kvmscope_analysis::facts::align::pairing::By;
use kvmscope_analysis::facts::align::symbols::Symbols;
use kvmscope_analysis::facts::align::{self, Alignment, Map, Placed};
use kvmscope_analysis::{Given, Input, TraceHints};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const OFFSETS: &str = "kvm_write_tsc_offset";

fn fixture() -> Recording {
    Recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/svm-linux")).unwrap()
}

/// The whole recording, which is too large to be kept here.
pub(super) fn whole() -> Option<Recording> {
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

pub(super) fn align(input: &Input, hidden: &[&str]) -> Alignment {
    let ignore_events = hidden.iter().map(|name| (*name).to_owned()).collect();
    let given = Given { traces: TraceHints { ignore_events, ..TraceHints::default() }, ..Given::default() };
    let clock = trace::calibrate::fit(input.parts[0].trace.as_ref()).unwrap();
    let [below, guest] = [&input.parts[0], &input.parts[1]];
    align::align((below, &clock), (guest, &guest.trace.facts().clock), &given.traces.ignore_events, None, &|_| {
        Some("L1vm".into())
    })
}

/// All exits of L1 are found, none of its events lies where it cannot, and the offsets are exact.
fn exits_and_events_by_offsets(alignment: &Alignment) -> (usize, u64) {
    assert_eq!(alignment.cpus.iter().map(|cpu| (cpu.cpu, cpu.vcpu.tid)).collect::<Vec<_>>(), [(0, 170), (1, 171)]);
    let (mut exits, mut events) = (0, 0);
    for cpu in &alignment.cpus {
        assert!(matches!(cpu.map, Some(Map::Offsets(_, 0))) && cpu.paired_by == By::Exits);
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
fn pairs_agree_with_offsets(exact: &Alignment, paired: &Alignment) -> (usize, f64) {
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
fn the_cut_is_placed_by_kvms_offsets_and_without_them_within_the_stated_error() {
    let input = kvmscope_analysis::open(fixture()).unwrap();
    let (exact, paired) = (align(&input, &[]), align(&input, &[OFFSETS]));
    assert_eq!(exits_and_events_by_offsets(&exact), (900, 13_995));
    let (placed, worst_ns) = pairs_agree_with_offsets(&exact, &paired);
    assert!(placed == 900 && worst_ns < 1e6, "{placed} exits placed, error at most {worst_ns} ns");
    let methods: Vec<&str> = paired.cpus.iter().map(|cpu| cpu.map.as_ref().unwrap().method()).collect();
    assert_eq!(methods, ["causal_drift"; 2], "an emulated counter is not steady");
}

#[test]
#[ignore = "torture"]
fn the_whole_recording_is_placed_by_kvms_offsets_and_without_them_within_the_stated_error() {
    let Some(recording) = whole() else { return };
    let input = kvmscope_analysis::open(recording).unwrap();
    let (exact, paired) = (align(&input, &[]), align(&input, &[OFFSETS]));
    assert_eq!(exits_and_events_by_offsets(&exact), (43_249, 314_649));
    let (placed, worst_ns) = pairs_agree_with_offsets(&exact, &paired);
    // Before the first cause nothing bounds a time from below, behind the last effect nothing from above.
    assert_eq!(placed, 43_247, "error at most {worst_ns} ns");
    hypervisors_instructions_lie_in_kvm(&input, &exact);
}

/// What only a hypervisor executes lies in KVM's functions, by L1's own symbols, and in the thread of L2's vCPU.
fn hypervisors_instructions_lie_in_kvm(input: &Input, alignment: &Alignment) {
    let symbols = Symbols::parse(input.parts[1].trace.kallsyms().expect("trace-cmd stores them")).unwrap();
    let mut found: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut exits = 0;
    for cpu in &alignment.cpus {
        exits += cpu.vcpu.exits.len() as u64;
        for ((reason, rip), (count, _)) in &cpu.vcpu.sites {
            let symbol = symbols.name(*rip).unwrap_or_default();
            *found.entry((reason.name(), symbol)).or_default() += count;
        }
    }
    assert_eq!(found.values().sum::<u64>(), exits, "every exit has a site");
    let count = |reason: &str, symbol: &str| found.get(&(reason.to_owned(), symbol.to_owned())).copied();
    assert_eq!(count("VMRUN", "__svm_vcpu_run [kvm_amd]"), Some(43_249));
    assert_eq!(count("STGI", "svm_vcpu_run [kvm_amd]"), Some(43_249));
    assert_eq!(count("HLT", "native_safe_halt"), Some(26_750));
    let tasks: u64 = alignment.tasks.values().map(|sums| sums.exits).sum();
    let hypervisor: u64 = (0..2).map(|cpu| alignment.tasks[&(cpu, Some(169))].exits).sum();
    assert!(tasks <= exits && hypervisor > 43_249 * 7, "{hypervisor} of {tasks} of {exits}");
}
