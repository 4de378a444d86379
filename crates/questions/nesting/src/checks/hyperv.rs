//! Checks of KVM on Hyper-V.

use super::{hit, option, shown_by};
use crate::model::{Machine, Model};
use base::figure::Standing;
use base::{Cost, CostKind, Needs, Severity};
use facts::published::value;
use facts::rule::Hit;

/// Machines on Hyper-V that may run nested guests with VMX.
fn on_hyperv(model: &Model) -> impl Iterator<Item = &Machine> {
    let on = |machine: &&Machine| machine.facts.below.is_hyperv() && machine.state("virtualization") == Standing::On;
    model.machines.iter().filter(on)
}

/// What the enlightened VMCS saves, as published.
fn saved() -> Cost {
    let slides = value("fosdem18.cpuid.l2") - value("fosdem18.cpuid.l2.evmcs");
    let commit = value("evmcs18.cpuid.l2") - value("evmcs18.cpuid.l2.evmcs");
    Cost::of(CostKind::Published, slides, "cycles per exit of a nested guest").between(commit, slides)
}

/// Offered, and not used.
pub(crate) fn evmcs_off(model: &Model) -> Vec<Hit> {
    let off = on_hyperv(model).filter(|machine| {
        machine.state("hyperv_evmcs_offered") == Standing::On && machine.state("enlightened_vmcs") == Standing::Off
    });
    off.filter(|machine| machine.facts.is_loaded("kvm_intel") == Some(true))
        .map(|machine| {
            let title = format!("Hyper-V offers the enlightened VMCS, but KVM on {} does not use it", machine.id);
            let evidence = [shown_by(machine, "hyperv_evmcs_offered"), shown_by(machine, "enlightened_vmcs")].concat();
            let mut hit = hit(machine, Severity::High, title, evidence);
            hit.cost = saved();
            hit.changes = vec![option("kvm_intel", "enlightened_vmcs", "1", "0")];
            hit
        })
        .collect()
}

/// Not offered.
pub(crate) fn evmcs_absent(model: &Model) -> Vec<Hit> {
    let absent = on_hyperv(model).filter(|machine| machine.state("hyperv_evmcs_offered") == Standing::Absent);
    absent
        .map(|machine| {
            let title = format!("Hyper-V does not offer the enlightened VMCS to {}", machine.id);
            let mut hit = hit(machine, Severity::Medium, title, shown_by(machine, "hyperv_evmcs_offered"));
            hit.level = Some(machine.level_below());
            hit.cost = saved();
            hit
        })
        .collect()
}

/// In use: cheaper exits, and more of them.
pub(crate) fn evmcs_on(model: &Model) -> Vec<Hit> {
    let on = on_hyperv(model).filter(|machine| machine.state("enlightened_vmcs") == Standing::On);
    on.map(|machine| {
        let title =
            format!("{} uses the enlightened VMCS: exits are cheaper, but some kinds become more frequent", machine.id);
        let features = ["enlightened_vmcs", "apicv", "page_modification_log", "pause_loop_exiting", "preemption_timer"];
        let evidence = features.iter().flat_map(|feature| shown_by(machine, feature)).collect();
        let mut hit = hit(machine, Severity::Info, title, evidence);
        let (with, without) = (value("fosdem18.build.l2.evmcs"), value("fosdem18.build.l2"));
        hit.cost = Cost::of(CostKind::Published, with / without - 1.0, "more wall time of one kernel build");
        let without = option("kvm_intel", "enlightened_vmcs", "0", "1");
        hit.fix = vec![
            "kvmscope record --seconds 30 -o evmcs   # the real load; and once more without the enlightened VMCS:"
                .into(),
            without.command(),
        ];
        hit.undo = vec![without.undo_or_why()];
        hit
    })
    .collect()
}

/// No MSR bitmap: each access of a nested guest to an MSR exits.
pub(crate) fn msr_bitmap(model: &Model) -> Vec<Hit> {
    let absent = on_hyperv(model).filter(|machine| machine.state("hyperv_msr_bitmap") == Standing::Absent);
    absent
        .map(|machine| {
            let title = format!(
                "Hyper-V does not offer {} the enlightened MSR bitmap: MSR accesses of nested guests exit",
                machine.id
            );
            let mut hit = hit(machine, Severity::Medium, title, shown_by(machine, "hyperv_msr_bitmap"));
            hit.level = Some(machine.level_below());
            let saved = value("bitmap18.rdmsr.l2") - value("bitmap18.rdmsr.l2.bitmap");
            hit.cost = Cost::of(CostKind::Published, saved, "cycles per access to an MSR that needs no exit");
            hit
        })
        .collect()
}

/// No direct flush: TLB flushes of nested guests go through KVM.
pub(crate) fn direct_flush(model: &Model) -> Vec<Hit> {
    let absent = on_hyperv(model).filter(|machine| machine.state("hyperv_direct_flush") == Standing::Absent);
    absent
        .map(|machine| {
            let title = format!(
                "Hyper-V does not offer {} the direct TLB flush: nested guests flush TLBs through KVM",
                machine.id
            );
            let mut hit = hit(machine, Severity::Info, title, shown_by(machine, "hyperv_direct_flush"));
            hit.level = Some(machine.level_below());
            hit.needs = Some(Needs::OuterLevel);
            hit
        })
        .collect()
}
