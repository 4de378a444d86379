//! The hypervisor inside the guest, for VMX: its own guest runs the measuring loop, or leaves at once.
//!
//! ```text
//! L1   HOST_RSP VMRESUME ........ VMREAD x 7   CPUID for L2   VMWRITE x 3   VMREAD VMWRITE   HOST_RSP VMRESUME ...
//! L2                      CPUID                                                                               CPUID
//! ```
//! The accesses are those of the lab's toy, so that its exits are theirs: L2 leaves once, and L1 takes 15 exits more, or 3
//! where the processor shadows the VMCS (all VMREADs and VMWRITEs but the one to HOST_RSP). Nested paging is not used, and
//! ports are not intercepted: the end of a run goes from L2 to the VMM past L1.

use super::layout::{CONTROL, HYPERVISOR, HYPERVISOR_STACK, NO_MSRS, STACK};
use super::{payload, privileged};
use crate::machine_code::{code, guest_addresses};
use crate::vmx::{FEATURE_CONTROL, Flat, table, vmx_enter, vmx_go_on, vmx_set_up, vmx_why};
use kvm_bindings::kvm_sregs;
use lab::Error;
use lab::guest::memory::Memory;

/// The VMCS, and behind it the VMXON area.
const VMCS: u64 = CONTROL;
/// What stands in the VMCS: of an L2 that measures, and of one that leaves at once.
const MEASURING: u64 = CONTROL + 0x5000;
const LEAVING: u64 = CONTROL + 0x6000;

std::arch::global_asm!(
    ".pushsection .rodata.kvmscope_bench_vmx, \"a\", @progbits",
    ".macro vmx_place name",
    "    .globl kvmscope_bench_vmx_\\name",
    "    .hidden kvmscope_bench_vmx_\\name",
    "kvmscope_bench_vmx_\\name:",
    ".endm",
    "vmx_place begin",
    "    mov rsp, {stack}",
    "    mov r12d, {vmcs}",
    "    mov r14d, {measuring}",
    vmx_set_up!(),
    "    mov r12d, 1", // one turn of nothing
    vmx_enter!(),
    "    vmlaunch",
    "    jmp 9f",
    "4:",
    vmx_enter!(),
    "    vmresume",
    "    jmp 9f",
    "vmx_place exit",
    vmx_why!(),
    "    cmp r11d, 10", // CPUID
    "    je 6f",
    "    cmp r11d, 18", // VMCALL
    "    je 8f",
    "    mov eax, r11d",
    "    out 0xf6, al",
    "6:  push rbx",
    "    xor eax, eax",
    "    xor ecx, ecx",
    "    cpuid",
    "    pop rbx",
    "8:",
    vmx_go_on!(),
    "    jmp 4b",
    // L1 itself measures, and what its L2 leaves with is of no interest.
    "vmx_place begin_leaving",
    "    mov rsp, {stack}",
    "    mov r12d, {vmcs}",
    "    mov r14d, {leaving}",
    vmx_set_up!(),
    vmx_enter!(),
    "    mov rdi, r9", // the first time L1 is done
    "    vmlaunch",
    "    jmp 9f",
    "vmx_place left",
    "    jmp rdi",
    "vmx_place vmread",
    "    mov eax, 0x4402", // exit reason
    "    vmread rdx, rax",
    "    jmp rdi",
    "vmx_place vmwrite",
    "    mov eax, 0x4824", // interruptibility
    "    xor edx, edx",
    "    vmwrite rax, rdx",
    "    jmp rdi",
    "vmx_place invept",
    "    mov eax, 2", // all contexts: what the descriptor says is not looked at, but must be 0
    "    invept rax, [{zeros}]",
    "    jmp rdi",
    "vmx_place vmresume",
    "    vmresume",
    // An instruction failed: why, where there is a VMCS to ask.
    "9:  mov ecx, 0x4400", // VM-instruction error
    "    xor eax, eax",
    "    vmread rax, rcx",
    "    out 0xf7, al",
    "vmx_place end",
    ".purgem vmx_place",
    ".popsection",
    vmcs = const VMCS,
    measuring = const MEASURING,
    leaving = const LEAVING,
    zeros = const NO_MSRS,
    stack = const HYPERVISOR_STACK,
);

