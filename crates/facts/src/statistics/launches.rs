//! What did one launch of a bench measure? Its distribution, of one operation.
//!
//! ```text
//! sample of n operations  --less the control of n empty ones, / n-->  one operation, in hundredths of its unit
//! ```

use base::Histogram;
use base::bench::Measured;

/// Values are kept in hundredths.
pub const GRAIN: f64 = 100.0;

/// The loop that is subtracted from all others, and not from itself.
pub const EMPTY: &str = "empty";

/// All samples of a launch, in hundredths of the unit.
pub fn distribution(measured: &Measured) -> Histogram {
    let operations = measured.params.operations.unwrap_or(1).max(1) as f64;
    let control = if measured.name == EMPTY { 0.0 } else { measured.params.control.unwrap_or(0.0) };
    let mut own = Histogram::new();
    for (value, count) in &measured.hdr {
        let each = (*value as f64 - control).max(0.0) / operations;
        own.record_many((each * GRAIN).round() as u64, *count);
    }
    own
}

/// The one number of a launch: the median of its samples.
pub fn median(measured: &Measured) -> Option<f64> {
    if measured.hdr.is_empty() {
        return super::spread::median(&measured.samples);
    }
    distribution(measured).quantile(0.5).map(|value| value as f64 / GRAIN)
}
