//! What does Hyper-V below offer, to this kernel and to its hypervisor?
//!
//! Bits: include/hyperv/hvgdk_mini.h, Linux 6.12 (before 6.13: arch/x86/include/asm/hyperv-tlfs.h), and Hyper-V's TLFS,
//! "Feature and Interface Discovery" and "Nested Virtualization".

use crate::model::Seen;
use base::figure::Standing;
use host::Virtualization;
use host::hypervisor::HypervWords;
use host::processor::Vendor;

/// HV_MSR_REFERENCE_TSC_AVAILABLE, 0x40000003 eax.
const TSC_PAGE: u32 = 1 << 9;
/// HV_ACCESS_FREQUENCY_MSRS, 0x40000003 eax.
const FREQUENCY_MSRS: u32 = 1 << 11;
/// HV_X64_CLUSTER_IPI_RECOMMENDED, 0x40000004 eax.
const CLUSTER_IPI: u32 = 1 << 10;
/// HV_X64_EX_PROCESSOR_MASKS_RECOMMENDED, 0x40000004 eax.
const EX_MASKS: u32 = 1 << 11;
/// HV_X64_HYPERV_NESTED, 0x40000004 eax.
const NESTED: u32 = 1 << 12;
/// HV_ACCESS_REENLIGHTENMENT, 0x40000003 eax.
pub(super) const REENLIGHTENMENT: u32 = 1 << 13;
/// HV_X64_ENLIGHTENED_VMCS_RECOMMENDED, 0x40000004 eax.
const EVMCS_RECOMMENDED: u32 = 1 << 14;
/// HV_X64_NESTED_DIRECT_FLUSH, 0x4000000a eax.
const DIRECT_FLUSH: u32 = 1 << 17;
/// HV_X64_NESTED_GUEST_MAPPING_FLUSH, 0x4000000a eax.
const GUEST_MAPPING_FLUSH: u32 = 1 << 18;
/// HV_X64_NESTED_MSR_BITMAP, 0x4000000a eax.
const MSR_BITMAP: u32 = 1 << 19;
/// HV_X64_NESTED_ENLIGHTENED_TLB, 0x4000000a eax.
const ENLIGHTENED_TLB: u32 = 1 << 22;

fn bit(words: HypervWords, leaf: &str, word: u32, mask: u32) -> Seen {
    let set = word & mask != 0;
    let state = if set { Standing::On } else { Standing::Absent };
    let by = if words.logged { ", in the kernel's log" } else { "" };
    Seen::new(state, format!("CPUID {leaf} eax bit {} is {}{by}", mask.trailing_zeros(), u32::from(set)))
}

/// A bit of the nested features; a leaf that is not there offers nothing.
fn nested(facts: &Virtualization, mask: u32) -> Option<Seen> {
    let words = facts.below.hyperv?;
    Some(match words.nested {
        Some(word) => bit(words, "0x4000000a", word, mask),
        None if words.logged => Seen::new(Standing::Unknown, "the kernel's log has no nested features of Hyper-V"),
        None => Seen::new(Standing::Absent, "CPUID has no leaf 0x4000000a"),
    })
}

fn is_amd(facts: &Virtualization) -> bool {
    facts.processor.as_ref().is_some_and(|cpu| cpu.vendor == Vendor::Amd)
}

pub(super) fn tsc_page(facts: &Virtualization) -> Option<Seen> {
    let words = facts.below.hyperv?;
    Some(bit(words, "0x40000003", words.features, TSC_PAGE))
}

/// Notifications of changed frequency.
pub(super) fn reenlightenment(facts: &Virtualization) -> Option<Seen> {
    let words = facts.below.hyperv?;
    Some(bit(words, "0x40000003", words.features, REENLIGHTENMENT))
}

/// The frequency by MSR.
pub(super) fn frequency(facts: &Virtualization) -> Option<Seen> {
    let words = facts.below.hyperv?;
    Some(bit(words, "0x40000003", words.features, FREQUENCY_MSRS))
}

/// A bit of what Hyper-V recommends.
fn hint(facts: &Virtualization, mask: u32) -> Option<Seen> {
    let words = facts.below.hyperv?;
    Some(bit(words, "0x40000004", words.hints, mask))
}

/// Many IPIs at once.
pub(super) fn cluster_ipi(facts: &Virtualization) -> Option<Seen> {
    hint(facts, CLUSTER_IPI)
}

/// Hypercalls for many vCPUs.
pub(super) fn ex_masks(facts: &Virtualization) -> Option<Seen> {
    hint(facts, EX_MASKS)
}

/// Hyper-V under somebody else.
pub(super) fn is_nested(facts: &Virtualization) -> Option<Seen> {
    hint(facts, NESTED)
}

/// The enlightened VMCS: recommended, and of a version.
pub(super) fn evmcs(facts: &Virtualization) -> Option<Seen> {
    let words = facts.below.hyperv?;
    if is_amd(facts) {
        return None;
    }
    let recommended = words.hints & EVMCS_RECOMMENDED != 0;
    Some(match (recommended, words.evmcs_versions()) {
        (true, Some((low, high))) => {
            let versions = if low == high { format!("version {low}") } else { format!("versions {low} to {high}") };
            Seen::new(Standing::On, format!("CPUID 0x40000004 eax bit 14 is 1, {versions} in 0x4000000a"))
        }
        (true, None) if words.logged => Seen::new(
            Standing::Unknown,
            "CPUID 0x40000004 eax bit 14 is 1, from the kernel's log, which has no version",
        ),
        (true, None) => Seen::new(Standing::Absent, "CPUID 0x40000004 eax bit 14 is 1, and 0x4000000a has no version"),
        (false, _) => Seen::new(Standing::Absent, "CPUID 0x40000004 eax bit 14 is 0"),
    })
}

/// MSR bitmaps.
pub(super) fn msr_bitmap(facts: &Virtualization) -> Option<Seen> {
    nested(facts, MSR_BITMAP)
}

/// Flushes of nested guests.
pub(super) fn direct_flush(facts: &Virtualization) -> Option<Seen> {
    nested(facts, DIRECT_FLUSH)
}

/// Flushes of second-level tables.
pub(super) fn guest_mapping_flush(facts: &Virtualization) -> Option<Seen> {
    nested(facts, GUEST_MAPPING_FLUSH)
}

/// The same on AMD.
pub(super) fn enlightened_tlb(facts: &Virtualization) -> Option<Seen> {
    if is_amd(facts) { nested(facts, ENLIGHTENED_TLB) } else { None }
}
