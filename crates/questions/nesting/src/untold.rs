//! What can only another level tell?
//!
//! A guest sees what it is offered, not how it is run. What decides the price of its guests' exits lies in the machine
//! below; some of what a KVM below shows is imitated: `shadow_vmcs` and `preemption_timer` always, `pml` and `ept_ad`
//! where accessed bits are on, 1 GB pages and EPTP switching (arch/x86/kvm/vmx/nested.c, nested_vmx_setup_ctls_msrs,
//! Linux 6.12). Their presence in a guest says nothing about speed.

use super::model::{Machine, Model};
use base::Level;
use host::processor::Vendor;

/// `vmx flags` that a KVM below shows whatever its hardware has.
pub(crate) const IMITATED: &[&str] = &["shadow_vmcs", "preemption_timer", "pml", "ept_ad", "ept_1gb", "eptp_switching"];

/// Features of the machine below that decide what exits of nested guests cost: vendor, name, where it stands.
const BELOW: &[(Vendor, &str, &str)] = &[
    (Vendor::Intel, "vmcs_shadowing", "/sys/module/kvm_intel/parameters/enable_shadow_vmcs"),
    (Vendor::Intel, "apicv", "/sys/module/kvm_intel/parameters/enable_apicv"),
    (Vendor::Intel, "ept", "/sys/module/kvm_intel/parameters/ept"),
    (Vendor::Amd, "virtual_vmload_vmsave", "/sys/module/kvm_amd/parameters/vls"),
    (Vendor::Amd, "virtual_gif", "/sys/module/kvm_amd/parameters/vgif"),
    (Vendor::Amd, "npt", "/sys/module/kvm_amd/parameters/npt"),
];

impl Model {
    /// Features of levels without a snapshot, and where somebody there would look.
    pub fn untold(&self) -> Vec<(Level, &'static str, String)> {
        let lowest = self.machines.first();
        let Some(guest) = lowest.filter(|machine| machine.is_guest()) else {
            return Vec::new();
        };
        let vendor = guest.facts.processor.as_ref().map(|cpu| cpu.vendor);
        let concerned = BELOW.iter().filter(|(of, ..)| vendor == Some(*of) && can_host(guest));
        let place = |path: &str| {
            if guest.facts.below.is_hyperv() {
                "only the Hyper-V host shows it".to_owned()
            } else {
                format!("only that level shows it: {path}")
            }
        };
        concerned.map(|(_, feature, path)| (guest.level_below(), *feature, place(path))).collect()
    }
}

/// A guest that cannot have guests has no nested exits to pay.
fn can_host(machine: &Machine) -> bool {
    machine.facts.processor.as_ref().is_some_and(|cpu| cpu.can_virtualize())
}
