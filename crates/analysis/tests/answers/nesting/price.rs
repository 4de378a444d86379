//! Findings of a host, priced by its own exits: a trace of an L1 that reads its VMCS, and a snapshot that says why.

use super::tree::bundled;
use base::recording::{Part, PartKind, PartState, Recording};
use base::{Finding, Section};
use kvmscope_analysis::{Answers, Case, Given};
use std::path::Path;

/// The trace of `fixture` with the snapshot at `host`, which the recorder would have taken beside it.
fn sections(fixture: &str, host: &Path) -> Vec<Section> {
    let mut recording = Recording::open(&bundled(fixture)).unwrap();
    recording.parts.retain(|part| part.machine == "L0");
    let path = std::path::absolute(host).unwrap();
    let machine = "L0".to_owned();
    recording.parts.push(Part { path, machine, kind: PartKind::Host, clock: None, state: PartState::Complete });
    let input = kvmscope_analysis::open(recording).unwrap();
    Answers::of(&Case::new(input, Given::default())).sections
}

fn shadow(sections: &[Section]) -> Option<Finding> {
    let nesting = sections.iter().find(|section| section.id == "nesting")?;
    nesting.findings.iter().find(|finding| finding.rule == "NST-SHADOW").cloned()
}

#[test]
fn the_cost_of_a_switch_is_that_of_its_exits_in_the_trace() {
    let host = super::tree::Tree::of("hosts-intel", 0).with("kvm_intel.enable_shadow_vmcs", "N");
    let found = shadow(&sections("vmx-linux-shadow-off", host.root())).unwrap();
    assert_eq!(found.cost.kind.name(), "measured");
    assert!(found.cost.unit.contains("emulated by Bochs"), "{}", found.cost.unit);
    // Table exits of flow: 9,578 VMREAD and 1,189 VMWRITE of L1 in 35,088,627 + 4,549,423 of 484,587,220 ns.
    let share = (35_088_627.0 + 4_549_423.0) / 484_587_220.0;
    assert!((found.cost.value.unwrap() - share).abs() < 1e-9, "{:?}", found.cost);
    assert!(found.evidence[1].what.starts_with("10,767 exits are VMREAD and VMWRITE"), "{:?}", found.evidence);
    assert!(found.evidence[2].what.contains("exits per chain"), "{:?}", found.evidence);
}

#[test]
fn without_a_trace_the_published_number_stays_and_with_shadowing_there_is_no_finding() {
    let host = super::tree::Tree::of("hosts-intel", 0);
    assert!(shadow(&sections("vmx-linux-shadow-on", host.root())).is_none());
    let off = host.with("kvm_intel.enable_shadow_vmcs", "N");
    assert_eq!(off.finding("NST-SHADOW").unwrap().cost.kind.name(), "published");
}
