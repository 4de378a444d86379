//! Checks of what VMX keeps inside a guest hypervisor.

use super::{hit, hosts_hypervisors, option, shown_by};
use crate::nesting::model::{Model, State};
use crate::nesting::rules::Hit;
use base::{Cost, CostKind, Needs, Severity};

/// VMREAD and VMWRITE of KVM per exit of its guest: the count of intel/haxm pull request 130, 6-10 and 2-6.
const ACCESSES: (f64, f64) = (8.0, 16.0);

/// VMCS shadowing off or absent, at the level where the file stands. What it says in a guest is about its guests' guests.
pub fn shadow(model: &Model) -> Vec<Hit> {
    let concerned = model.machines.iter().filter(|machine| hosts_hypervisors(machine));
    let without = concerned.filter(|machine| matches!(machine.state("vmcs_shadowing"), State::Off | State::Absent));
    let loaded = without.filter(|machine| machine.facts.is_loaded("kvm_intel") == Some(true));
    loaded
        .map(|machine| {
            let absent = machine.state("vmcs_shadowing") == State::Absent;
            let severity = if machine.is_guest() { Severity::Low } else { Severity::High };
            let word = if absent { "absent" } else { "off" };
            let title = format!("VMCS shadowing is {word} at {}", machine.id);
            let mut hit = hit(machine, severity, title, shown_by(machine, "vmcs_shadowing"));
            let (low, high) = ACCESSES;
            hit.cost = Cost::of(CostKind::Published, (low + high) / 2.0, "more exits for each exit of a nested guest")
                .between(low, high);
            if absent {
                hit.needs = Some(Needs::OuterLevel).filter(|_| machine.is_guest());
                hit.fix = vec!["grep -o shadow_vmcs /proc/cpuinfo | head -1   # nothing: the CPU lacks it".into()];
            } else {
                hit.changes = vec![option("kvm_intel", "enable_shadow_vmcs", "1", "0")];
            }
            hit
        })
        .collect()
}
