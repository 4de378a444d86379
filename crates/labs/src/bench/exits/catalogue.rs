//! What can be measured: a row per test, with the work it does and the exits it should take.
//!
//! Names are those of kvm-unit-tests' `x86/vmexit.c` where it has the test, and the work is the same, so that its means
//! can stand beside ours; the doorbells of its PCI test device carry the device's names for their kinds.

use super::layout::{COALESCED, DEVICE, DEVICE_DATAMATCH, DEVICE_WILDCARD, NEW_PAGES};
use super::test::{At, DISTURBING, ICR, IPI, L1_VMX, L2, RING_0, RING_3, SELF_IPI, Test, ipi, msr, timer};
use super::{payload, privileged, svm, vmx};

/// The in-kernel interrupt controller's edge/level register: KVM answers without leaving the kernel.
const KERNEL_PORT: u64 = 0x4d0;
/// A port that nobody has.
const USER_PORT: u64 = 0x1234;
/// Doorbells by port: nobody's, one of any value, one of the value 0 alone.
pub const DOORBELL: u64 = 0x600;
/// See [`DOORBELL`].
pub(crate) const DOORBELL_WILDCARD: u64 = 0x604;
/// See [`DOORBELL`].
pub(crate) const DOORBELL_DATAMATCH: u64 = 0x608;

/// The loop around all others; measured like them.
pub(crate) const EMPTY: Test = Test { name: "empty", does: "nothing", ..RING_3 };

/// A test that never ends: the watchdog must stop it.
pub const SPIN: Test = Test { name: "spin", does: "empty loop", body: payload::spin, ..RING_3 };

