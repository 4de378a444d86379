//! The code of the bench's guest: a measuring loop, the bodies that it measures, and what catches faults.
//!
//! ```text
//! rbp body   r12 samples left   r13 operations in a sample   r14 where the next sample goes   r15, rbx for the body
//! r9  what to do at the end: tell the VMM, in a guest; return, in this process
//!
//! sample:  r10 = r13; fence, TSC -> r8, fence;  again: jmp body ... jmp back; r10 -= 1, jnz again;  TSC - r8 -> [r14]
//! ```
//! Position independent, 64 bit, the same at ring 3 and ring 0. LFENCE before RDTSC waits for what came before, the one
//! after it holds back what comes; RDTSCP waits by itself (Intel SDM volume 2, RDTSC and RDTSCP).

use super::layout::CODE;
use crate::machine_code::{code, guest_addresses};

std::arch::global_asm!(
    ".pushsection .text.kvmscope_bench, \"ax\", @progbits",
    ".globl kvmscope_bench_code, kvmscope_bench_touch, kvmscope_bench_turns, kvmscope_bench_end, \
     kvmscope_bench_end_guest, kvmscope_bench_end_here, kvmscope_bench_back",
    ".hidden kvmscope_bench_code, kvmscope_bench_touch, kvmscope_bench_turns, kvmscope_bench_end, \
     kvmscope_bench_end_guest, kvmscope_bench_end_here, kvmscope_bench_back",
    "kvmscope_bench_code:",
    "6:  mov r10, r13",
    "    lfence",
    "    rdtsc",
    "    shl rdx, 32",
    "    or rax, rdx",
    "    mov r8, rax",
    "    lfence",
    "2:  jmp rbp",
    "kvmscope_bench_back:",
    "3:  dec r10",
    "    jnz 2b",
    "    rdtscp",
    "    lfence",
    "    shl rdx, 32",
    "    or rax, rdx",
    "    sub rax, r8",
    "    mov [r14], rax",
    "    add r14, 8",
    "    dec r12",
    "    jnz 6b",
    "    jmp r9",
    // Ends: of a run in a guest, of one in this process.
    "kvmscope_bench_end_guest:",
    "    out 0xf4, al",
    "4:  jmp 4b",
    "kvmscope_bench_end_here:",
    "    ret",
    // Writes to r12 pages from r14 on, so that the first write to them is not measured.
    "kvmscope_bench_touch:",
    "    mov qword ptr [r14], 0",
    "    add r14, 4096",
    "    dec r12",
    "    jnz kvmscope_bench_touch",
    "    jmp r9",
    // r12 turns of nothing, without an instruction that an emulator might lack.
    "kvmscope_bench_turns:",
    "    dec r12",
    "    jnz kvmscope_bench_turns",
    "    jmp r9",
    // Bodies. Each begins at a label and ends with a jump back.
    ".macro body name",
    "    .globl kvmscope_body_\\name",
    "    .hidden kvmscope_body_\\name",
    "    .balign 16",
    "kvmscope_body_\\name:",
    ".endm",
    "body empty",
    "    jmp 3b",
    "body spin",
    "5:  jmp 5b",
    "body rdtsc",
    "    rdtsc",
    "    jmp 3b",
    "body rdtscp",
    "    rdtscp",
    "    jmp 3b",
    "body cpuid",
    "    xor eax, eax",
    "    xor ecx, ecx",
    "    cpuid",
    "    jmp 3b",
    "body in8",
    "    mov edx, r15d",
    "    in al, dx",
    "    jmp 3b",
    "body in32",
    "    mov edx, r15d",
    "    in eax, dx",
    "    jmp 3b",
    "body out8",
    "    mov edx, r15d",
    "    xor eax, eax",
    "    out dx, al",
    "    jmp 3b",
    "body store8",
    "    xor eax, eax",
    "    mov [r15], al",
    "    jmp 3b",
    "body load32",
    "    mov eax, [r15]",
    "    jmp 3b",
    // Touches where r15 is and goes on by rbx.
    "body touch",
    "    mov [r15], al",
    "    add r15, rbx",
    "    jmp 3b",
    "body ud2",
    "    ud2",
    "    jmp 3b",
    "body syscall",
    "    mov eax, 39", // getpid, where Linux answers
    "    syscall",
    "    jmp 3b",
    "body pause",
    "    pause",
    "    jmp 3b",
    "body fpu",
    "    fld1",
    "    fstp st(0)",
    "    pxor xmm0, xmm0",
    "    jmp 3b",
    "body avx",
    "    vpxor ymm0, ymm0, ymm0",
    "    jmp 3b",
    // What runs at ring 0 for ring 3: behind UD2, and behind SYSCALL.
    "body skip_ud2",
    "    push rax",
    "    mov rax, [rsp + 8]",
    "    cmp word ptr [rax], 0x0b0f", // any other instruction is missing here
    "    pop rax",
    "    jne 7f",
    "    add qword ptr [rsp], 2",
    "    iretq",
    "7:  mov al, 6",
    "    out 0xf5, al",
    "    jmp 7b",
    "body system_call",
    "    sysretq",
    // Reads the counter again and again until it is r15, and notes at r14 each pair of readings that are r13 or more apart,
    // r12 of them at most. One aligned store for each reading: whoever reads along never sees half of one.
    "body gaps",
    "    rdtsc",
    "    shl rdx, 32",
    "    or rax, rdx",
    "8:  mov r8, rax",
    "    rdtsc",
    "    shl rdx, 32",
    "    or rax, rdx",
    "    cmp rax, r15",
    "    jae 9f",
    "    mov rcx, rax",
    "    sub rcx, r8",
    "    cmp rcx, r13",
    "    jb 8b",
    "    mov [r14], r8",
    "    mov [r14 + 8], rax",
    "    add r14, 16",
    "    dec r12",
    "    jnz 8b",
    "9:  jmp r9",
    "kvmscope_bench_end:",
    ".purgem body",
    ".popsection",
);

