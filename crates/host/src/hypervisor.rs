//! Who runs below this machine, and what does it offer?
//!
//! In: CPUID of a snapshot, leaves 0x40000000 and up; without them the flag `hypervisor` of `/proc/cpuinfo` and what the
//! kernel wrote at boot. Out: the hypervisors that show themselves, and the feature words of the two that speak to KVM.
//! ```text
//! 0x40000000  Microsoft Hv   0x40000003 features  0x40000004 hints  0x4000000a nested features
//! 0x40000100  KVMKVMKVM      0x40000101 features (eax), hints (edx)
//! ```
//! Several may show themselves at once: KVM with Hyper-V's interface is the picture above. Bits: include/hyperv/hvgdk_mini.h
//! and arch/x86/include/uapi/asm/kvm_para.h, Linux 6.12; Hyper-V TLFS 6.0b, "Feature and Interface Discovery".

use crate::processor::Processor;
use crate::{Cpuid, KernelLog};

/// Signature of KVM.
pub const KVM: &str = "KVMKVMKVM";
/// Signature of Hyper-V, and of hypervisors that imitate it.
pub const HYPERV: &str = "Microsoft Hv";
/// Signature of QEMU's emulation: there is no KVM below, all is interpreted.
pub const TCG: &str = "TCGTCGTCGTCG";

/// Bit 31 of ecx of leaf 1.
const PRESENT: u32 = 1 << 31;

/// What is known of the level below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hypervisor {
    /// Whether there is one; one that hides itself cannot be told from none.
    pub present: Option<bool>,
    /// Those that show themselves, with the leaf at which each does; without one the kernel's log names it.
    pub named: Vec<(Option<u32>, String)>,
    /// KVM's words.
    pub kvm: Option<KvmWords>,
    pub hyperv: Option<HypervWords>,
}

/// What KVM offers to its guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KvmWords {
    /// The leaf of its signature.
    pub base: u32,
    /// base + 1, eax: bits of KVM_FEATURE_*.
    pub features: u32,
    /// base + 1, edx: bits of KVM_HINTS_*.
    pub hints: u32,
}

/// What Hyper-V offers to its partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HypervWords {
    /// 0x40000003, eax: privileges of the partition.
    pub features: u32,
    /// 0x40000004, eax: what it recommends to use.
    pub hints: u32,
    /// 0x4000000a, eax: what it offers to hypervisors; `None` if it has no such leaf.
    pub nested: Option<u32>,
    /// True if the kernel's log tells them, not CPUID.
    pub logged: bool,
}

impl Hypervisor {
    /// What CPUID says, or else the processor's flags and the kernel's log.
    pub fn of(cpuid: Option<&Cpuid>, processor: Option<&Processor>, log: Option<&KernelLog>) -> Self {
        let flag = processor.map(|cpu| cpu.has("hypervisor"));
        let Some(cpuid) = cpuid else { return Self::logged(flag, log) };
        let named = cpuid.hypervisors();
        let present = cpuid.get(1, 0).map(|leaf| leaf.ecx & PRESENT != 0).or(flag);
        let base = |wanted: &str| named.iter().find(|(_, name)| name == wanted).map(|(base, _)| *base);
        let kvm = base(KVM).and_then(|base| {
            let words = cpuid.get(base + 1, 0)?;
            Some(KvmWords { base, features: words.eax, hints: words.edx })
        });
        let hyperv = base(HYPERV).and_then(|base| {
            let eax = |leaf: u32| cpuid.get(base + leaf, 0).map(|words| words.eax);
            Some(HypervWords { features: eax(3)?, hints: eax(4)?, nested: eax(0xa), logged: false })
        });
        let named = named.into_iter().map(|(leaf, name)| (Some(leaf), name)).collect();
        Self { present, named, kvm, hyperv }
    }

