//! How does KVM make a guest's counter out of the one below, and what is the way back?
//!
//! ```text
//! below --x ratio--> --(>> frac_bits)--> --(+ offset)--> guest      what the processor does, modulo 2^64
//! below <-(/ ratio)- <-(<< frac_bits)--- <-(- offset)--- guest      what we do: first and last tick that give it
//! ```
//! A guest that counts slower than the host reads one value at several of the host's ticks: hence two.
//! Sources: `kvm_scale_tsc` and `kvm_read_l1_tsc` in arch/x86/kvm/x86.c, Linux 6.12; a ratio of 2^frac_bits is 1.

use base::recording::TscScaling;

/// A ratio with a binary point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scaling {
    ratio: u64,
    frac_bits: u32,
}

impl Scaling {
    /// The guest counts as the machine below does.
    pub const NONE: Self = Self { ratio: 1, frac_bits: 0 };

    /// `None` for what no processor does: a ratio of 0, or no whole part at all.
    pub fn new(told: TscScaling) -> Option<Self> {
        let TscScaling { ratio, frac_bits } = told;
        (ratio > 0 && frac_bits < u64::BITS).then_some(Self { ratio, frac_bits })
    }

    /// Ticks of the guest for each tick below.
    pub fn ratio(self) -> f64 {
        self.ratio as f64 / 2f64.powi(self.frac_bits as i32)
    }

    /// What the guest reads at the tick `below`.
    pub fn guest(self, below: u64, offset: u64) -> u64 {
        let scaled = (u128::from(below) * u128::from(self.ratio)) >> self.frac_bits;
        (scaled as u64).wrapping_add(offset)
    }

    /// The first and the last tick below at which the guest can have read `guest`.
    pub fn below(self, guest: u64, offset: u64) -> (u64, u64) {
        let scaled = guest.wrapping_sub(offset);
        let first = self.first(scaled.into());
        (first, self.first(u128::from(scaled) + 1).saturating_sub(1).max(first))
    }

    /// The scaling of a guest's guest, whose own `upper` is, as KVM rounds it; `None` if the two have other points.
    pub fn under(self, upper: Self) -> Option<Self> {
        match (self.is_one(), upper.is_one()) {
            (_, true) => Some(self),
            (true, _) => Some(upper),
            _ if self.frac_bits != upper.frac_bits => None,
            _ => {
                let ratio = ((u128::from(self.ratio) * u128::from(upper.ratio)) >> self.frac_bits) as u64;
                Self::new(TscScaling { ratio, frac_bits: self.frac_bits })
            }
        }
    }

    /// What an offset of the counter below is after this scaling; KVM rounds its amount down.
    pub(crate) fn of_offset(self, offset: u64) -> u64 {
        let amount = (u128::from((offset as i64).unsigned_abs()) * u128::from(self.ratio)) >> self.frac_bits;
        if (offset as i64) < 0 { (amount as u64).wrapping_neg() } else { amount as u64 }
    }

    fn is_one(self) -> bool {
        u128::from(self.ratio) == 1 << self.frac_bits
    }

    fn first(self, scaled: u128) -> u64 {
        u64::try_from((scaled << self.frac_bits).div_ceil(u128::from(self.ratio))).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_way_back_holds_the_tick_and_no_tick_that_gives_another_value(
            below in 1u64..1 << 56, offset: u64, ratio in 1u64 << 30..1 << 34,
        ) {
            let scaling = Scaling::new(TscScaling { ratio, frac_bits: 32 }).unwrap();
            let guest = scaling.guest(below, offset);
            let (first, last) = scaling.below(guest, offset);
            prop_assert!((first..=last).contains(&below));
            prop_assert_eq!((scaling.guest(first, offset), scaling.guest(last, offset)), (guest, guest));
            prop_assert_ne!(scaling.guest(first - 1, offset), guest);
            prop_assert_ne!(scaling.guest(last + 1, offset), guest);
        }
    }

    #[test]
    fn what_no_processor_does_is_refused() {
        assert_eq!(Scaling::new(TscScaling { ratio: 0, frac_bits: 48 }), None);
        assert_eq!(Scaling::new(TscScaling { ratio: 1, frac_bits: 64 }), None);
        assert_eq!(Scaling::NONE.below(7, u64::MAX), (8, 8), "an offset of -1");
    }
}
