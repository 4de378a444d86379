//! Bodies that need ring 0, and the guest's interrupt handler.
//!
//! ```text
//! rdi  back to the measuring loop     r15, rbx  an MSR and its value, or an address
//! INTERRUPTED: 1 once the handler ran;  INTERRUPTS: how often it did, the witness of tests that wait for one
//! ```
//! Names and work are those of kvm-unit-tests' `vmexit`: `toggle_*` and `wr_ibrs_msr` are two writes, self-IPIs include
//! delivery and end of interrupt. Registers of the x2APIC: Intel SDM volume 3, table 11-6.

use super::layout::{INTERRUPTED, INTERRUPTS, PRIVILEGED, TOKEN};
use crate::machine_code::{code, guest_addresses};

std::arch::global_asm!(
    ".pushsection .rodata.kvmscope_bench_privileged, \"a\", @progbits",
    ".globl kvmscope_privileged, kvmscope_privileged_end",
    ".hidden kvmscope_privileged, kvmscope_privileged_end",
    "kvmscope_privileged:",
    ".macro privileged name",
    "    .globl kvmscope_privileged_\\name",
    "    .hidden kvmscope_privileged_\\name",
    "    .balign 16",
    "kvmscope_privileged_\\name:",
    ".endm",
    "privileged interrupt",
    "    push rax",
    "    push rcx",
    "    push rdx",
    "    mov dword ptr [{interrupted}], 1",
    "    inc qword ptr [{interrupts}]",
    "    mov ecx, 0x80b", // end of interrupt
    "    xor eax, eax",
    "    xor edx, edx",
    "    wrmsr",
    "    pop rdx",
    "    pop rcx",
    "    pop rax",
    "    iretq",
    "privileged vmcall",
    "    mov eax, 0xff", // a number that no hypervisor knows
    "    vmcall",
    "    jmp rdi",
    "privileged vmmcall",
    "    mov eax, 0xff",
    "    vmmcall",
    "    jmp rdi",
    "privileged rdmsr",
    "    mov ecx, r15d",
    "    rdmsr",
    "    jmp rdi",
    "privileged wrmsr",
    "    mov ecx, r15d",
    "    mov eax, ebx",
    "    xor edx, edx",
    "    wrmsr",
    "    jmp rdi",
    "privileged wrmsr_twice",
    "    mov ecx, r15d",
    "    mov eax, ebx",
    "    xor edx, edx",
    "    wrmsr",
    "    xor eax, eax",
    "    wrmsr",
    "    jmp rdi",
    // A timer that is due rbx ticks from now; waits for it awake.
    "privileged deadline",
    "    mov dword ptr [{interrupted}], 0",
    "    rdtsc",
    "    shl rdx, 32",
    "    or rax, rdx",
    "    add rax, rbx",
    "    mov rdx, rax",
    "    shr rdx, 32",
    "    mov ecx, 0x6e0", // IA32_TSC_DEADLINE
    "    wrmsr",
    "    sti",
    "2:  cmp dword ptr [{interrupted}], 0",
    "    je 2b",
    "    cli",
    "    jmp rdi",
    // The same, asleep.
    "privileged deadline_hlt",
    "    mov dword ptr [{interrupted}], 0",
    "    rdtsc",
    "    shl rdx, 32",
    "    or rax, rdx",
    "    add rax, rbx",
    "    mov rdx, rax",
    "    shr rdx, 32",
    "    mov ecx, 0x6e0",
    "    wrmsr",
    "2:  sti",
    "    hlt",
    "    cli",
    "    cmp dword ptr [{interrupted}], 0",
    "    je 2b",
    "    jmp rdi",
    // An interrupt to itself, by MSR r15 with value rbx.
    ".macro self_ipi",
    "    mov ecx, r15d",
    "    mov eax, ebx",
    "    xor edx, edx",
    "    wrmsr",
    ".endm",
    ".macro block",
    "    mov eax, 0xf",
    "    mov cr8, rax",
    ".endm",
    ".macro allow",
    "    xor eax, eax",
    "    mov cr8, rax",
    ".endm",
    "privileged ipi_sti_nop",
    "    self_ipi",
    "    sti",
    "    nop",
    "    cli",
    "    jmp rdi",
    "privileged ipi_sti_hlt",
    "    self_ipi",
    "    sti",
    "    hlt",
    "    cli",
    "    jmp rdi",
    "privileged ipi_tpr",
    "    sti",
    "    block",
    "    self_ipi",
    "    allow",
    "    nop",
    "    cli",
    "    jmp rdi",
    "privileged ipi_tpr_sti_nop",
    "    block",
    "    self_ipi",
    "    allow",
    "    sti",
    "    nop",
    "    cli",
    "    jmp rdi",
    "privileged ipi_tpr_sti_hlt",
    "    block",
    "    self_ipi",
    "    allow",
    "    sti",
    "    hlt",
    "    cli",
    "    jmp rdi",
    "privileged from_cr8",
    "    mov rax, cr8",
    "    jmp rdi",
    "privileged to_cr8",
    "    xor eax, eax",
    "    mov cr8, rax",
    "    jmp rdi",
    "privileged dr",
    "    mov rax, dr7",
    "    mov dr7, rax",
    "    jmp rdi",
    "privileged cr0_wp",
    "    mov rax, cr0",
    "    xor rax, 0x10000",
    "    mov cr0, rax",
    "    xor rax, 0x10000",
    "    mov cr0, rax",
    "    jmp rdi",
    "privileged cr4_pge",
    "    mov rax, cr4",
    "    xor rax, 0x80",
    "    mov cr4, rax",
    "    xor rax, 0x80",
    "    mov cr4, rax",
    "    jmp rdi",
    "privileged cr3",
    "    mov rax, cr3",
    "    mov cr3, rax",
    "    jmp rdi",
    "privileged invlpg",
    "    invlpg [r15]",
    "    jmp rdi",
    "privileged wbinvd",
    "    wbinvd",
    "    jmp rdi",
    "privileged invd",
    "    invd",
    "    jmp rdi",
    "privileged pauses",
    "    mov ecx, 10000",
    "2:  pause",
    "    dec ecx",
    "    jnz 2b",
    "    jmp rdi",
    "privileged rdpmc",
    "    xor ecx, ecx",
    "    rdpmc",
    "    jmp rdi",
    "privileged xsetbv",
    "    xor ecx, ecx",
    "    xgetbv",
    "    xsetbv",
    "    jmp rdi",
    // Two vCPUs. The first interrupts the second, whose APIC has number 1, and waits until that has heard.
    "privileged ipi_other",
    "    mov dword ptr [{interrupted}], 0",
    "    mov ecx, 0x830",
    "    mov eax, ebx",
    "    mov edx, 1",
    "    wrmsr",
    "2:  pause",
    "    cmp dword ptr [{interrupted}], 0",
    "    je 2b",
    "    jmp rdi",
    "privileged awake",
    "    sti",
    "2:  pause",
    "    jmp 2b",
    "privileged asleep",
    "2:  sti",
    "    hlt",
    "    jmp 2b",
    "privileged hand_over",
    "    mov dword ptr [{token}], 1",
    "2:  pause",
    "    cmp dword ptr [{token}], 0",
    "    jne 2b",
    "    jmp rdi",
    "privileged hand_back",
    "2:  pause",
    "    cmp dword ptr [{token}], 1",
    "    jne 2b",
    "    mov dword ptr [{token}], 0",
    "    jmp 2b",
    "privileged count",
    "    lock inc dword ptr [{token}]",
    "    jmp rdi",
    "privileged count_beside",
    "2:  lock inc dword ptr [{token} + 8]",
    "    jmp 2b",
    "kvmscope_privileged_end:",
    ".purgem privileged",
    ".purgem self_ipi",
    ".purgem block",
    ".purgem allow",
    ".popsection",
    interrupted = const INTERRUPTED,
    interrupts = const INTERRUPTS,
    token = const TOKEN,
);

