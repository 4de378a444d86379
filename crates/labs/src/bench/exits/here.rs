//! The same code in this process: what an instruction costs at the level where the bench itself runs.
//!
//! The kernel of this level is not left for CPUID, so what is between this process and the processor are only the
//! hypervisors below: that is how the seed of this bench, a CPUID loop on bare metal, at L1 and at L2, was measured.

use super::machine::Turn;
use super::payload;
use crate::bench::sizing::Run;

/// Those of the guest's tests that can be measured here too.
pub(crate) const NAMES: &[&str] = &["empty", "rdtsc", "rdtscp", "cpuid", "syscall"];

/// Runs `operations` of the body at that address of the payload, `samples` times.
pub(crate) fn run(body: u64, run: Run) -> Vec<u64> {
    let Run { samples, operations } = run;
    go(&Turn { entry: payload::begin(), body, samples, operations, ..Turn::default() }, samples as usize)
}

/// Runs the loop that looks for gaps, as `turn` says; the readings around each of them, with zeros behind the last.
pub(crate) fn gaps(turn: &Turn) -> Vec<u64> {
    go(&Turn { entry: payload::gaps(), ..*turn }, 2 * turn.samples as usize)
}

/// Lets this thread do `turn`, which notes `words` numbers at most.
fn go(turn: &Turn, words: usize) -> Vec<u64> {
    let mut noted = vec![0_u64; words];
    // The payload's addresses are those in a guest; here it lies where the program does.
    let code = payload::code().as_ptr() as u64;
    let here = |address: u64| code + (address.max(payload::begin()) - payload::begin());
    // SAFETY: the payload is a function of this program. It writes `words` numbers from r14 on, which have room, and
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
            inout("rdi") here(turn.entry) => _,
            inout("rsi") here(turn.body) => _,
            inout("r9") here(payload::end_here()) => _,
            inout("r12") turn.samples => _,
            inout("r13") turn.operations => _,
            inout("r14") noted.as_mut_ptr() => _,
            inout("r15") turn.r15 => _,
            clobber_abi("C"),
        );
    }
    noted
}
