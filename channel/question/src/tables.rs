//! The tables of what paths carried, and what their columns have in common.

mod gaps;
mod rates;

pub(super) use gaps::{gaps, thread};
pub(super) use rates::{rates, swapped};

use super::delays::DELAYS;
use super::faults::FAULTS;
use super::flows::FLOWS;
use super::setups::SETUPS;
use base::{Cell, TableSpec};
use gaps::GAPS;
use rates::RATES;

/// All tables, in reading order.
pub const TABLES: &[&TableSpec] = &[&RATES, &GAPS, &SETUPS, &DELAYS, &FLOWS, &FAULTS];

/// Unit of rates.
pub(super) const MPPS: &str = "Mpps";

pub(super) fn rounded(value: Option<f64>, grain: f64) -> Cell {
    value.filter(|value| value.is_finite()).map(|value| (value * grain).round() / grain).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_million_packets_per_second_keep_their_unit() {
        assert_eq!([1.0, 2.5].map(|rate| base::number::amount(rate, MPPS)), ["1 Mpps", "2.5 Mpps"]);
    }
}
