//! Checks of what VMX keeps inside a guest hypervisor.

use super::{hit, hosts_hypervisors, option, shown_by};
use crate::model::{Machine, Model};
use base::figure::Standing;
use base::{Cost, CostKind, Needs, Severity};
use facts::rule::Hit;

/// VMREAD and VMWRITE of KVM per exit of its guest: intel/haxm pull request 130 has 6-10 and 2-6 on average.
const ACCESSES: (f64, f64) = (8.0, 16.0);

/// VMCS shadowing off or absent, at the level where the file stands. What a guest says of it is about hypervisors in its
/// own guests; with the enlightened VMCS it has no part.
pub(crate) fn shadow(model: &Model) -> Vec<Hit> {
    let concerned = model.machines.iter().filter(|machine| {
        hosts_hypervisors(machine)
            && machine.facts.is_loaded("kvm_intel") == Some(true)
            && machine.state("enlightened_vmcs") != Standing::On
    });
    let without =
        concerned.filter(|machine| matches!(machine.state("vmcs_shadowing"), Standing::Off | Standing::Absent));
    without.map(|machine| unshadowed(machine, machine.state("vmcs_shadowing") == Standing::Absent)).collect()
}

fn unshadowed(machine: &Machine, absent: bool) -> Hit {
    let word = if absent { "absent" } else { "off" };
    let (severity, title) = if machine.is_guest() {
        let whom = "this matters only for hypervisors in its guests";
        (Severity::Info, format!("VMCS shadowing is {word} at {}, which is a guest itself: {whom}", machine.id))
    } else {
        (Severity::High, format!("VMCS shadowing is {word} at {}", machine.id))
    };
    let mut hit = hit(machine, severity, title, shown_by(machine, "vmcs_shadowing"));
    let (low, high) = ACCESSES;
    let unit = "more exits per exit of a nested guest";
    hit.cost = Cost::of(CostKind::Published, f64::midpoint(low, high), unit).between(low, high);
    if absent {
        hit.needs = machine.is_guest().then_some(Needs::OuterLevel);
        hit.fix = vec!["grep -o shadow_vmcs /proc/cpuinfo | head -1   # no output means that the CPU lacks it".into()];
    } else {
        hit.changes = vec![option("kvm_intel", "enable_shadow_vmcs", "1", "0")];
    }
    hit
}
