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
//! What it shares with the hypervisor of the bench stands in `crate::vmx`, the encodings too.

use super::memory::Memory;
use super::vmm::{CR0, Hypervisor, Start};
use super::{CONTROL_BLOCKS, L1_CODE, L2_CODE, L2_STACK, PAGE_TABLES, ROUNDS};
use crate::machine_code::{code, label};
use crate::nested::settings::{Settings, Workload};
use crate::vmx::{FEATURE_CONTROL, Flat, table, vmx_enter, vmx_go_on, vmx_set_up, vmx_why};

// r12: VMCS, then VMXON area; r13: rounds left; r14: table of controls, then of fields; r15: launched.
std::arch::global_asm!(
    ".pushsection .rodata",
    // The compiler may put the code that names them into another object file.
    ".globl kvmscope_toy_vmx, kvmscope_toy_vmx_exit, kvmscope_toy_vmx_end",
    ".hidden kvmscope_toy_vmx, kvmscope_toy_vmx_exit, kvmscope_toy_vmx_end",
    "kvmscope_toy_vmx:",
    vmx_set_up!(),
    "    xor r15d, r15d",
    "4:",
    vmx_enter!(),
    "    test r15d, r15d",
    "    jnz 5f",
    "    mov r15d, 1",
    "    vmlaunch",
    "    jmp 9f",
    "5:  vmresume",
    "    jmp 9f",
    "kvmscope_toy_vmx_exit:",
    vmx_why!(),
    "    cmp r11d, 10", // CPUID
    "    je 6f",
    "    cmp r11d, 30", // I/O
    "    je 7f",
    "    jmp 9f",
    "6:  xor eax, eax",
    "    xor ecx, ecx",
    "    cpuid",
    "    jmp 8f",
    "7:  out 0x11, al",
    "8:",
    vmx_go_on!(),
    "    dec qword ptr [r13]",
    "    jnz 4b",
    "9:  hlt",
    "    jmp 9b",
    "kvmscope_toy_vmx_end:",
    ".popsection",
);

/// The toy hypervisor for VMX.
pub(super) struct Vmx;

const TR_BASE: u64 = 0x5000;
const GDT_BASE: u64 = 0x6000;
const IDT_BASE: u64 = 0x7000;

impl Hypervisor for Vmx {
    const STRIDE: u64 = 0x4000;
    const MSRS: &'static [(u32, u64)] = &[FEATURE_CONTROL];

    fn code() -> &'static [u8] {
        code!(kvmscope_toy_vmx..kvmscope_toy_vmx_end)
    }

    fn prepare(memory: &mut Memory, vcpu: u64, settings: &Settings) -> Start {
        let block = CONTROL_BLOCKS + vcpu * Self::STRIDE;
        let at = block + 0x2000;
        // HLT and, for ports, all I/O.
        let ports = u32::from(settings.workload == Workload::Pio);
        memory.write(at, &table(1 << 7 | ports << 24, 0, &flat(vcpu).fields()));
        Start { r12: block, r13: ROUNDS + vcpu * 8, r14: at }
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

/// The machine that L1 and L2 share.
fn flat(vcpu: u64) -> Flat {
    let (start, exit) = (label!(kvmscope_toy_vmx), label!(kvmscope_toy_vmx_exit));
    Flat {
        cr0: CR0,
        cr3: PAGE_TABLES,
        cr4: 0x20, // PAE
        task: (0x18, TR_BASE, 0x67),
        tables: (GDT_BASE, IDT_BASE),
        exit_rip: L1_CODE + (exit as u64 - start as u64),
        rip: L2_CODE.start,
        rsp: L2_STACK - vcpu * 0x1000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_flat_and_has_its_exit_inside() {
        let code = Vmx::code();
        assert!(code.ends_with(&[0xf4, 0xeb, 0xfd]), "hlt; jmp back: {code:x?}");
        for (name, bytes) in [("vmlaunch", [0x0f, 0x01, 0xc2]), ("vmresume", [0x0f, 0x01, 0xc3])] {
            assert_eq!(code.windows(3).filter(|window| *window == bytes).count(), 1, "{name}");
        }
        let exit = flat(0).exit_rip - L1_CODE;
        assert!(code[exit as usize..].starts_with(&[0xb8, 0x02, 0x44, 0, 0]), "mov eax, 0x4402: {code:x?}");
    }
}
