//! Which windows is a recording answered for?

use super::Budget;
use std::collections::BTreeSet;

/// Lengths that are always answered for: 10 us to 1 s.
const WINDOWS_NS: [u64; 16] = [
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// The length of the window that stands for the others without a budget: that of KVM4NFV's goal, "cumulative preemption in any 1 ms".
const MOMENT_NS: u64 = 1_000_000;

/// All lengths, with those of the budget's goals.
pub fn windows_ns(budget: Option<&Budget>) -> BTreeSet<u64> {
    WINDOWS_NS.into_iter().chain(budget.into_iter().flat_map(Budget::windows_ns)).collect()
}

/// The length that stands for the others: that of the budget's first goal on windows.
pub fn moment_ns(budget: Option<&Budget>) -> u64 {
    budget.and_then(|budget| budget.windows_ns().next()).unwrap_or(MOMENT_NS)
}