guest_addresses! {
    PRIVILEGED, kvmscope_privileged;
    /// The handler of the interrupt that tests wait for.
    interrupt = kvmscope_privileged_interrupt;
    intel_call = kvmscope_privileged_vmcall;
    /// A hypercall of AMD's.
    amd_call = kvmscope_privileged_vmmcall;
    /// Reads MSR r15.
    rdmsr = kvmscope_privileged_rdmsr;
    /// Writes rbx to MSR r15.
    wrmsr = kvmscope_privileged_wrmsr;
    /// Writes rbx and then 0 to MSR r15.
    wrmsr_twice = kvmscope_privileged_wrmsr_twice;
    /// Waits awake for a timer due in rbx ticks.
    deadline = kvmscope_privileged_deadline;
    /// Waits asleep for it.
    deadline_hlt = kvmscope_privileged_deadline_hlt;
    /// Interrupts itself, then allows interrupts.
    ipi_sti_nop = kvmscope_privileged_ipi_sti_nop;
    /// Interrupts itself, then halts.
    ipi_sti_hlt = kvmscope_privileged_ipi_sti_hlt;
    /// Interrupts itself below its task priority, then lowers that.
    ipi_tpr = kvmscope_privileged_ipi_tpr;
    /// The same with interrupts off, then allows them.
    ipi_tpr_sti_nop = kvmscope_privileged_ipi_tpr_sti_nop;
    /// The same, then halts.
    ipi_tpr_sti_hlt = kvmscope_privileged_ipi_tpr_sti_hlt;
    /// Reads the task priority.
    from_cr8 = kvmscope_privileged_from_cr8;
    to_cr8 = kvmscope_privileged_to_cr8;
    /// Reads and writes a debug register.
    dr = kvmscope_privileged_dr;
    /// Switches write protection off and on.
    cr0_wp = kvmscope_privileged_cr0_wp;
    /// Switches global pages off and on.
    cr4_pge = kvmscope_privileged_cr4_pge;
    /// Writes the page tables' root.
    cr3 = kvmscope_privileged_cr3;
    /// Forgets the translation of r15.
    invlpg = kvmscope_privileged_invlpg;
    /// Writes all caches back and forgets them.
    wbinvd = kvmscope_privileged_wbinvd;
    /// Forgets them without.
    invd = kvmscope_privileged_invd;
    /// Spins 10,000 turns with the hint.
    pauses = kvmscope_privileged_pauses;
    /// Reads a performance counter.
    rdpmc = kvmscope_privileged_rdpmc;
    /// Writes the extended control register as it is.
    xsetbv = kvmscope_privileged_xsetbv;
    /// Interrupts the second vCPU, and waits until it has heard.
    ipi_other = kvmscope_privileged_ipi_other;
    /// The second vCPU, awake.
    awake = kvmscope_privileged_awake;
    /// The second vCPU, asleep between interrupts.
    asleep = kvmscope_privileged_asleep;
    /// Hands a token over, and waits until it is back.
    hand_over = kvmscope_privileged_hand_over;
    /// The second vCPU, which hands it back.
    hand_back = kvmscope_privileged_hand_back;
    /// Counts in a shared cache line.
    count = kvmscope_privileged_count;
    /// The second vCPU, which counts beside it.
    count_beside = kvmscope_privileged_count_beside;
}

/// The hypercall of this processor's maker: the other one is patched or undefined.
pub(super) fn hypercall() -> u64 {
    // In Rust before 1.94 the intrinsic is unsafe, for processors older than x86-64.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has CPUID.
    let vendor = unsafe { std::arch::x86_64::__cpuid(0) }.ebx.to_le_bytes();
    if matches!(&vendor, b"Auth" | b"Hygo") { amd_call() } else { intel_call() }
}

/// Where `call` is without the instruction before it, which puts a number into eax.
pub(crate) fn call_alone(call: u64) -> u64 {
    const MOV_EAX_BYTES: u64 = 5;
    call + MOV_EAX_BYTES
}

/// The whole code, which may lie anywhere in the first 4 GiB.
pub(super) fn code() -> &'static [u8] {
    code!(kvmscope_privileged..kvmscope_privileged_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_flat_and_calls_with_this_processors_instruction() {
        let code = code();
        assert!(code.len() < 0x1000);
        assert!(code[(hypercall() - PRIVILEGED) as usize + 5..].starts_with(&[0x0f, 0x01]));
    }
}
