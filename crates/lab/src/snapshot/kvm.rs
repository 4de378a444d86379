//! What KVM says that it can do: KVM_CHECK_EXTENSION of `/dev/kvm`, by the names of linux/kvm.h without `KVM_CAP_`.
//!
//! Asking makes no guest. 0 is "no"; other numbers are answers of their own kind (a limit, a set of bits), told in
//! Documentation/virt/kvm/api.rst, Linux 6.12.

use crate::guest;
use kvm_bindings as k;
use std::collections::BTreeMap;
use std::path::Path;

/// Extensions that decide how fast guests run, and whether guests can have guests.
const EXTENSIONS: &[(&str, u32)] = &[
    ("BINARY_STATS_FD", k::KVM_CAP_BINARY_STATS_FD),
    ("COALESCED_MMIO", k::KVM_CAP_COALESCED_MMIO),
    ("COALESCED_PIO", k::KVM_CAP_COALESCED_PIO),
    ("DIRTY_LOG_RING", k::KVM_CAP_DIRTY_LOG_RING),
    ("DIRTY_LOG_RING_ACQ_REL", k::KVM_CAP_DIRTY_LOG_RING_ACQ_REL),
    ("EXIT_HYPERCALL", k::KVM_CAP_EXIT_HYPERCALL),
    ("GET_TSC_KHZ", k::KVM_CAP_GET_TSC_KHZ),
    ("HALT_POLL", k::KVM_CAP_HALT_POLL),
    ("HYPERV", k::KVM_CAP_HYPERV),
    ("HYPERV_CPUID", k::KVM_CAP_HYPERV_CPUID),
    ("HYPERV_ENLIGHTENED_VMCS", k::KVM_CAP_HYPERV_ENLIGHTENED_VMCS),
    ("IOEVENTFD", k::KVM_CAP_IOEVENTFD),
    ("IRQCHIP", k::KVM_CAP_IRQCHIP),
    ("MANUAL_DIRTY_LOG_PROTECT2", k::KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2),
    ("MAX_VCPUS", k::KVM_CAP_MAX_VCPUS),
    ("NESTED_STATE", k::KVM_CAP_NESTED_STATE),
    ("NR_VCPUS", k::KVM_CAP_NR_VCPUS),
    ("PMU_CAPABILITY", k::KVM_CAP_PMU_CAPABILITY),
    ("SPLIT_IRQCHIP", k::KVM_CAP_SPLIT_IRQCHIP),
    ("STEAL_TIME", k::KVM_CAP_STEAL_TIME),
    ("TSC_CONTROL", k::KVM_CAP_TSC_CONTROL),
    ("VM_TSC_CONTROL", k::KVM_CAP_VM_TSC_CONTROL),
    ("X2APIC_API", k::KVM_CAP_X2APIC_API),
    ("X86_DISABLE_EXITS", k::KVM_CAP_X86_DISABLE_EXITS),
    ("X86_NOTIFY_VMEXIT", k::KVM_CAP_X86_NOTIFY_VMEXIT),
];

/// The answers of the KVM at `device`, or why there are none.
pub(crate) fn extensions(device: &Path) -> Result<BTreeMap<&'static str, i32>, String> {
    let kvm = guest::open(device).map_err(|error| error.to_string())?;
    Ok(EXTENSIONS.iter().map(|(name, number)| (*name, kvm.check_extension_raw((*number).into()))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kvm_says_how_many_vcpus_it_takes() {
        match extensions(Path::new("/dev/kvm")) {
            Ok(answers) => assert!(answers["MAX_VCPUS"] >= answers["NR_VCPUS"] && answers["NR_VCPUS"] > 0),
            Err(why) => println!("skipped: kvm: {why}"),
        }
        assert!(extensions(Path::new("/nonexistent/kvm")).is_err());
    }
}
