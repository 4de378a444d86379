//! The cost model: two measured points per host, and one more level.
//!
//! ```text
//! C2(r) = C1(r) + k(r) * D        D = C2(cpuid) - C1(cpuid)      what nesting adds to one exit
//! C3(r) = C2(r) + R * D           R = C2(cpuid) / C1(cpuid)      one more level
//! CPU   = guest + sum over r of rate(r) * C(r)
//! ```
//! `k` is 1 for exits that L1's kernel finishes: no fitted parameter. It is 4 for those that end in L1's VMM, fitted on one
//! published point (3.89): it says only that there is a multiplier. On six published points the k of kernel exits was 1.00 to
//! 1.20, which is the band that is drawn. Page faults that are not in a recording, caches gone cold, and a guest that does
//! more because it is faster are not in the model.

use facts::estimate::Estimate;

/// k of exits that L1's kernel finishes.
pub(crate) const K_KERNEL: Estimate = Estimate { low: 1.0, mid: 1.0, high: 1.2 };

/// k of exits that end in L1's VMM. Fitted on one point, so the band is a choice: a quarter to either side.
pub(crate) const K_USERSPACE: Estimate = Estimate { low: 3.0, mid: 4.0, high: 5.0 };

/// C1 of a reason against C1 of CPUID, where only CPUID was measured: hypercall 0.85 to exception 3.07 (PVM, SOSP 2023).
pub(crate) const C1_OF_OTHERS: Estimate = Estimate { low: 0.85, mid: 1.0, high: 3.07 };

/// Cost of an exit of L2 that L1 handles.
pub(crate) fn cost_at_l2(c1_of_reason: f64, k: f64, d: f64) -> f64 {
    c1_of_reason + k * d
}

/// Cost of an exit of L3 that L2 handles.
pub(crate) fn cost_at_l3(c2_of_reason: f64, ratio: f64, d: f64) -> f64 {
    c2_of_reason + ratio * d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_two_measurements_is_wider_than_either() {
        let c2 = Estimate { low: 17_000.0, mid: 17_750.0, high: 18_500.0 };
        let c1 = Estimate { low: 1_300.0, mid: 1_350.0, high: 1_400.0 };
        assert_eq!(c2.less(c1), Estimate { low: 15_600.0, mid: 16_400.0, high: 17_200.0 });
        assert_eq!(c1.less(c2), Estimate::exact(0.0));
    }
}
