//! A hypervisor of some twenty instructions inside the guest, whose own guest runs the measuring loop: true cycles of L2.
//!
//! ```text
//! L1   CLGI VMLOAD VMRUN ............... VMSAVE STGI   answer, RIP += length   CLGI VMLOAD VMRUN ....
//! L2                     body -- CPUID                                                            body ...
//! L0   leaves none of these to L1 unseen: each is an exit that KVM counts
//! ```
//! It does what a hypervisor must and no more, in the order of the lab's toys, so that its exits are theirs. Ports are not
//! intercepted: the end of a run goes from L2 to the VMM past L1, which finds the guest inside L2 again when it goes on.
//!
//! VMCB: AMD64 Architecture Programmer's Manual, volume 2, appendix B; exit codes: appendix C.

use super::layout::{CONTROL, HYPERVISOR, HYPERVISOR_STACK, NO_MSRS, STACK};
use super::{payload, privileged};
use crate::machine_code::{code, guest_addresses};
use kvm_bindings::{kvm_segment, kvm_sregs};
use lab::Error;
use lab::guest::memory::Memory;

/// Control blocks: of the L2 that measures, and of one that only exits again; each with what VMLOAD takes.
const VMCB: u64 = CONTROL;
const EXITING_VMCB: u64 = CONTROL + 0x1000;
/// Where the processor keeps L1 meanwhile.
const HOST_SAVE: u64 = CONTROL + 0x2000;

std::arch::global_asm!(
    ".pushsection .rodata.kvmscope_bench_svm, \"a\", @progbits",
    ".globl kvmscope_bench_svm, kvmscope_bench_svm_vmrun, kvmscope_bench_svm_end",
    ".hidden kvmscope_bench_svm, kvmscope_bench_svm_vmrun, kvmscope_bench_svm_end",
    "kvmscope_bench_svm:",
    "    mov rsp, {stack}",
    "2:  clgi",
    "    mov eax, {vmcb}",
    "    vmload rax",
    "    vmrun rax",
    "    vmsave rax",
    "    stgi",
    "    cmp qword ptr [{vmcb} + 0x70], 0x72", // CPUID
    "    je 3f",
    "    cmp qword ptr [{vmcb} + 0x70], 0x81", // VMMCALL
    "    je 4f",
    "    mov al, [{vmcb} + 0x70]",
    "    out 0xf6, al",
    "3:  push rbx",
    "    push rcx",
    "    push rdx",
    "    xor eax, eax",
    "    xor ecx, ecx",
    "    cpuid",
    "    pop rdx",
    "    pop rcx",
    "    pop rbx",
    "    add qword ptr [{vmcb} + 0x578], 2", // RIP
    "    jmp 2b",
    "4:  add qword ptr [{vmcb} + 0x578], 3",
    "    jmp 2b",
    // A body of L1: enters an L2 that leaves at once.
    "kvmscope_bench_svm_vmrun:",
    "    mov eax, {exiting}",
    "    vmrun rax",
    "    jmp rdi",
    "kvmscope_bench_svm_end:",
    ".popsection",
    vmcb = const VMCB,
    exiting = const EXITING_VMCB,
    stack = const HYPERVISOR_STACK,
);

guest_addresses! {
    HYPERVISOR, kvmscope_bench_svm;
    /// Where L1 begins.
    begin = kvmscope_bench_svm;
    /// A body that enters an L2, which leaves at once.
    vmrun = kvmscope_bench_svm_vmrun;
}

fn code() -> &'static [u8] {
    code!(kvmscope_bench_svm..kvmscope_bench_svm_end)
}

/// MSRs that L1 would have set: where the processor keeps it.
pub(super) fn registers() -> [(u32, u64); 1] {
    [(0xc001_0117, HOST_SAVE)]
}

/// Writes L1 and its guests, which are at ring 0 like L1 itself and share its tables.
pub(super) fn fill(memory: &mut Memory, l1: &kvm_sregs) -> Result<(), Error> {
    memory.load(HYPERVISOR as usize, code())?;
    memory.load(VMCB as usize, &control_block(l1, payload::turns()))?;
    // L1 never lets it advance beyond its hypercall.
    memory.load(EXITING_VMCB as usize, &control_block(l1, privileged::call_alone(privileged::amd_call())))
}

/// A VMCB of a guest that goes on at `rip`.
fn control_block(l1: &kvm_sregs, rip: u64) -> Vec<u8> {
    const CPUID: u32 = 1 << 18;
    const MSR: u32 = 1 << 28;
    const SHUTDOWN: u32 = 1 << 31;
    const VMRUN: u32 = 1;
    const VMMCALL: u32 = 1 << 1;
    const SAVE: usize = 0x400;
    let mut block = vec![0; 0x1000];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x0c, &(CPUID | MSR | SHUTDOWN).to_le_bytes());
    put(0x10, &(VMRUN | VMMCALL).to_le_bytes());
    put(0x48, &NO_MSRS.to_le_bytes());
    put(0x58, &1_u32.to_le_bytes()); // ASID
    let segments = [&l1.es, &l1.cs, &l1.ss, &l1.ds, &l1.fs, &l1.gs];
    for (at, segment) in (SAVE..).step_by(0x10).zip(segments) {
        put(at, &described(segment));
    }
    put(SAVE + 0x68, &l1.gdt.base.to_le_bytes());
    put(SAVE + 0x64, &u32::from(l1.gdt.limit).to_le_bytes());
    put(SAVE + 0x70, &described(&kvm_segment { type_: 2, present: 1, ..Default::default() })); // LDTR
    put(SAVE + 0x84, &u32::from(l1.idt.limit).to_le_bytes());
    put(SAVE + 0x88, &l1.idt.base.to_le_bytes());
    put(SAVE + 0x90, &described(&l1.tr));
    let registers = [
        (0xd0, l1.efer),
        (0x148, l1.cr4),
        (0x150, l1.cr3),
        (0x158, l1.cr0),
        (0x160, 0x400),       // DR7
        (0x168, 0xffff_0ff0), // DR6
        (0x170, 2),           // RFLAGS
        (0x178, rip),
        (0x1d8, STACK),
        (0x268, 0x0007_0406_0007_0406), // PAT
    ];
    for (at, value) in registers {
        put(SAVE + at, &value.to_le_bytes());
    }
    block
}

/// A segment as the VMCB has it: selector, attributes, limit, base.
fn described(segment: &kvm_segment) -> [u8; 16] {
    let bit = |value: u8, at: u16| u16::from(value) << at;
    let attributes = bit(segment.type_, 0)
        | bit(segment.s, 4)
        | bit(segment.dpl, 5)
        | bit(segment.present, 7)
        | bit(segment.avl, 8)
        | bit(segment.l, 9)
        | bit(segment.db, 10)
        | bit(segment.g, 11);
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&segment.selector.to_le_bytes());
    bytes[2..4].copy_from_slice(&attributes.to_le_bytes());
    bytes[4..8].copy_from_slice(&segment.limit.to_le_bytes());
    bytes[8..].copy_from_slice(&segment.base.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_flat_and_enters_twice() {
        let vmrun = [0x0f, 0x01, 0xd8];
        assert_eq!(code().windows(3).filter(|bytes| *bytes == vmrun).count(), 2);
        assert!(code().len() < 0x1000);
    }

    #[test]
    fn a_segment_is_packed_as_the_manual_has_it() {
        let code =
            kvm_segment { selector: 8, type_: 11, s: 1, present: 1, l: 1, g: 1, limit: u32::MAX, ..Default::default() };
        assert_eq!(described(&code)[..4], [8, 0, 0x9b, 0x0a]);
    }
}