guest_addresses! {
    CODE, kvmscope_bench_code;
    /// Where the measuring loop begins.
    begin = kvmscope_bench_code;
    /// Where a body returns to.
    back = kvmscope_bench_back;
    /// Where a run begins that writes to pages.
    touch_pages = kvmscope_bench_touch;
    /// Where one begins that turns and does nothing.
    turns = kvmscope_bench_turns;
    end_guest = kvmscope_bench_end_guest;
    /// The end of a run in this process.
    end_here = kvmscope_bench_end_here;
    empty = kvmscope_body_empty;
    spin = kvmscope_body_spin;
    rdtsc = kvmscope_body_rdtsc;
    /// Reads the counter and the CPU's number.
    rdtscp = kvmscope_body_rdtscp;
    /// Asks the CPU what it is.
    cpuid = kvmscope_body_cpuid;
    /// Reads a byte from port r15.
    in8 = kvmscope_body_in8;
    /// Reads four bytes from port r15.
    in32 = kvmscope_body_in32;
    /// Writes a byte to port r15.
    out8 = kvmscope_body_out8;
    /// Writes a byte to address r15.
    store8 = kvmscope_body_store8;
    /// Reads four bytes from address r15.
    load32 = kvmscope_body_load32;
    /// Writes a byte to address r15, which grows by rbx.
    touch = kvmscope_body_touch;
    /// An undefined instruction, which the guest's ring 0 skips.
    ud2 = kvmscope_body_ud2;
    /// A system call, which the guest's ring 0 answers at once.
    syscall = kvmscope_body_syscall;
    /// A spinning loop's hint.
    pause = kvmscope_body_pause;
    /// Uses the x87 and the SSE unit.
    fpu = kvmscope_body_fpu;
    /// Uses an AVX register.
    avx = kvmscope_body_avx;
    /// Ring 0 behind [`ud2`].
    skip_ud2 = kvmscope_body_skip_ud2;
    /// Ring 0 behind [`syscall`].
    system_call = kvmscope_body_system_call;
    /// Where a run begins that looks for gaps in its own time.
    gaps = kvmscope_body_gaps;
}

/// The whole code, which may lie anywhere.
pub(crate) fn code() -> &'static [u8] {
    code!(kvmscope_bench_code..kvmscope_bench_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_lies_inside_and_begins_with_its_instruction() {
        let code = code();
        for (place, bytes) in [
            (rdtsc(), &[0x0f, 0x31][..]),
            (rdtscp(), &[0x0f, 0x01, 0xf9]),
            (ud2(), &[0x0f, 0x0b]),
            (syscall(), &[0xb8, 39, 0, 0, 0, 0x0f, 0x05]),
            (pause(), &[0xf3, 0x90]),
            (avx(), &[0xc5, 0xfd, 0xef, 0xc0]),
            (spin(), &[0xeb, 0xfe]),
        ] {
            assert!(code[(place - CODE) as usize..].starts_with(bytes), "{place:#x}: {code:x?}");
        }
        assert!(code.len() < 0x1000);
    }
}
