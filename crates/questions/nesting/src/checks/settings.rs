//! Checks of switches of KVM's modules that are off.

use super::{hit, option, shown_by};
use crate::known::{KNOWN, Known, Reads};
use crate::model::{Machine, Model};
use base::figure::Standing;
use base::{Evidence, Needs, Severity};
use facts::avic::{self, Guests};
use facts::rule::Hit;

/// Features that have a rule of their own.
const APART: &[&str] = &["nested", "vmcs_shadowing", "enlightened_vmcs"];
const PAGING: &[&str] = &["ept", "npt"];
/// The local APIC by hardware.
const APIC: &[&str] = &["apicv", "avic"];
/// Instructions of SVM that a guest hypervisor executes for each exit of its guest.
const SVM: &[&str] = &["virtual_vmload_vmsave", "virtual_gif"];

/// Second-level page tables off or absent.
pub(crate) fn paging(model: &Model) -> Vec<Hit> {
    off(model, Severity::High, &|known| PAGING.contains(&known.feature))
}

/// APICv or AVIC off.
pub(crate) fn apic(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    // With the enlightened VMCS it is off by design; NST-EVMCSON says so.
    for machine in model.machines.iter().filter(|machine| machine.state("enlightened_vmcs") != Standing::On) {
        for known in switched_off(machine, &|known| APIC.contains(&known.feature)) {
            let hit = of(machine, known, Severity::Medium);
            hits.push(if known.feature == "avic" { avic_if_it_holds(machine, hit) } else { hit });
        }
    }
    hits
}

/// No command for AVIC where it does harm or nothing: then the switch is right as it is.
fn avic_if_it_holds(machine: &Machine, hit: Hit) -> Hit {
    let guests = Guests { nested: machine.state("nested") == Standing::On, x2apic: None };
    let against = avic::against(machine.facts.release.as_ref(), Some(&machine.facts), guests);
    if against.is_empty() {
        return hit;
    }
    let title = format!("kvm_amd.avic is off at {}: leave it off with this kernel and CPU", machine.id);
    let mut evidence = hit.evidence;
    evidence.extend(against.into_iter().map(|what| Evidence::new(what, "docs/use/check.md#avic")));
    evidence.extend(machine.facts.release.as_ref().and_then(super::kernel::doubt));
    let severity = Severity::Info;
    Hit { severity, title, evidence, fix: Vec::new(), changes: Vec::new(), needs: Some(Needs::Nothing), ..hit }
}

/// VMLOAD, VMSAVE, STGI and CLGI of guest hypervisors exit.
pub(crate) fn svm(model: &Model) -> Vec<Hit> {
    off(model, Severity::Medium, &|known| SVM.contains(&known.feature))
}

/// Any other switch that costs exits when it is off.
pub(crate) fn others(model: &Model) -> Vec<Hit> {
    let apart = [APART, PAGING, APIC, SVM].concat();
    off(model, Severity::Low, &|known| !apart.contains(&known.feature))
}

/// Features that are off although nothing speaks against them.
fn off(model: &Model, severity: Severity, wanted: &dyn Fn(&Known) -> bool) -> Vec<Hit> {
    let of_machine = |machine| switched_off(machine, wanted).into_iter().map(move |known| of(machine, known, severity));
    model.machines.iter().flat_map(of_machine).collect()
}

fn switched_off(machine: &Machine, wanted: &dyn Fn(&Known) -> bool) -> Vec<&'static Known> {
    let is_off = |known: &&Known| {
        machine.facts.is_loaded(known.module) == Some(true)
            && !known.feature.is_empty()
            && !known.without.is_empty()
            && known.reads == Reads::Switch
            && wanted(known)
            && machine.state(known.feature) == Standing::Off
    };
    // KVM without VMX and SVM has none of these features to switch on.
    let has_hardware = machine.state("virtualization") == Standing::On;
    KNOWN.iter().filter(|_| has_hardware).filter(is_off).collect()
}

fn of(machine: &Machine, known: &Known, severity: Severity) -> Hit {
    let title = format!("{}.{} is off at {}: {}", known.module, known.name, machine.id, known.without);
    let mut evidence = shown_by(machine, known.feature);
    evidence.push(Evidence::new(format!("its default is {}", known.default), "docs/use/check.md"));
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
