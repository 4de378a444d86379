//! Checks of switches of KVM's modules that are off.

use super::{hit, option, shown_by};
use crate::nesting::known::{KNOWN, Known, Reads};
use crate::nesting::model::{Machine, Model, State};
use crate::rule::Hit;
use base::{Evidence, Needs, Severity};

/// Features that have a rule of their own.
const APART: &[&str] = &["nested", "vmcs_shadowing", "enlightened_vmcs"];
/// Second-level paging.
const PAGING: &[&str] = &["ept", "npt"];
/// The local APIC by hardware.
const APIC: &[&str] = &["apicv", "avic"];
/// Instructions of SVM that a guest hypervisor executes for each exit of its guest.
const SVM: &[&str] = &["virtual_vmload_vmsave", "virtual_gif"];

/// Second-level page tables off or absent.
pub fn paging(model: &Model) -> Vec<Hit> {
    off(model, Severity::High, &|known| PAGING.contains(&known.feature))
}

/// APICv or AVIC off.
pub fn apic(model: &Model) -> Vec<Hit> {
    let mut hits = off(model, Severity::Medium, &|known| APIC.contains(&known.feature));
    let evmcs = |id: &str| {
        let machine = model.machines.iter().find(|machine| machine.id == id);
        machine.is_some_and(|machine| machine.state("enlightened_vmcs") == State::On)
    };
    // With the enlightened VMCS it is off by design; NST-EVMCSON says so.
    hits.retain(|hit| !evmcs(hit.subject.split('.').next().unwrap_or_default()));
    hits
}

/// VMLOAD, VMSAVE, STGI and CLGI of guest hypervisors exit.
pub fn svm(model: &Model) -> Vec<Hit> {
    off(model, Severity::Medium, &|known| SVM.contains(&known.feature))
}

/// Any other switch that costs exits when it is off.
pub fn others(model: &Model) -> Vec<Hit> {
    let apart = [APART, PAGING, APIC, SVM].concat();
    off(model, Severity::Low, &|known| !apart.contains(&known.feature))
}

/// Features that are off although nothing speaks against them.
fn off(model: &Model, severity: Severity, wanted: &dyn Fn(&Known) -> bool) -> Vec<Hit> {
    let mut hits = Vec::new();
    for machine in model.machines.iter().filter(|machine| has_hardware(machine)) {
        let concerned = KNOWN.iter().filter(|known| {
            let loaded = machine.facts.is_loaded(known.module) == Some(true);
            loaded
                && !known.feature.is_empty()
                && !known.without.is_empty()
                && known.reads == Reads::Switch
                && wanted(known)
        });
        for known in concerned.filter(|known| machine.state(known.feature) == State::Off) {
            hits.push(of(machine, known, severity));
        }
    }
    hits
}

fn of(machine: &Machine, known: &Known, severity: Severity) -> Hit {
    let title = format!("{}.{} is off at {}: {}", known.module, known.name, machine.id, known.without);
    let mut evidence = shown_by(machine, known.feature);
    evidence.push(Evidence::new(format!("its default is {}", known.default), "docs/check.md"));
    let mut hit = hit(machine, severity, title, evidence);
    hit.subject = format!("{}.{}", machine.id, known.feature);
    // KVM clears a switch at load where the hardware, as this level sees it, lacks the feature. Where a flag shows the
    // hardware, it is there, else the row said absent; where none does, the change may not hold.
    if known.flag.is_empty() && known.module != "kvm" {
        hit.fix = vec![format!(
            "cat /sys/module/{}/parameters/{}   # still off means that the CPU lacks it",
            known.module, known.name
        )];
    }
    hit.changes = vec![option(known.module, known.name, "1", "0")];
    hit.needs = Some(Needs::Reload);
    hit
}

/// KVM without VMX and SVM has none of these features to switch on.
fn has_hardware(machine: &Machine) -> bool {
    machine.state("virtualization") == State::On
}
