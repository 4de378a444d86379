//! The same code in this process: what an instruction costs at the level where the bench itself runs.
//!
//! The kernel of this level is not left for CPUID, so what is between this process and the processor are only the
//! hypervisors below: that is how the seed of this bench, a CPUID loop on bare metal, at L1 and at L2, was measured.

use super::payload;
use crate::bench::sizing::Run;

/// Those of the guest's tests that can be measured here too.
pub const NAMES: &[&str] = &["empty", "rdtsc", "rdtscp", "cpuid", "syscall"];

/// Runs `operations` of the body at that address of the payload, `samples` times.
pub fn run(body: u64, run: Run) -> Vec<u64> {
    let mut samples = vec![0_u64; run.samples as usize];
    // The payload's addresses are those in a guest; here it lies where the program does.
    let code = payload::code().as_ptr() as u64;
    let here = |address: u64| code + (address - payload::begin());
    // SAFETY: the payload is a function of this program. It writes `samples` numbers from r14 on, which have room, and
    // changes the registers named here; the bodies of `NAMES` touch no memory, and Linux's system call changes rax, rcx
    // and r11. rbx and rbp, which may not be named, are kept on the stack.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "push rbp",
            "mov rbp, rsi",
            "call rdi",
            "pop rbp",
            "pop rbx",
            inout("rdi") code => _,
            inout("rsi") here(body) => _,
            inout("r9") here(payload::end_here()) => _,
            inout("r12") run.samples => _,
            inout("r13") run.operations => _,
            inout("r14") samples.as_mut_ptr() => _,
            out("r15") _,
            clobber_abi("C"),
        );
    }
    samples
}
