//! Which clock do events get, and how long is its tick?
//!
//! `x86-tsc` is the raw time-stamp counter: the one clock whose relation to a guest's KVM knows exactly. It counts cycles, so
//! it is read together with CLOCK_MONOTONIC at the start and at the end:
//! ```text
//! tsc --- clock_gettime --- tsc     the narrowest of many tries; its width bounds the error of the pair
//!        [ pair at start ] ............ recording ............ [ pair at end ]   ns = ticks x mult >> shift
//! ```
//! Sources: `trace_clocks` in kernel/trace/trace.c and `trace_clock_x86_tsc` in arch/x86/kernel/trace_clock.c (Linux
//! 6.12), which is `rdtsc_ordered()`; option TSC2NSEC in trace-cmd.dat.v7(5).

use crate::Error;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

pub(super) const TSC: &str = "x86-tsc";
/// Nanoseconds since boot, the same on all CPUs.
const MONO: &str = "mono";
/// Tries for one pair. An interrupt in one of them makes it wide, and another one is taken.
const TRIES: usize = 64;

/// The counter and CLOCK_MONOTONIC, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Pair {
    /// The counter, in the middle between the two readings.
    pub ticks: u64,
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// Ticks between the readings before and after.
    pub(crate) width_ticks: u64,
}

/// Nanoseconds on the axis of CLOCK_MONOTONIC = (ticks x `mult` >> `shift`) + `offset_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Scale {
    pub mult: u32,
    pub shift: u32,
    pub offset_ns: i64,
}

/// What ties the counter to CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Calibration {
    pub clock: &'static str,
    /// The clock it is tied to.
    pub to: &'static str,
    /// The line through both pairs.
    pub scale: Scale,
    /// At the start and at the end.
    pub pairs: [Pair; 2],
}

/// The clock to use, out of the text of `trace_clock`.
///
/// # Errors
/// If the kernel lacks the one that was asked for.
pub(super) fn choose(available: &str, asked: Option<&str>) -> Result<String, Error> {
    let names: Vec<&str> = available.split_whitespace().map(|name| name.trim_matches(['[', ']'])).collect();
    match asked {
        Some(name) if names.contains(&name) => Ok(name.to_owned()),
        Some(name) => {
            Err(Error::WrongUse(format!("this kernel has no trace clock `{name}`; it has {}", names.join(", "))))
        }
        None if names.contains(&TSC) => Ok(TSC.to_owned()),
        None => Ok(MONO.to_owned()),
    }
}

/// Reads both clocks now.
pub(super) fn pair() -> Pair {
    let mut best = Pair { ticks: 0, monotonic_ns: 0, width_ticks: u64::MAX };
    for _ in 0..TRIES {
        let before = ticks();
        let now = clock_gettime(ClockId::Monotonic);
        let width_ticks = ticks().wrapping_sub(before);
        if width_ticks < best.width_ticks {
            let monotonic_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
            best = Pair { ticks: before.wrapping_add(width_ticks / 2), monotonic_ns, width_ticks };
        }
    }
    best
}

/// Ties the counter to CLOCK_MONOTONIC by two pairs; `None` if no time passed between them.
pub(super) fn calibrate(first: Pair, last: Pair) -> Option<Calibration> {
    let scale = scale(first, last)?;
    Some(Calibration { clock: TSC, to: "CLOCK_MONOTONIC", scale, pairs: [first, last] })
}

fn scale(first: Pair, last: Pair) -> Option<Scale> {
    let ticks = last.ticks.checked_sub(first.ticks).filter(|ticks| *ticks > 0)?;
    let ns = last.monotonic_ns.checked_sub(first.monotonic_ns).filter(|ns| *ns > 0)?;
    // trace-cmd multiplies 32 x 32 bits at a time, which allows a shift of 32 at most, and keeps `mult` in an int.
    let fits = |shift: &u32| (u128::from(ns) << shift) / u128::from(ticks) <= i32::MAX as u128;
    let shift = (0..=32).rev().find(fits)?;
    let mult = u32::try_from((u128::from(ns) << shift) / u128::from(ticks)).ok()?;
    let scaled = i64::try_from((u128::from(first.ticks) * u128::from(mult)) >> shift).ok()?;
    Some(Scale { mult, shift, offset_ns: i64::try_from(first.monotonic_ns).ok()? - scaled })
}

/// The counter; machines without it have no trace clock `x86-tsc` either, so nothing asks for its scale.
fn ticks() -> u64 {
    tsc().unwrap_or(0)
}

/// The time-stamp counter now.
#[cfg(target_arch = "x86_64")]
pub fn tsc() -> Option<u64> {
    // SAFETY: both instructions exist on every x86-64 CPU and touch no memory. Linux leaves RDTSC to user space unless a
    // process gives it up by PR_SET_TSC, which we do not.
    Some(unsafe {
        std::arch::x86_64::_mm_lfence();
        std::arch::x86_64::_rdtsc()
    })
}

/// Machines of other kinds have none.
#[cfg(not(target_arch = "x86_64"))]
pub fn tsc() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_taken_where_the_kernel_has_it() {
        let text = "[local] global counter uptime perf mono mono_raw boot tai x86-tsc\n";
        assert_eq!(choose(text, None).unwrap(), "x86-tsc");
        assert_eq!(choose("[local] global mono\n", None).unwrap(), "mono");
        assert_eq!(choose(text, Some("local")).unwrap(), "local", "brackets mark the one in use");
        assert!(choose(text, Some("tsc")).unwrap_err().to_string().contains("x86-tsc"));
    }

    #[test]
    fn both_pairs_lie_on_the_scale_and_a_slow_counter_fits_too() {
        for hz in [24_000_000u128, 400_000_000, 1_000_000_000, 1_900_000_000, 2_250_000_000, 5_000_000_000] {
            let at = |seconds: u128| Pair {
                ticks: (seconds * hz) as u64,
                monotonic_ns: (seconds * 1_000_000_000) as u64 + 77,
                width_ticks: 0,
            };
            let scale = scale(at(1_000), at(1_010)).unwrap();
            assert!(scale.shift <= 32 && i32::try_from(scale.mult).is_ok(), "{hz} Hz: {scale:?}");
            let last = at(1_010);
            let ns = ((u128::from(last.ticks) * u128::from(scale.mult)) >> scale.shift) as i64 + scale.offset_ns;
            assert!((ns - last.monotonic_ns as i64).abs() < 500, "{hz} Hz: {ns}");
        }
        let pair = Pair { ticks: 5, monotonic_ns: 5, width_ticks: 0 };
        assert_eq!(scale(pair, pair), None);
    }
}
