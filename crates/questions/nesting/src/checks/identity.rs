//! Checks of what a machine is, and of what it may become.

use super::{hit, option, shown_by};
use crate::flags;
use crate::model::Model;
use base::figure::Standing;
use base::number::{list, many};
use base::{About, Evidence, Needs, Severity};
use facts::rule::Hit;

/// QEMU interprets the code.
pub(crate) fn emulated(model: &Model) -> Vec<Hit> {
    let emulated = model.machines.iter().filter(|machine| machine.state("emulated_cpu") == Standing::On);
    emulated
        .map(|machine| {
            let title = format!("{} is emulated by QEMU TCG instead of being run by KVM", machine.id);
            let mut hit = hit(machine, Severity::High, title, shown_by(machine, "emulated_cpu"));
            hit.level = Some(machine.level_below());
            hit
        })
        .collect()
}

/// The processor could, and the firmware forbids it.
pub(crate) fn firmware(model: &Model) -> Vec<Hit> {
    let forbidden = model.machines.iter().filter(|machine| machine.state("virtualization") == Standing::Off);
    forbidden
        .map(|machine| {
            let title = format!("The firmware of {} disables virtualization: KVM cannot run guests", machine.id);
            hit(machine, Severity::High, title, shown_by(machine, "virtualization"))
        })
        .collect()
}

/// CPUID is answered below, and nobody shows himself there.
pub(crate) fn hidden(model: &Model) -> Vec<Hit> {
    let hidden = model.machines.iter().filter(|machine| {
        machine.facts.below.present == Some(false) && machine.state("cpuid_answered_below") == Standing::On
    });
    hidden
        .map(|machine| {
            let title = format!("{} reports bare metal, but CPUID takes as long as in a guest", machine.id);
            let evidence = [shown_by(machine, "hypervisor_below"), shown_by(machine, "cpuid_answered_below")].concat();
            hit(machine, Severity::Low, title, evidence)
        })
        .collect()
}

/// KVM is there and its guests may not have guests.
pub(crate) fn not_nested(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for machine in &model.machines {
        let Some(module @ ("kvm_intel" | "kvm_amd")) = machine.facts.vendor_module() else { continue };
        if machine.state("nested") != Standing::Off {
            continue;
        }
        let mut title = format!("Guests of {} cannot run nested guests: {module}.nested is off", machine.id);
        let asks = &machine.asks_for_nesting;
        if !asks.is_empty() {
            let names: Vec<String> = asks.iter().map(|(name, _)| name.clone()).collect();
            let what = if module == "kvm_intel" { "VMX" } else { "SVM" };
            title += &format!(", and {what} is asked for by {}", list(&names));
        }
        // Who asks for it in a definition needs it: others may have been offered it by default.
        let severity = if asks.is_empty() { Severity::Info } else { Severity::Medium };
        let mut hit = hit(machine, severity, title, shown_by(machine, "nested"));
        let of = |(name, place): &(String, String)| Evidence::new(format!("{name} asks for it"), place.as_str());
        hit.evidence.extend(asks.iter().map(of));
        hit.changes = vec![option(module, "nested", "1", "0")];
        hits.push(hit);
    }
    hits
}

/// A guest with KVM, or without, that is offered neither VMX nor SVM while its host has it.
pub(crate) fn lost(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (host, guest) in flags::pairs(model) {
        let all = flags::compared(host, guest);
        let names: Vec<String> = all.iter().filter(|flag| flag.is_lost()).map(|flag| flag.name.clone()).collect();
        if names.is_empty() {
            continue;
        }
        let below = all.iter().filter(|flag| flag.below).count();
        let whole = guest.state("virtualization") == Standing::Absent;
        let title = if whole {
            format!("{} has no VMX or SVM, although {} has it", guest.id, host.id)
        } else {
            format!("{} lacks {} of the {below} of {}", guest.id, many(names.len() as u64, "feature"), host.id)
        };
        let what = format!("{} has, and {} lacks: {}", host.id, guest.id, list(&names));
        let evidence = vec![
            Evidence::new(what, "table flags; vmx flags and flags of /proc/cpuinfo")
                .about([About::rows("nesting.flags")]),
        ];
        let severity = if whole { Severity::Medium } else { Severity::Low };
        let mut hit = hit(guest, severity, title, evidence);
        hit.level = Some(host.level);
        hits.push(hit);
    }
    hits
}

/// No counters, so no cycles and instructions.
pub(crate) fn no_pmu(model: &Model) -> Vec<Hit> {
    let without =
        model.machines.iter().filter(|machine| machine.is_guest() && machine.state("pmu") == Standing::Absent);
    without
        .map(|machine| {
            let title = format!(
                "{} has no performance counters: cycles, instructions and cache misses cannot be measured there",
                machine.id
            );
            let mut hit = hit(machine, Severity::Info, title, shown_by(machine, "pmu"));
            hit.level = Some(machine.level_below());
            let (fix, undo) = match machine.facts.below.is_hyperv() {
                true => (
                    "Set-VMProcessor -VMName GUEST -Perfmon @(\"pmu\")   # on the Hyper-V host, VM powered off",
                    "Set-VMProcessor -VMName GUEST -Perfmon @()",
                ),
                false => (
                    "virsh edit GUEST   # <cpu mode='host-passthrough'/>, <features><pmu state='on'/></features>",
                    "virsh edit GUEST   # <features><pmu state='off'/></features>",
                ),
            };
            hit.fix.push(fix.to_owned());
            hit.undo.push(undo.to_owned());
            hit
        })
        .collect()
}

/// Exits cannot be traced, or it is doubtful.
pub(crate) fn no_trace(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for machine in &model.machines {
        let doubtful = machine.state("kvm_pvm") == Standing::On && machine.state("trace_kvm_exit") == Standing::Unknown;
        let refused = matches!(machine.state("trace_kvm_exit"), Standing::Off | Standing::Absent);
        if machine.state("kvm") != Standing::On || !(doubtful || refused) {
            continue;
        }
        let title = if refused {
            format!("Exits of the guests of {} cannot be traced on {}", machine.id, machine.id)
        } else {
            format!("kvm_exit may never fire on {}: kvm_pvm runs the guests", machine.id)
        };
        let mut hit = hit(machine, Severity::Info, title, shown_by(machine, "trace_kvm_exit"));
        let locked = machine.facts.snapshot.line("sys/kernel/security/lockdown").is_some();
        hit.needs = (refused && locked).then_some(Needs::Reboot);
        hits.push(hit);
    }
    hits
}
