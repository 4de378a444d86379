//! Does a migration end, and if not, what is the least change that ends it?
//!
//! Passes shrink towards the fixed point V = 4,104 W(V / B); where sending that takes longer than the limit, they never end.

use super::memory::PAGE_BYTES;
use super::passes::Setting;
use super::working_set::WorkingSet;

/// Halvings of an interval: enough for all digits of a double.
const HALVINGS: usize = 200;

/// `max-cpu-throttle` as QEMU sets it (DEFAULT_MIGRATE_MAX_CPU_THROTTLE in migration/migration.c, QEMU 7.2).
const MOST_THROTTLE: f64 = 0.99;

/// The largest V with V = 4,104 W(V / B), in seconds of sending: passes come no shorter than that.
pub(crate) fn fixed_point_s(working_set: &WorkingSet, bytes_per_s: f64, throttle: f64) -> f64 {
    let next = |pass_s: f64| PAGE_BYTES * working_set.pages(pass_s * (1.0 - throttle)) / bytes_per_s;
    let most_s = PAGE_BYTES * working_set.most_pages() / bytes_per_s;
    if next(most_s) >= most_s {
        return most_s;
    }
    // W is concave: above the fixed point a pass shortens, below it grows, if there is one above 0.
    let (mut low_s, mut high_s) = (0.0, most_s);
    for _ in 0..HALVINGS {
        let mid_s = 0.5 * (low_s + high_s);
        if next(mid_s) >= mid_s { low_s = mid_s } else { high_s = mid_s }
    }
    if high_s < most_s * 1e-12 { 0.0 } else { low_s }
}

/// The least change of one thing alone that ends a migration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaysOut {
    /// A limit of downtime so long.
    pub limit_s: f64,
    /// So much sent in a second.
    pub bytes_per_s: f64,
    /// So much of the guest's time taken from it, 0 to 1; `None` if all that QEMU takes is not enough.
    pub throttle: Option<f64>,
}

impl WaysOut {
    /// `None` if it ends as it is.
    pub fn of(setting: &Setting) -> Option<Self> {
        let Setting { working_set, bytes_per_s, limit_s, throttle, .. } = setting;
        let stalls = |bytes_per_s: f64, throttle: f64| fixed_point_s(working_set, bytes_per_s, throttle) > *limit_s;
        if !stalls(*bytes_per_s, *throttle) {
            return None;
        }
        let mut enough = *bytes_per_s;
        while stalls(enough, *throttle) {
            enough *= 2.0;
        }
        let bandwidth = least(*bytes_per_s, enough, |bytes_per_s| !stalls(bytes_per_s, *throttle));
        let can = !stalls(*bytes_per_s, MOST_THROTTLE);
        let least_throttle = can.then(|| least(*throttle, MOST_THROTTLE, |throttle| !stalls(*bytes_per_s, throttle)));
        Some(Self {
            limit_s: fixed_point_s(working_set, *bytes_per_s, *throttle),
            bytes_per_s: bandwidth,
            throttle: least_throttle,
        })
    }
}

/// The least between `low`, at which it does not hold, and `high`, at which it does.
fn least(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let mid = 0.5 * (low + high);
        if holds(mid) { high = mid } else { low = mid }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::super::passes::tests::bed;
    use super::super::working_set::Hot;
    use super::*;

    #[test]
    fn published_limits_hold_to_the_last_digit() {
        let tenths_ms = |setting: &Setting| WaysOut::of(setting).map(|ways| (ways.limit_s * 1e4).round() / 10.0);
        assert_eq!(tenths_ms(&bed(WorkingSet::Cyclic, 60_000.0)), Some(336.2));
        assert_eq!(tenths_ms(&bed(WorkingSet::Cyclic, 46_000.0)), None);
        assert_eq!(tenths_ms(&bed(WorkingSet::Uniform, 60_000.0)), Some(117.8));
        assert_eq!(tenths_ms(&bed(WorkingSet::Uniform, 200_000.0)), Some(330.2));
        assert_eq!(tenths_ms(&bed(WorkingSet::Uniform, 40_000.0)), None);
    }

    #[test]
    fn throttling_a_guest_whose_working_set_is_dirty_anyway_changes_nothing_until_it_changes_all() {
        let setting = bed(WorkingSet::Cyclic, 400_000.0);
        let at = |throttle| fixed_point_s(&setting.working_set, 200e6, throttle);
        assert_eq!([0.2, 0.5, 0.8].map(|throttle| (at(throttle) * 1e4).round()), [3_362.0; 3]);
        assert_eq!(at(0.9), 0.0);
        let ways = WaysOut::of(&setting).unwrap();
        let enough = 1.0 - setting.bytes_per_s / PAGE_BYTES / 400_000.0;
        assert!((ways.throttle.unwrap() - enough).abs() < 1e-9, "{ways:?}");
    }

    #[test]
    fn each_way_out_is_one_and_a_little_less_is_none() {
        for working_set in [WorkingSet::Cyclic as fn(Hot) -> WorkingSet, WorkingSet::Uniform] {
            let stalled = bed(working_set, 200_000.0);
            let ways = WaysOut::of(&stalled).unwrap();
            let ends = |setting: &Setting| WaysOut::of(setting).is_none();
            let with_limit = |times: f64| Setting { limit_s: ways.limit_s * times, ..stalled.clone() };
            let with_bandwidth = |times: f64| Setting { bytes_per_s: ways.bytes_per_s * times, ..stalled.clone() };
            let throttle = ways.throttle.unwrap();
            let with_throttle = |times: f64| Setting { throttle: throttle * times, ..stalled.clone() };
            assert_eq!([ends(&with_limit(1.001)), ends(&with_limit(0.999))], [true, false]);
            assert_eq!([ends(&with_bandwidth(1.001)), ends(&with_bandwidth(0.999))], [true, false]);
            assert_eq!([ends(&with_throttle(1.001)), ends(&with_throttle(0.999))], [true, false]);
        }
    }
}
