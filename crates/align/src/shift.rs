//! A guest's clock from the samples that trace-cmd wrote into the guest's own file (option TIME_SHIFT).
//!
//! trace-cmd's agents sample, per vCPU, what must be added to the guest's time: the offset, negated, and the ratio of TSC
//! scaling with its fraction bits, 1 meaning none. Times of samples are the guest's (lib/trace-cmd/trace-timesync.c,
//! trace-cmd 3.1.6). KVM scales first and adds then, guest = (host x ratio >> bits) + offset, so the way back divides:
//! host = ((guest + sample) << bits) / ratio. What happened between two samples is not known; they bound it.

use super::scaling::Scaling;
use base::recording::TscScaling;
use trace::facts::TimeShift;

/// Samples of one CPU: the guest's time, what to add, the ratio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    samples: Vec<(u64, i64, u64)>,
    bits: u64,
}

impl Shift {
    /// The samples of the guest's CPU `cpu`; files of guests with one clock have one list for all CPUs.
    pub fn of(shift: &TimeShift, cpu: u32) -> Option<Self> {
        let place = if shift.samples.len() == 1 { 0 } else { cpu as usize };
        let mut samples = shift.samples.get(place)?.clone();
        samples.sort_unstable();
        let bits = shift.fraction_bits.get(place).copied().unwrap_or(0).min(63);
        (!samples.is_empty()).then_some(Self { samples, bits })
    }

    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Never true: a list without samples is none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The earliest and the latest time below at the guest's time `at`, by the samples around it.
    pub fn at(&self, at: u64) -> (u64, u64) {
        let next = self.samples.partition_point(|(time, ..)| *time <= at);
        let last = self.samples.len() - 1;
        let [one, other] = [next.saturating_sub(1), next.min(last)].map(|place| self.back(at, &self.samples[place]));
        (one.0.min(other.0), one.1.max(other.1))
    }

    fn back(&self, at: u64, (_, add, ratio): &(u64, i64, u64)) -> (u64, u64) {
        self.scaling(*ratio).below(at, add.wrapping_neg() as u64)
    }

    fn scaling(&self, ratio: u64) -> Scaling {
        let told = TscScaling { ratio, frac_bits: self.bits as u32 };
        Some(told).filter(|told| told.ratio > 1 && told.frac_bits > 0).and_then(Scaling::new).unwrap_or(Scaling::NONE)
    }

    /// Ticks of the guest for each tick below, by the first sample.
    pub fn ratio(&self) -> f64 {
        self.samples.first().map_or(1.0, |(.., ratio)| self.scaling(*ratio).ratio())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(samples: &[(u64, i64, u64)], bits: u64) -> Shift {
        let facts = TimeShift { peer: 1, flags: 0, samples: vec![samples.to_vec()], fraction_bits: vec![bits] };
        Shift::of(&facts, 3).unwrap()
    }

    #[test]
    fn a_scaled_guest_is_divided_back() {
        // Guest = host x 1.5 + 100; the file holds -100 as what KVM added, negated.
        let shift = shift(&[(0, -100, 3 << 31)], 32);
        assert_eq!((shift.at(1_600), shift.ratio()), ((1_000, 1_000), 1.5));
    }

    #[test]
    fn between_two_samples_either_may_hold() {
        let shift = shift(&[(100, 50, 1), (200, 58, 1)], 0);
        assert_eq!(shift.at(150), (200, 208));
        assert_eq!((shift.at(10), shift.at(300)), ((60, 60), (358, 358)));
    }
}
