//! How often a limit was exceeded, where exceedances come in bursts.
//!
//! What exceeds a limit once tends to do so again at once, so single exceedances are no independent trials. Those that are
//! closer than 10 ms are one episode, and the bound is on the share of blocks of 10 ms in which an episode begins.

use crate::statistics::proportion::upper_bound;
use base::Span;

/// Exceedances that are closer are one episode; blocks are as long. Longer than a tick of the slowest kernel (CONFIG_HZ=100), so
/// that what each tick does again is one.
pub const BLOCK_NS: u64 = 10_000_000;

/// Episodes, and the blocks of time in which they could have begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Episodes {
    /// Episodes of what certainly exceeded the limit.
    pub low: u64,
    /// Episodes if all that is unknown did.
    pub high: u64,
    /// Blocks, the last one perhaps not whole.
    pub blocks: u64,
    /// Where the limit is one on losses: how much exceeds it.
    pub exceeding: Option<Exceeding>,
}

/// How much exceeds a limit: of all windows, each told by its end, or of all time of a guest, as losses without a break take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeding {
    /// What certainly does.
    pub low_ns: u64,
    /// What does if all that is unknown was lost.
    pub high_ns: u64,
    /// All there is.
    pub all_ns: u64,
}

impl Episodes {
    /// Of exceedances in order, those that are certain and those that are possible, seen in `length_ns`.
    pub(super) fn of(certain: &[Span], possible: &[Span], length_ns: u64) -> Self {
        Self { low: count(certain), high: count(possible), blocks: length_ns.div_ceil(BLOCK_NS), exceeding: None }
    }

    /// The upper bound on the share of blocks in which one begins.
    pub fn bound(self, confidence: f64) -> Option<f64> {
        upper_bound(self.high, self.blocks, confidence)
    }
}

fn count(exceedances: &[Span]) -> u64 {
    let apart = |pair: &&[Span]| pair[1].from_ns.saturating_sub(pair[0].to_ns) >= BLOCK_NS;
    let breaks = exceedances.windows(2).filter(apart).count() as u64;
    breaks + u64::from(!exceedances.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closer_than_ten_milliseconds_is_one_episode() {
        let at = |ms: u64| Span { from_ns: ms * 1_000_000, to_ns: ms * 1_000_000 + 1_000 };
        let just_apart = Span { from_ns: at(30).to_ns + BLOCK_NS, to_ns: at(30).to_ns + BLOCK_NS + 1 };
        for (exceedances, episodes) in [
            (vec![], 0),
            (vec![at(1)], 1),
            (vec![at(1), at(2), at(10), at(19)], 1),
            (vec![at(1), at(12)], 2),
            (vec![at(1), at(2), at(30), just_apart], 3),
        ] {
            assert_eq!(count(&exceedances), episodes, "{exceedances:?}");
        }
    }

    #[test]
    fn the_bound_is_that_of_all_possible_episodes() {
        let span = Span { from_ns: 0, to_ns: 1 };
        let seen = Episodes::of(&[], &[span], 1_199_999_999_999);
        assert_eq!((seen.low, seen.high, seen.blocks), (0, 1, 120_000));
        assert_eq!(seen.bound(0.95), upper_bound(1, 120_000, 0.95));
        assert_eq!(Episodes::of(&[], &[], 0).bound(0.95), None);
    }
}