    /// What the kernel wrote when it found somebody: its name, and Hyper-V's words.
    fn logged(flag: Option<bool>, log: Option<&KernelLog>) -> Self {
        let signature = log.and_then(KernelLog::hypervisor).and_then(signature);
        let word = |name: &str| log.and_then(|log| log.hyperv_word(name));
        let hyperv = word("flags low")
            .or_else(|| word("features"))
            .zip(word("hints"))
            .map(|(features, hints)| HypervWords { features, hints, nested: word("Nested features:"), logged: true });
        let present = flag.or(signature.map(|_| true));
        Self { present, named: signature.map(|name| (None, name.to_owned())).into_iter().collect(), kvm: None, hyperv }
    }

    /// Whether one of these signatures shows itself.
    pub fn is(&self, signature: &str) -> bool {
        self.named.iter().any(|(_, name)| name == signature)
    }

    pub fn names(&self) -> Vec<&str> {
        self.named.iter().map(|(_, name)| plain(name)).collect()
    }

    /// True for Hyper-V itself: KVM with Hyper-V's interface shows its own signature too.
    pub fn is_hyperv(&self) -> bool {
        self.is(HYPERV) && !self.is(KVM)
    }
}

impl HypervWords {
    /// Lowest and highest version of the enlightened VMCS, where it is offered.
    pub fn evmcs_versions(&self) -> Option<(u8, u8)> {
        let [low, high, ..] = self.nested?.to_le_bytes();
        (high > 0).then_some((low, high))
    }
}

/// Signatures of hypervisors: the kernel's arch/x86/kernel/cpu/ (kvm, mshyperv, vmware, acrn), arch/x86/xen, QEMU's
/// target/i386/kvm and tcg.
fn plain(signature: &str) -> &str {
    match signature {
        KVM => "KVM",
        HYPERV => "Hyper-V",
        TCG => "QEMU's emulation (TCG)",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "ACRNACRNACRN" => "ACRN",
        other => other,
    }
}

/// The signature of a hypervisor that the kernel calls so (`.name` of each `hypervisor_x86`, arch/x86, Linux 6.12).
fn signature(called: &str) -> Option<&'static str> {
    match called {
        "KVM" => Some(KVM),
        "Microsoft Hyper-V" => Some(HYPERV),
        "VMware" => Some("VMwareVMware"),
        "Xen HVM" | "Xen PV" => Some("XenVMMXenVMM"),
        "ACRN" => Some("ACRNACRNACRN"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpuid::Registers;

    fn signature(text: &str) -> Registers {
        let bytes: Vec<u8> = text.bytes().chain(std::iter::repeat(0)).take(12).collect();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        Registers { eax: 0x4000_000a, ebx: word(0), ecx: word(4), edx: word(8) }
    }

    fn eax(eax: u32) -> Registers {
        Registers { eax, ..Registers::default() }
    }

    #[test]
    fn kvm_with_the_interface_of_hyperv_is_both_and_not_hyperv() {
        let mut cpuid = Cpuid::default();
        cpuid.insert(1, 0, Registers { ecx: PRESENT, ..Registers::default() });
        cpuid.insert(0x4000_0000, 0, signature(HYPERV));
        cpuid.insert(0x4000_0003, 0, eax(1 << 9));
        cpuid.insert(0x4000_0004, 0, eax(1 << 14));
        cpuid.insert(0x4000_000a, 0, eax(0x0008_0101));
        cpuid.insert(0x4000_0100, 0, signature(KVM));
        cpuid.insert(0x4000_0101, 0, eax(1 << 24));
        let below = Hypervisor::of(Some(&cpuid), None, None);
        assert_eq!((below.present, below.names()), (Some(true), vec!["Hyper-V", "KVM"]));
        assert!(!below.is_hyperv() && below.is(HYPERV));
        assert_eq!(below.kvm.unwrap().features, 1 << 24);
        assert_eq!(below.hyperv.unwrap().evmcs_versions(), Some((1, 1)));
    }

    #[test]
    fn without_cpuid_the_flag_tells_and_without_both_nothing_does() {
        let cpu = Processor::from_text("vendor_id : GenuineIntel\nflags : hypervisor\n").unwrap();
        assert_eq!(Hypervisor::of(None, Some(&cpu), None).present, Some(true));
        assert_eq!(Hypervisor::of(None, None, None), Hypervisor::default());
    }
}
