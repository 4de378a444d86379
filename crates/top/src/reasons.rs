//! Names of reasons, by the numbers that the fold keeps.

use analysis::facts::{Isa, Reason};

/// KVM_EXIT_* without that prefix, in the order of their numbers (include/uapi/linux/kvm.h, Linux 6.12).
const TO_VMM: [&str; 40] = [
    "UNKNOWN",
    "EXCEPTION",
    "IO",
    "HYPERCALL",
    "DEBUG",
    "HLT",
    "MMIO",
    "IRQ_WINDOW_OPEN",
    "SHUTDOWN",
    "FAIL_ENTRY",
    "INTR",
    "SET_TPR",
    "TPR_ACCESS",
    "S390_SIEIC",
    "S390_RESET",
    "DCR",
    "NMI",
    "INTERNAL_ERROR",
    "OSI",
    "PAPR_HCALL",
    "S390_UCONTROL",
    "WATCHDOG",
    "S390_TSCH",
    "EPR",
    "SYSTEM_EVENT",
    "S390_STSI",
    "IOAPIC_EOI",
    "HYPERV",
    "ARM_NISV",
    "X86_RDMSR",
    "X86_WRMSR",
    "DIRTY_RING_FULL",
    "AP_RESET_HOLD",
    "X86_BUS_LOCK",
    "XEN",
    "RISCV_SBI",
    "RISCV_CSR",
    "NOTIFY",
    "LOONGARCH_IOCSR",
    "MEMORY_FAULT",
];

/// Errors that KVM_RUN ends with where a signal came or the vCPU was not yet runnable (include/uapi/asm-generic/errno-base.h).
const ERRORS: [(u32, &str); 2] = [(4, "EINTR"), (11, "EAGAIN")];

/// Why KVM_RUN returned.
pub(crate) fn to_vmm(code: u32) -> String {
    if code & fold::FAILED != 0 {
        let number = code & !fold::FAILED;
        let known = ERRORS.iter().find(|(error, _)| *error == number);
        return known.map_or_else(|| format!("errno {number}"), |(_, name)| (*name).to_owned());
    }
    TO_VMM.get(code as usize).map_or_else(|| code.to_string(), |name| (*name).to_owned())
}

/// Why a guest was left.
pub(crate) fn of_guest(isa: u8, code: u32) -> String {
    Reason::of(Isa::of(u64::from(isa)), u64::from(code)).name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_kernels_names() {
        assert_eq!([2, 6, 39, 99].map(to_vmm), ["IO", "MMIO", "MEMORY_FAULT", "99"]);
        assert_eq!([4, 11, 14].map(|error| to_vmm(fold::FAILED | error)), ["EINTR", "EAGAIN", "errno 14"]);
        assert_eq!([of_guest(1, 12), of_guest(2, 0x78), of_guest(3, 131_072)], ["HLT", "HLT", "131072"]);
    }
}
