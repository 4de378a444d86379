//! L1 for VMX: VMRESUME in a loop, as a hypervisor that reads why L2 left and writes how it goes on.
//!
//! ```text
//! L1  VMWRITE VMRESUME ........ VMREAD x 7  the same for L2  VMWRITE x 3  VMREAD VMWRITE  VMWRITE VMRESUME ...
//! L2                     CPUID                                                                         CPUID
//! ```
//! Each of those instructions of L1 leaves to L0. With VMCS shadowing the CPU carries out all VMREADs and VMWRITEs but
//! the one to HOST_RSP, which KVM keeps out of its list of shadowed fields. What VMX wants to have set up, the VMM writes
//! as a table, and L1 copies it into its VMCS.
//!
//! Encodings of fields and bits of controls: Intel SDM, volume 3, appendix B and chapter 25.

use super::memory::Memory;
use super::vmm::{CR0, Hypervisor, Start};
use super::{CONTROL_BLOCKS, L1_CODE, L2_CODE, L2_STACK, PAGE_TABLES, ROUNDS};
use crate::nested::settings::{Settings, Workload};

// r12: VMCS, then VMXON area; r13: rounds left; r14: table of controls, then of fields; r15: launched.
std::arch::global_asm!(
    ".pushsection .rodata",
    // The compiler may put the code that names them into another object file.
    ".globl kvmscope_toy_vmx, kvmscope_toy_vmx_exit, kvmscope_toy_vmx_end",
    ".hidden kvmscope_toy_vmx, kvmscope_toy_vmx_exit, kvmscope_toy_vmx_end",
    "kvmscope_toy_vmx:",
    "    mov rax, cr4",
    "    or eax, 0x2000", // VMXE
    "    mov cr4, rax",
    "    mov ecx, 0x480", // IA32_VMX_BASIC: revision
    "    rdmsr",
    "    and eax, 0x7fffffff",
    "    mov [r12], eax",
    "    mov [r12 + 0x1000], eax",
    "    lea rbx, [r12 + 0x1000]",
    "    push rbx",
    "    vmxon [rsp]",
    "    jbe 9f",
    "    push r12",
    "    vmclear [rsp]",
    "    jbe 9f",
    "    vmptrld [rsp]",
    "    jbe 9f",
    "2:  mov ecx, [r14 + 8]", // the MSR that says which bits a control must and may have
    "    test ecx, ecx",
    "    jz 3f",
    "    rdmsr",
    "    or eax, [r14 + 4]",
    "    and eax, edx",
    "    mov ebx, [r14]",
    "    vmwrite rbx, rax",
    "    add r14, 16",
    "    jmp 2b",
    "3:  add r14, 16",
    "    mov rbx, [r14]",
    "    mov rax, [r14 + 8]",
    "    vmwrite rbx, rax",
    "    cmp qword ptr [r14 + 16], -1",
    "    jne 3b",
    "    xor r15d, r15d",
    "4:  mov eax, 0x6c14", // HOST_RSP
    "    vmwrite rax, rsp",
    "    test r15d, r15d",
    "    jnz 5f",
    "    mov r15d, 1",
    "    vmlaunch",
    "    jmp 9f",
    "5:  vmresume",
    "    jmp 9f",
    "kvmscope_toy_vmx_exit:",
    "    mov eax, 0x4402", // exit reason
    "    vmread r8, rax",
    "    mov eax, 0x681e", // RIP
    "    vmread r9, rax",
    "    mov eax, 0x440c", // length of the instruction
    "    vmread r10, rax",
    "    mov eax, 0x6400", // exit qualification
    "    vmread r11, rax",
    "    mov eax, 0x4404", // interruption information
    "    vmread r11, rax",
    "    mov eax, 0x6820", // RFLAGS
    "    vmread r11, rax",
    "    mov eax, 0x4408", // IDT-vectoring information
    "    vmread r11, rax",
    "    cmp r8d, 10", // CPUID
    "    je 6f",
    "    cmp r8d, 30", // I/O
    "    je 7f",
    "    jmp 9f",
    "6:  xor eax, eax",
    "    xor ecx, ecx",
    "    cpuid",
    "    jmp 8f",
    "7:  out 0x11, al",
    "8:  add r9, r10",
    "    mov eax, 0x681e",
    "    vmwrite rax, r9",
    "    xor edx, edx",
    "    mov eax, 0x4824", // interruptibility
    "    vmwrite rax, rdx",
    "    mov eax, 0x4016", // VM-entry interruption information
    "    vmwrite rax, rdx",
    "    mov eax, 0x4002", // primary controls, as they are
    "    vmread rdx, rax",
    "    vmwrite rax, rdx",
    "    dec qword ptr [r13]",
    "    jnz 4b",
    "9:  hlt",
    "    jmp 9b",
    "kvmscope_toy_vmx_end:",
    ".popsection",
);

unsafe extern "C" {
    static kvmscope_toy_vmx: u8;
    static kvmscope_toy_vmx_exit: u8;
    static kvmscope_toy_vmx_end: u8;
}

/// The toy hypervisor for VMX.
pub struct Vmx;

const CR4: u64 = 0x2020; // VMXE, PAE

/// Segments of a flat 64-bit machine: ES, CS, SS, DS, FS, GS, LDTR, TR as (selector, limit, access rights).
const SEGMENTS: [(u64, u64, u64); 8] = [
    (0x10, 0xffff_ffff, 0xc093),
    (0x08, 0xffff_ffff, 0xa09b),
    (0x10, 0xffff_ffff, 0xc093),
    (0x10, 0xffff_ffff, 0xc093),
    (0x10, 0xffff_ffff, 0xc093),
    (0x10, 0xffff_ffff, 0xc093),
    (0, 0xffff, 0x10082),
    (0x18, 0x67, 0x8b),
];
const TR_BASE: u64 = 0x5000;
const GDT_BASE: u64 = 0x6000;
const IDT_BASE: u64 = 0x7000;

