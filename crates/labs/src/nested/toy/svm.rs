//! L1 for SVM: VMRUN in a loop, as a hypervisor that keeps its own GIF and state around it.
//!
//! ```text
//! L1  CLGI VMLOAD VMRUN ......... VMSAVE STGI  the same for L2, RIP += 2  CLGI VMLOAD VMRUN ...
//! L2                     CPUID                                                               CPUID
//! ```
//! Each of those instructions of L1 leaves to L0, except CLGI and STGI where the CPU has `vgif`. Only RAX and RSP come
//! back from VMRUN, so L1 keeps what it needs in registers that L2 leaves alone.
//!
//! Offsets in the VMCB: AMD64 Architecture Programmer's Manual, volume 2, appendix B.

use super::memory::Memory;
use super::vmm::{Hypervisor, Start};
use super::{CONTROL_BLOCKS, L2_CODE, L2_STACK, PAGE_TABLES, ROUNDS};
use crate::machine_code::code;
use crate::nested::settings::{Settings, Workload};

// r12: VMCB; r13: rounds left; r14: host save area.
std::arch::global_asm!(
    ".pushsection .rodata",
    // The compiler may put the code that names them into another object file.
    ".globl kvmscope_toy_svm, kvmscope_toy_svm_end",
    ".hidden kvmscope_toy_svm, kvmscope_toy_svm_end",
    "kvmscope_toy_svm:",
    "    mov ecx, 0xc0000080", // EFER
    "    rdmsr",
    "    or eax, 0x1000", // SVME
    "    wrmsr",
    "    mov ecx, 0xc0010117", // VM_HSAVE_PA
    "    mov eax, r14d",
    "    xor edx, edx",
    "    wrmsr",
    "2:  clgi",
    "    mov rax, r12",
    "    vmload rax",
    "    vmrun rax",
    "    vmsave rax",
    "    stgi",
    "    mov rax, [r12 + 0x70]", // EXITCODE
    "    cmp rax, 0x72",         // CPUID
    "    je 3f",
    "    cmp rax, 0x7b", // IOIO
    "    je 4f",
    "    jmp 6f",
    "3:  xor eax, eax",
    "    cpuid",
    "    jmp 5f",
    "4:  out 0x11, al",
    "5:  add qword ptr [r12 + 0x578], 2", // RIP; CPUID and OUT are two bytes long
    "    dec qword ptr [r13]",
    "    jnz 2b",
    "6:  hlt",
    "    jmp 6b",
    "kvmscope_toy_svm_end:",
    ".popsection",
);

/// The toy hypervisor for SVM.
pub(super) struct Svm;

impl Hypervisor for Svm {
    const STRIDE: u64 = 0x2000;

    fn code() -> &'static [u8] {
        code!(kvmscope_toy_svm..kvmscope_toy_svm_end)
    }

    fn prepare(memory: &mut Memory, vcpu: u64, settings: &Settings) -> Start {
        let vmcb = CONTROL_BLOCKS + vcpu * Self::STRIDE;
        // Intercepts: CPUID (18), HLT (24) and, for ports, IOIO (27); then VMRUN and VMMCALL.
        let ports = settings.workload == Workload::Pio;
        memory.write_u32(vmcb + 0x0c, 1 << 18 | 1 << 24 | u32::from(ports) << 27);
        memory.write_u32(vmcb + 0x10, 0x3);
        if ports {
            memory.write(IO_PERMISSIONS, &[0xff; 3 * 4096]);
            memory.write_u64(vmcb + 0x40, IO_PERMISSIONS);
        }
        memory.write_u32(vmcb + 0x58, 1); // ASID
        let save = vmcb + 0x400;
        let mut segment = |offset, selector, attributes, limit| {
            memory.write_u16(save + offset, selector);
            memory.write_u16(save + offset + 2, attributes);
            memory.write_u32(save + offset + 4, limit);
        };
        for data in [0x00, 0x20, 0x30] {
            segment(data, 0x10, 0xc93, u32::MAX); // ES, SS, DS
        }
        segment(0x10, 0x08, 0xa9b, u32::MAX); // CS, 64 bit
        segment(0x60, 0, 0, 0xffff); // GDTR
        segment(0x70, 0, 0x82, 0); // LDTR
        segment(0x80, 0, 0, 0xffff); // IDTR
        segment(0x90, 0, 0x8b, 0xffff); // TR
        memory.write_u64(save + 0xd0, 0x1500); // EFER: LME, LMA, SVME
        memory.write_u64(save + 0x148, 0x20); // CR4: PAE
        memory.write_u64(save + 0x150, PAGE_TABLES); // CR3
        memory.write_u64(save + 0x158, super::vmm::CR0);
        memory.write_u64(save + 0x160, 0x400); // DR7
        memory.write_u64(save + 0x168, 0xffff_0ff0); // DR6
        memory.write_u64(save + 0x170, 2); // RFLAGS
        memory.write_u64(save + 0x178, L2_CODE.start); // RIP
        memory.write_u64(save + 0x1d8, L2_STACK - vcpu * 0x1000); // RSP
        memory.write_u64(save + 0x268, 0x0007_0406_0007_0406); // G_PAT
        Start { r12: vmcb, r13: ROUNDS + vcpu * 8, r14: vmcb + 0x1000 }
    }

    fn reflected(workload: Workload) -> &'static str {
        if workload == Workload::Pio { "IOIO" } else { "CPUID" }
    }

    fn kept(workload: Workload) -> Option<&'static str> {
        (workload == Workload::Cpuid).then_some("IOIO")
    }

    fn chain(settings: &Settings) -> Vec<&'static str> {
        let all = ["VMSAVE", "STGI", Self::reflected(settings.workload), "CLGI", "VMLOAD", "VMRUN"];
        all.into_iter().filter(|reason| !(settings.vgif && matches!(*reason, "STGI" | "CLGI"))).collect()
    }
}

/// A page table's worth of ones: every port leaves to L1.
const IO_PERMISSIONS: u64 = 0x3c000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nested::toy::PORT;

    #[test]
    fn the_code_is_flat_and_ends_in_a_halt() {
        let code = Svm::code();
        assert!(code.starts_with(&[0xb9, 0x80, 0x00, 0x00, 0xc0, 0x0f, 0x32]), "mov ecx, EFER; rdmsr: {code:x?}");
        assert!(code.ends_with(&[0xf4, 0xeb, 0xfd]), "hlt; jmp back: {code:x?}");
        let vmrun = [0x0f, 0x01, 0xd8];
        assert_eq!(code.windows(3).filter(|bytes| *bytes == vmrun).count(), 1);
        assert!(code.contains(&PORT));
        assert!(code.len() < 0x200, "{}", code.len());
    }
}
