//! When did it happen, and in which unit is that said?
//!
//! Every trace counts in the ticks of its own clock. A [`Clock`] turns them into nanoseconds, once, where a record is
//! decoded; from then on a time is a `u64` of nanoseconds and its name ends in `_ns`.
//!
//! ```text
//! ticks --(x mult, >> shift)--> nanoseconds on the clock's own axis --(- first event)--> printed times
//! ```
//! The product is taken in 128 bits, as the kernel does it in `mul_u64_u32_shr` (include/linux/math64.h, Linux 6.12).

use serde::Serialize;

/// How ticks of one trace clock become nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    /// The clock's name as the trace gives it: `mono`, `local`, `x86-tsc`, `monotonic`.
    pub name: String,
    /// Nanoseconds = ticks x `mult` >> `shift`.
    pub mult: u64,
    /// See `mult`.
    pub shift: u32,
    /// Nanoseconds to add after scaling; CTF traces state an offset to the epoch.
    pub offset_ns: i64,
    /// Where `mult` and `shift` come from.
    pub source: ClockSource,
}

/// Where a clock's scale comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSource {
    /// The trace file states it, or the clock counts nanoseconds by definition.
    File,
    /// A line fitted to event fields that carry `CLOCK_MONOTONIC`.
    Fitted,
    /// Nothing says how long a tick is: one tick is shown as one nanosecond, with a problem.
    None,
}

impl Clock {
    /// A clock that counts nanoseconds.
    pub fn nanoseconds(name: impl Into<String>) -> Self {
        Self { name: name.into(), mult: 1, shift: 0, offset_ns: 0, source: ClockSource::File }
    }

    /// A clock whose tick length nothing tells; ticks pass unchanged.
    pub fn uncalibrated(name: impl Into<String>) -> Self {
        Self { source: ClockSource::None, ..Self::nanoseconds(name) }
    }

    /// A clock of `hz` ticks per second.
    ///
    /// Exact where `hz` divides 10^9, else with a relative error below 2^-32 up to 2^60 Hz: the multiplier is as large as 64
    /// bits allow, so that clocks of other machines can be compared after years.
    pub fn with_frequency(name: impl Into<String>, hz: u64) -> Self {
        const NS_PER_S: u64 = 1_000_000_000;
        let hz = hz.max(1);
        let clock = Self::nanoseconds(name);
        if NS_PER_S.is_multiple_of(hz) {
            return Self { mult: NS_PER_S / hz, ..clock };
        }
        let scaled = |shift: u32| u64::try_from((u128::from(NS_PER_S) << shift) / u128::from(hz)).ok();
        let finest = (0..64).rev().find_map(|shift| Some((scaled(shift)?, shift)));
        finest.map_or(clock.clone(), |(mult, shift)| Self { mult, shift, ..clock })
    }

    /// Nanoseconds on this clock's axis; saturates instead of wrapping, so that order is kept.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        let product = u128::from(ticks) * u128::from(self.mult);
        // Every event passes here: a shift below 64 that loses no upper bits is two instructions.
        let narrow = self.shift & 63;
        let scaled = if self.shift == narrow && ((product >> 64) as u64) >> narrow == 0 {
            (product >> narrow) as u64
        } else {
            u64::try_from(product.checked_shr(self.shift).unwrap_or(0)).unwrap_or(u64::MAX)
        };
        if self.offset_ns == 0 { scaled } else { scaled.saturating_add_signed(self.offset_ns) }
    }

    /// The first tick whose time is `ns` or later: the inverse of [`Clock::ns`].
    pub fn ticks(&self, ns: u64) -> u64 {
        let scaled = u128::from(ns.saturating_add_signed(self.offset_ns.saturating_neg()));
        if self.mult == 0 {
            return 0;
        }
        u64::try_from((scaled << self.shift).div_ceil(u128::from(self.mult))).unwrap_or(u64::MAX)
    }
}

/// A half-open stretch of time, `[from_ns, to_ns)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Span {
    /// First nanosecond inside.
    pub from_ns: u64,
    /// First nanosecond after.
    pub to_ns: u64,
}

impl Span {
    /// Length; 0 for a span whose end lies before its start.
    pub fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_a_tsc_become_nanoseconds_and_back() {
        let tsc = Clock::with_frequency("x86-tsc", 2_250_000_000);
        assert_eq!(tsc.ns(2_250_000_000), 999_999_999, "rounds down, as the kernel does");
        assert!(tsc.ns(tsc.ticks(123_456_789)) >= 123_456_789);
        assert!(tsc.ns(tsc.ticks(123_456_789) - 1) < 123_456_789);
    }

    #[test]
    fn every_frequency_is_converted_with_an_error_below_two_to_the_minus_32() {
        for hz in [3, 7, 32_768, 24_000_000, 2_100_000_123, 2_800_130_166, 4_999_999_999, 1 << 50, (1 << 60) - 1] {
            let clock = Clock::with_frequency("c", hz);
            // Two years of ticks, or as many as there are.
            let ticks = hz.saturating_mul(63_072_000);
            let exact = u128::from(ticks) * 1_000_000_000 / u128::from(hz);
            let error = exact.abs_diff(u128::from(clock.ns(ticks)));
            assert!(error <= 1 + (exact >> 32), "{hz} Hz: {error} ns of {exact}");
        }
        let counters = Clock::with_frequency("double_counters", 2_800_130_166);
        let ticks = 18 * 86_400 * 2_800_130_166;
        assert!(counters.ns(ticks).abs_diff(18 * 86_400 * 1_000_000_000) <= 1);
    }

    #[test]
    fn a_clock_whose_frequency_divides_a_second_is_exact() {
        let us = Clock::with_frequency("us", 1_000_000);
        assert_eq!((us.ns(7), us.ticks(7_000), us.ticks(7_001)), (7_000, 7, 8));
    }
}
