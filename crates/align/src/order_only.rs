//! A guest's clock that wanders: bounds by order alone.
//!
//! Where the host's time-stamp counter is unstable KVM holds a guest's counter while its vCPU is not loaded, and lets it
//! catch up later (kvm_arch_vcpu_load and kvm_guest_time_update in arch/x86/kvm/x86.c, Linux 6.12): no line goes through
//! its times. But the later of two events of one vCPU is the later below as well. So an event came no earlier than any
//! lower bound before it, and no later than any upper bound behind it, whatever the clock did.
//!
//! ```text
//! time |          v    v     upper bounds hold to their left
//! below|   v  ___|^
//!      | ____|^              the truth: it never falls
//!      | ^                   lower bounds hold to their right
//! ```

use super::lines::Bound;

/// The bounds, both lists rising in time on either clock.
#[derive(Debug, Clone, Default)]
pub struct OrderOnly {
    lower: Vec<(u64, u64)>,
    upper: Vec<(u64, u64)>,
}

impl OrderOnly {
    /// The order between bounds sorted by x; `None` if they contradict each other, or if a side has none.
    pub fn between(bounds: &[Bound]) -> Option<Self> {
        let mut order = Self::default();
        for bound in bounds.iter().filter(|bound| bound.is_lower) {
            if order.lower.last().is_none_or(|last| last.1 < bound.y) {
                order.lower.push((bound.x, bound.y));
            }
        }
        for bound in bounds.iter().rev().filter(|bound| !bound.is_lower) {
            if order.upper.last().is_none_or(|last| last.1 > bound.y) {
                order.upper.push((bound.x, bound.y));
            }
        }
        order.upper.reverse();
        let agrees = |bound: &Bound| order.at(bound.x).is_none_or(|(low, high)| low <= high);
        let whole = !order.lower.is_empty() && !order.upper.is_empty();
        (whole && bounds.iter().all(agrees)).then_some(order)
    }

    /// The earliest and the latest time below at `x`; `None` where one side has no bound.
    pub fn at(&self, x: u64) -> Option<(u64, u64)> {
        let low = self.lower.partition_point(|(time, _)| *time <= x).checked_sub(1)?;
        let high = self.upper.get(self.upper.partition_point(|(time, _)| *time < x))?;
        Some((self.lower[low].1, high.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(lower: &[(u64, u64)], upper: &[(u64, u64)]) -> Vec<Bound> {
        let of = |points: &[(u64, u64)], is_lower| -> Vec<Bound> {
            points.iter().map(|(x, y)| Bound { x: *x, y: *y, is_lower }).collect()
        };
        let mut all = of(lower, true);
        all.extend(of(upper, false));
        all.sort_by_key(|bound| bound.x);
        all
    }

    #[test]
    fn bounds_hold_on_their_side() {
        let order = OrderOnly::between(&bounds(&[(10, 5), (20, 4), (30, 9)], &[(12, 8), (22, 7), (32, 12)])).unwrap();
        assert_eq!(order.at(9), None);
        assert_eq!(order.at(11), Some((5, 7)), "a later, smaller upper bound holds before it too");
        assert_eq!(order.at(25), Some((5, 12)));
        assert_eq!(order.at(31), Some((9, 12)));
        assert_eq!(order.at(33), None);
    }

    #[test]
    fn bounds_that_contradict_each_other_give_nothing() {
        assert!(OrderOnly::between(&bounds(&[(10, 50)], &[(12, 60), (20, 40)])).is_none());
    }
}
