//! How long do a CPUID and some additions take on this processor? The least of many: what disturbs only adds.

use host::timing::{ADDITIONS, Timing};
use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

/// Enough to find one that nothing disturbed; some 20 ms where each takes 20,000 cycles.
const TRIES: u32 = 2_000;
/// Additions of one round of the loop.
const ROUND: u64 = 8;

pub(super) fn here() -> Timing {
    let nothing = least(|| {});
    let less = |cycles: u64| cycles.saturating_sub(nothing);
    let cpuid = || {
        // In Rust before 1.94 the intrinsic is unsafe, for processors older than x86-64.
        #[allow(unused_unsafe)]
        // SAFETY: every x86-64 processor has CPUID.
        std::hint::black_box(unsafe { __cpuid(0) });
    };
    Timing { cpuid_cycles: less(least(cpuid)), additions_cycles: less(least(additions)) }
}

/// The fewest cycles that `body` takes, with what reading the counter takes.
fn least(body: impl Fn()) -> u64 {
    let now = || {
        // SAFETY: every x86-64 processor has LFENCE and RDTSC, which touch no memory.
        unsafe { (_mm_lfence(), _rdtsc(), _mm_lfence()).1 }
    };
    let once = |_| {
        let began = now();
        body();
        now().wrapping_sub(began)
    };
    (0..TRIES).map(once).min().unwrap_or_default()
}

/// [`ADDITIONS`] additions, each of which needs the one before. Registers are added, not constants: recent cores carry out
/// several additions of constants in a cycle.
fn additions() {
    // SAFETY: only registers named here are changed.
    unsafe {
        std::arch::asm!(
            "2:",
            "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}",
            "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}",
            "dec {rounds}",
            "jnz 2b",
            sum = inout(reg) 0_u64 => _,
            one = in(reg) 1_u64,
            rounds = inout(reg) ADDITIONS / ROUND => _,
            options(nomem, nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpuid_takes_longer_than_additions_and_those_take_their_cycles() {
        let timing = here();
        assert!(timing.cpuid_cycles > timing.additions_cycles, "{timing:?}");
        // A core may run some times as fast as its counter, or slower.
        assert!((ADDITIONS / 8..ADDITIONS * 100).contains(&timing.additions_cycles), "{timing:?}");
    }
}
