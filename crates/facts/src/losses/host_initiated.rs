//! Which exits does the host cause, so that the work on them is time taken from the guest?
//!
//! Numbers: arch/x86/include/uapi/asm/vmx.h and svm.h, Linux 6.18; Intel SDM vol. 3, appendix C; AMD APM vol. 2, appendix C.

use walk::events::details::Detail;
use walk::events::reasons::{Isa, Reason};

/// An arm64 guest was left for an interrupt of the host (arch/arm64/include/asm/kvm_asm.h, Linux 6.12).
const ARM_EXCEPTION_IRQ: u64 = 0;

/// True if the host caused an exit for `reason` that was about `detail`.
#[inline(always)]
pub(super) fn is_host_initiated(reason: Reason, detail: Detail) -> bool {
    match (reason.isa, reason.code) {
        // EXTERNAL_INTERRUPT; PREEMPTION_TIMER, which delivers the guest's own timer and is a cause of its own for that reason;
        // PML_FULL.
        (Isa::Vmx, 1 | 52 | 62) => true,
        // INTR, NMI, SMI.
        (Isa::Svm, 0x60..=0x62) => true,
        // EXCEPTION_NMI, if its event says that it was an NMI of the host.
        (Isa::Vmx, 0) => detail == Detail::Nmi,
        // EPT_VIOLATION and NPF, if no device answered and no instruction was emulated: memory of the guest was not mapped, and the
        // guest cannot know.
        (Isa::Vmx, 48) | (Isa::Svm, 0x400) => !matches!(detail, Detail::Mmio(..) | Detail::Apic(..) | Detail::Emulated),
        (Isa::Arm64, _) => reason == Reason::of_arm64(0, Some(ARM_EXCEPTION_IRQ)),
        (Isa::Vmx | Isa::Svm | Isa::Other(_) | Isa::Printed(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_exits_are_those_that_no_instruction_of_the_guest_asked_for() {
        let by = |isa, code, detail| is_host_initiated(Reason { isa, code }, detail);
        for (isa, code) in
            [(Isa::Vmx, 1), (Isa::Vmx, 52), (Isa::Vmx, 62), (Isa::Svm, 0x60), (Isa::Svm, 0x61), (Isa::Svm, 0x62)]
        {
            assert!(by(isa, code, Detail::None), "{code}");
        }
        assert!(by(Isa::Vmx, 0, Detail::Nmi) && !by(Isa::Vmx, 0, Detail::None), "an exception is the guest's own");
        for (isa, code) in [(Isa::Vmx, 48), (Isa::Svm, 0x400)] {
            assert!(by(isa, code, Detail::None), "{code}");
            assert!(
                !by(isa, code, Detail::Mmio(0xfed0_0000, true)) && !by(isa, code, Detail::Apic(0x300, true)),
                "{code}"
            );
        }
        // HLT, CPUID, MSR, EPT_MISCONFIG; the same numbers mean other things on the other side.
        for (isa, code) in [
            (Isa::Vmx, 12),
            (Isa::Vmx, 10),
            (Isa::Vmx, 32),
            (Isa::Vmx, 49),
            (Isa::Svm, 0x78),
            (Isa::Svm, 1),
            (Isa::Svm, 48),
        ] {
            assert!(!by(isa, code, Detail::None), "{code}");
        }
        assert!(is_host_initiated(Reason::of_arm64(0, Some(ARM_EXCEPTION_IRQ)), Detail::None), "IRQ");
        assert!(!is_host_initiated(Reason::of_arm64(0x24, None), Detail::None), "DABT_LOW");
    }
}