impl Hypervisor for Vmx {
    const STRIDE: u64 = 0x4000;
    /// IA32_FEATURE_CONTROL: locked, VMXON allowed.
    const MSRS: &'static [(u32, u64)] = &[(0x3a, 0x5)];

    fn code() -> &'static [u8] {
        let (start, end) = (&raw const kvmscope_toy_vmx, &raw const kvmscope_toy_vmx_end);
        // SAFETY: both labels stand in the same section of read-only data, the second after the first.
        unsafe { std::slice::from_raw_parts(start, end.offset_from(start) as usize) }
    }

    fn prepare(memory: &mut Memory, vcpu: u64, settings: &Settings) -> Start {
        let block = CONTROL_BLOCKS + vcpu * Self::STRIDE;
        let table = block + 0x2000;
        let ports = u32::from(settings.workload == Workload::Pio);
        // Pin-based; processor-based: HLT and, for ports, all I/O; exit: 64-bit host; entry: 64-bit guest.
        let controls = [
            (0x4000, 0, 0x48d),
            (0x4002, 1 << 7 | ports << 24, 0x48e),
            (0x400c, 1 << 9, 0x48f),
            (0x4012, 1 << 9, 0x490),
        ];
        for (at, (field, wanted, msr)) in (table..).step_by(16).zip(controls) {
            memory.write_u32(at, field);
            memory.write_u32(at + 4, wanted);
            memory.write_u32(at + 8, msr);
        }
        let after = table + 16 * (controls.len() as u64 + 1);
        let fields = fields(vcpu);
        for (at, (field, value)) in (after..).step_by(16).zip(&fields) {
            memory.write_u64(at, *field);
            memory.write_u64(at + 8, *value);
        }
        memory.write_u64(after + 16 * fields.len() as u64, u64::MAX);
        Start { r12: block, r13: ROUNDS + vcpu * 8, r14: table }
    }

    fn reflected(workload: Workload) -> &'static str {
        if workload == Workload::Pio { "IO" } else { "CPUID" }
    }

    fn kept(workload: Workload) -> Option<&'static str> {
        (workload == Workload::Cpuid).then_some("IO")
    }

    fn chain(settings: &Settings) -> Vec<&'static str> {
        let own = Self::reflected(settings.workload);
        if settings.shadow_vmcs {
            return vec![own, "VMWRITE", "VMRESUME"];
        }
        let (read, write) = ("VMREAD", "VMWRITE");
        vec![read, read, read, read, read, read, read, own, write, write, write, read, write, write, "VMRESUME"]
    }
}

/// Fields of the VMCS and their values.
fn fields(vcpu: u64) -> Vec<(u64, u64)> {
    let (start, exit) = (&raw const kvmscope_toy_vmx, &raw const kvmscope_toy_vmx_exit);
    let exit_rip = L1_CODE + (exit as u64 - start as u64);
    let mut fields = vec![
        (0x2800, u64::MAX), // no linked VMCS
        (0x6004, CR0),      // what L2 reads as CR0 and CR4
        (0x6006, CR4),
        (0x6c00, CR0),
        (0x6c02, PAGE_TABLES),
        (0x6c04, CR4),
        (0x6c0a, TR_BASE),
        (0x6c0c, GDT_BASE),
        (0x6c0e, IDT_BASE),
        (0x6c16, exit_rip),
        (0x6800, CR0),
        (0x6802, PAGE_TABLES),
        (0x6804, CR4),
        (0x6814, TR_BASE),
        (0x6816, GDT_BASE),
        (0x6818, IDT_BASE),
        (0x4810, 0xffff), // limits of GDTR and IDTR
        (0x4812, 0xffff),
        (0x681a, 0x400), // DR7
        (0x681c, L2_STACK - vcpu * 0x1000),
        (0x681e, L2_CODE.start),
        (0x6820, 2), // RFLAGS
    ];
    for (index, (selector, limit, rights)) in (0..).zip(SEGMENTS) {
        fields.extend([(0x800 + 2 * index, selector), (0x4800 + 2 * index, limit), (0x4814 + 2 * index, rights)]);
    }
    // The host's selectors, in the order ES CS SS DS FS GS TR.
    fields.extend((0xc00..).step_by(2).zip([0x10, 0x08, 0x10, 0x10, 0x10, 0x10, 0x18]));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_code_is_flat_and_has_its_exit_inside() {
        let code = Vmx::code();
        assert!(code.ends_with(&[0xf4, 0xeb, 0xfd]), "hlt; jmp back: {code:x?}");
        for (name, bytes) in [("vmlaunch", [0x0f, 0x01, 0xc2]), ("vmresume", [0x0f, 0x01, 0xc3])] {
            assert_eq!(code.windows(3).filter(|window| *window == bytes).count(), 1, "{name}");
        }
        let exit = fields(0).iter().find(|(field, _)| *field == 0x6c16).unwrap().1 - L1_CODE;
        assert!(code[exit as usize..].starts_with(&[0xb8, 0x02, 0x44, 0, 0]), "mov eax, 0x4402: {code:x?}");
    }

    #[test]
    fn no_field_is_written_twice() {
        let fields = fields(0);
        let distinct: BTreeSet<_> = fields.iter().map(|(field, _)| field).collect();
        assert_eq!(distinct.len(), fields.len());
    }
}