/// All tests, in the order in which they run.
pub(crate) const TESTS: &[Test] = &[
    EMPTY,
    Test { name: "rdtsc", does: "reads the time-stamp counter", body: payload::rdtsc, ..RING_3 },
    Test { name: "rdtscp", does: "reads the time-stamp counter and the CPU number", body: payload::rdtscp, ..RING_3 },
    Test { name: "cpuid", does: "executes CPUID", body: payload::cpuid, exits: (1, 1), ..RING_3 },
    Test {
        name: "inl_from_kernel",
        does: "reads a port emulated by KVM",
        body: payload::in8,
        r15: KERNEL_PORT,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "outl_to_kernel",
        does: "writes a port emulated by KVM",
        body: payload::out8,
        r15: KERNEL_PORT,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "inl_from_qemu",
        does: "reads a port emulated by the VMM",
        body: payload::in32,
        r15: USER_PORT,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "inl_from_pmtimer",
        does: "reads the ACPI timer",
        exits: (1, 1),
        why_not: Some("absent: ACPI tables name the timer's port, and a guest of a few bytes has none"),
        ..RING_3
    },
    Test {
        name: "pci-io-no-eventfd",
        does: "writes a port emulated by the VMM",
        body: payload::out8,
        r15: DOORBELL,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "pci-io-wildcard-eventfd",
        does: "writes a port with an ioeventfd, any value",
        body: payload::out8,
        r15: DOORBELL_WILDCARD,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "pci-io-datamatch-eventfd",
        does: "writes a port with an ioeventfd for this value",
        body: payload::out8,
        r15: DOORBELL_DATAMATCH,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "pci-mem-no-eventfd",
        does: "writes MMIO emulated by the VMM",
        body: payload::store8,
        r15: DEVICE,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "pci-mem-wildcard-eventfd",
        does: "writes MMIO with an ioeventfd, any value",
        body: payload::store8,
        r15: DEVICE_WILDCARD,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "pci-mem-datamatch-eventfd",
        does: "writes MMIO with an ioeventfd for this value",
        body: payload::store8,
        r15: DEVICE_DATAMATCH,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "mmio_user",
        does: "reads MMIO emulated by the VMM",
        body: payload::load32,
        r15: DEVICE,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "coalesced_mmio",
        does: "writes coalesced MMIO",
        body: payload::store8,
        r15: COALESCED,
        exits: (1, 1),
        ..RING_3
    },
    Test {
        name: "touch_4k",
        does: "first touch of a 4 KiB page",
        body: payload::touch,
        r15: NEW_PAGES,
        rbx: 4096,
        exits: (1, 8),
        takes_bytes: 4096,
        ..RING_3
    },
    Test {
        name: "touch_2m",
        does: "first touch of a 2 MiB page",
        body: payload::touch,
        r15: NEW_PAGES,
        rbx: 2 << 20,
        exits: (1, 8),
        takes_bytes: 2 << 20,
        ..RING_3
    },
    Test {
        name: "ud2",
        does: "raises an exception that KVM injects back",
        body: payload::ud2,
        exits: (1, 1),
        ..RING_3
    },
    Test { name: "syscall", does: "system call into the guest's kernel", body: payload::syscall, ..RING_3 },
    Test { name: "pause", does: "executes PAUSE", body: payload::pause, exits: (0, 1), ..RING_3 },
    Test { name: "fpu_touch", does: "uses the x87 and the SSE unit", body: payload::fpu, ..RING_3 },
    Test { name: "fpu_touch_avx", does: "uses an AVX register", body: payload::avx, avx: true, ..RING_3 },
    Test { name: "vmcall", does: "hypercall", body: privileged::hypercall, exits: (1, 1), ..RING_0 },
    msr("wr_kernel_gs_base", "writes an MSR that is passed through", privileged::wrmsr, 0xc000_0102, 0, (0, 0)),
    msr("rd_tsc_adjust_msr", "reads an intercepted MSR", privileged::rdmsr, 0x3b, 0, (1, 1)),
    msr("wr_tsc_adjust_msr", "writes an intercepted MSR", privileged::wrmsr, 0x3b, 0, (1, 1)),
    msr("wr_tsx_ctrl_msr", "writes a mitigation's MSR", privileged::wrmsr, 0x122, 0, (0, 1)),
    msr("wr_ibrs_msr", "sets and clears IBRS (MSR 0x48)", privileged::wrmsr_twice, 0x48, 1, (0, 2)),
    msr("wr_ibpb_msr", "flushes the branch predictor (IBPB)", privileged::wrmsr, 0x49, 1, (0, 1)),
    timer("tscdeadline_immed", "takes a timer that is already due", privileged::deadline, 0, (1, 3)),
    timer("tscdeadline", "takes a timer due in 3,000 ticks", privileged::deadline, 3_000, (1, 3)),
    timer("hlt_timer", "halts until a timer due in 20,000 ticks", privileged::deadline_hlt, 20_000, (1, 4)),
    ipi("self_ipi_sti_nop", "sends itself an IPI", privileged::ipi_sti_nop, ICR),
    ipi("self_ipi_sti_hlt", "sends itself an IPI and halts", privileged::ipi_sti_hlt, ICR),
    ipi("self_ipi_tpr", "sends itself an IPI below its priority", privileged::ipi_tpr, ICR),
    ipi(
        "self_ipi_tpr_sti_nop",
        "sends itself an IPI below its priority, IF=0 until then",
        privileged::ipi_tpr_sti_nop,
        ICR,
    ),
    ipi("self_ipi_tpr_sti_hlt", "sends itself an IPI below its priority and halts", privileged::ipi_tpr_sti_hlt, ICR),
    ipi("x2apic_self_ipi_sti_nop", "sends itself an IPI through MSR 0x83f", privileged::ipi_sti_nop, SELF_IPI),
    ipi(
        "x2apic_self_ipi_sti_hlt",
        "sends itself an IPI through MSR 0x83f and halts",
        privileged::ipi_sti_hlt,
        SELF_IPI,
    ),
    ipi(
        "x2apic_self_ipi_tpr",
        "sends itself an IPI through MSR 0x83f below its priority",
        privileged::ipi_tpr,
        SELF_IPI,
    ),
    ipi(
        "x2apic_self_ipi_tpr_sti_nop",
        "the same MSR and priority, IF=0 until then",
        privileged::ipi_tpr_sti_nop,
        SELF_IPI,
    ),
    ipi("x2apic_self_ipi_tpr_sti_hlt", "the same MSR and priority, and halts", privileged::ipi_tpr_sti_hlt, SELF_IPI),
    Test { name: "mov_from_cr8", does: "reads CR8 (TPR)", body: privileged::from_cr8, exits: (0, 1), ..RING_0 },
    Test { name: "mov_to_cr8", does: "writes CR8 (TPR)", body: privileged::to_cr8, exits: (0, 1), ..RING_0 },
    Test { name: "mov_dr", does: "reads and writes DR7", body: privileged::dr, exits: (0, 2), ..RING_0 },
    Test { name: "toggle_cr0_wp", does: "clears and sets CR0.WP", body: privileged::cr0_wp, exits: (0, 2), ..RING_0 },
    Test {
        name: "toggle_cr4_pge",
        does: "clears and sets CR4.PGE",
        body: privileged::cr4_pge,
        exits: (0, 2),
        ..RING_0
    },
    Test { name: "mov_cr3", does: "writes CR3", body: privileged::cr3, ..RING_0 },
    Test { name: "invlpg", does: "flushes a translation (INVLPG)", body: privileged::invlpg, r15: NEW_PAGES, ..RING_0 },
    Test { name: "pause_loop", does: "spins 10,000 turns", body: privileged::pauses, exits: (0, 8), ..RING_0 },
    Test { name: "rdpmc", does: "reads a performance counter", body: privileged::rdpmc, exits: (0, 1), ..RING_0 },
    Test { name: "xsetbv", does: "writes XCR0 as it is", body: privileged::xsetbv, exits: (0, 1), ..RING_0 },
    Test {
        name: "wbinvd",
        does: "writes back all caches (WBINVD)",
        body: privileged::wbinvd,
        exits: (0, 1),
        ..DISTURBING
    },
    Test {
        name: "invd",
        does: "invalidates all caches (INVD), which KVM ignores",
        body: privileged::invd,
        ..DISTURBING
    },
    Test { name: "ipi", does: "sends an IPI to a running vCPU", partner: Some(privileged::awake), ..IPI },
    Test { name: "ipi_halt", does: "sends an IPI to a halted vCPU", partner: Some(privileged::asleep), ..IPI },
    Test {
        name: "ple_round_robin",
        does: "passes a token to the other vCPU and back",
        body: privileged::hand_over,
        partner: Some(privileged::hand_back),
        exits: (0, 4),
        ..RING_0
    },
    Test {
        name: "false_sharing",
        does: "increments a counter in a cache line that the other vCPU writes too",
        body: privileged::count,
        partner: Some(privileged::count_beside),
        ..RING_0
    },
    Test {
        name: "vmrun",
        does: "enters an L2 that exits at once",
        body: svm::vmrun,
        exits: (2, 2),
        at: At::Svm,
        ..RING_0
    },
    Test { name: "vmread", does: "reads a field of a VMCS", body: vmx::vmread, ..L1_VMX },
    Test { name: "vmwrite", does: "writes a field of a VMCS", body: vmx::vmwrite, ..L1_VMX },
    Test { name: "vmresume", does: "enters an L2 that exits at once", body: vmx::vmresume, exits: (2, 2), ..L1_VMX },
    Test {
        name: "invept",
        does: "invalidates all nested-paging translations (INVEPT)",
        body: vmx::invept,
        exits: (1, 1),
        ..L1_VMX
    },
    Test { name: "l2_cpuid", does: "executes CPUID, in L2", body: payload::cpuid, exits: (4, 16), ..L2 },
    Test { name: "l2_vmcall", does: "calls L1, in L2", body: privileged::hypercall, exits: (3, 15), ..L2 },
    Test { name: "l2_rdmsr_kgs", does: "reads its own MSR, in L2", body: privileged::rdmsr, r15: 0xc000_0102, ..L2 },
    Test {
        name: "l2_touch_4k",
        does: "first touch of a 4 KiB page, in L2",
        body: payload::touch,
        r15: NEW_PAGES,
        rbx: 4096,
        exits: (1, 8),
        takes_bytes: 4096,
        ..L2
    },
];

/// The names of tests that take a hypervisor inside the guest, and of those to which they are compared.
pub fn nested() -> impl Iterator<Item = &'static str> {
    let compared = ["empty", "cpuid", "vmcall"];
    TESTS.iter().filter(move |test| test.at != At::Guest || compared.contains(&test.name)).map(|test| test.name)
}

pub fn named(name: &str) -> Option<&'static Test> {
    TESTS.iter().find(|test| test.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        assert!(TESTS.iter().enumerate().all(|(at, test)| TESTS.iter().position(|t| t.name == test.name) == Some(at)));
    }
}