guest_addresses! {
    HYPERVISOR, kvmscope_bench_vmx_begin;
    /// Where an L1 begins whose L2 measures.
    begin = kvmscope_bench_vmx_begin;
    /// Where it goes on when L2 leaves.
    exit = kvmscope_bench_vmx_exit;
    /// Where an L1 begins that measures itself.
    begin_leaving = kvmscope_bench_vmx_begin_leaving;
    left = kvmscope_bench_vmx_left;
    /// A body that reads a field of the VMCS.
    vmread = kvmscope_bench_vmx_vmread;
    vmwrite = kvmscope_bench_vmx_vmwrite;
    /// A body that forgets all translations of nested paging.
    invept = kvmscope_bench_vmx_invept;
    /// A body that enters an L2, which leaves at once.
    vmresume = kvmscope_bench_vmx_vmresume;
}

fn code() -> &'static [u8] {
    code!(kvmscope_bench_vmx_begin..kvmscope_bench_vmx_end)
}

/// MSRs that firmware would have set.
pub(super) fn registers() -> [(u32, u64); 1] {
    [FEATURE_CONTROL]
}

/// Writes L1 and what its guests begin with; they are at ring 0 like L1 itself and share its tables.
pub(super) fn fill(memory: &mut Memory, l1: &kvm_sregs) -> Result<(), Error> {
    memory.load(HYPERVISOR as usize, code())?;
    let measuring = Flat {
        cr0: l1.cr0,
        cr3: l1.cr3,
        cr4: l1.cr4,
        task: (l1.tr.selector.into(), l1.tr.base, l1.tr.limit.into()),
        tables: (l1.gdt.base, l1.idt.base),
        exit_rip: exit(),
        rip: payload::turns(),
        rsp: STACK,
    };
    // L1 never lets it advance beyond its hypercall.
    let rip = privileged::call_alone(privileged::intel_call());
    let leaving = Flat { exit_rip: left(), rip, ..measuring };
    for (at, flat) in [(MEASURING, measuring), (LEAVING, leaving)] {
        const USE_MSR_BITMAPS: u32 = 1 << 28;
        // Without it L2 has no RDTSCP, which the measuring loop needs.
        const ENABLE_RDTSCP: u32 = 1 << 3;
        let fields = [flat.fields(), vec![(0x2004, NO_MSRS)]].concat();
        memory.load(at as usize, &table(USE_MSR_BITMAPS, ENABLE_RDTSCP, &fields))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_flat_and_each_label_stands_before_its_instruction() {
        let code = code();
        assert!(code.len() < 0x1000);
        let at = |place: u64| &code[(place - HYPERVISOR) as usize..];
        assert!(at(exit()).starts_with(&[0xb8, 0x02, 0x44, 0, 0]), "mov eax, 0x4402: {code:x?}");
        assert!(at(left()).starts_with(&[0xff, 0xe7]), "jmp rdi");
        assert!(at(vmread())[5..].starts_with(&[0x0f, 0x78, 0xc2]), "vmread rdx, rax");
        assert!(at(vmwrite())[7..].starts_with(&[0x0f, 0x79, 0xc2]), "vmwrite rax, rdx");
        assert!(at(invept())[5..].starts_with(&[0x66, 0x0f, 0x38, 0x80]), "invept");
        assert!(at(vmresume()).starts_with(&[0x0f, 0x01, 0xc3]), "vmresume");
        for (name, bytes, count) in [("vmlaunch", [0x0f, 0x01, 0xc2], 2), ("vmresume", [0x0f, 0x01, 0xc3], 2)] {
            assert_eq!(code.windows(3).filter(|window| *window == bytes).count(), count, "{name}");
        }
    }

    #[test]
    fn l1_has_as_many_accesses_an_exit_as_the_toy() {
        let round = &code()[(exit() - HYPERVISOR) as usize..(begin_leaving() - HYPERVISOR) as usize];
        let count = |opcode: [u8; 2]| round.windows(2).filter(|window| *window == opcode).count();
        // VMREAD, VMWRITE and CPUID; one VMWRITE more stands before VMRESUME.
        assert_eq!([count([0x0f, 0x78]), count([0x0f, 0x79]), count([0x0f, 0xa2])], [8, 4, 1]);
    }
}
