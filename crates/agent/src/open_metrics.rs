//! Metrics as text, family by family.
//!
//! Source: the OpenMetrics 1.0 text format (openmetrics.io), sections 3 to 5.

use serve::escaped;
use std::fmt::Write;

/// A sample: its labels, as [`label`] writes them with commas between, and its value.
pub(crate) type Sample = (String, f64);

/// The text, family by family.
#[derive(Default)]
pub(crate) struct Text(pub(crate) String);

impl Text {
    /// What stands above the samples of a family.
    pub(crate) fn head(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    /// A family of counters, whose samples end in `_total`.
    pub(crate) fn counter(&mut self, name: &str, unit: &str, help: &str, samples: &[Sample]) {
        self.head(name, "counter", unit, help);
        self.samples(&format!("{name}_total"), samples);
    }

    /// A family of numbers that go up and down.
    pub(crate) fn gauge(&mut self, name: &str, unit: &str, help: &str, samples: &[Sample]) {
        self.head(name, "gauge", unit, help);
        self.samples(name, samples);
    }

    fn samples(&mut self, name: &str, samples: &[Sample]) {
        for (labels, value) in samples {
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }

    /// One histogram of a family in seconds: of each upper bound how many are at or below it, rising, how many there are, and their sum.
    pub(crate) fn histogram(&mut self, name: &str, labels: &str, below: &[(u64, u64)], count: u64, sum_ns: u64) {
        for (bound_ns, count) in below {
            let _ = writeln!(self.0, "{name}_bucket{{{labels},le=\"{}\"}} {count}", seconds(*bound_ns));
        }
        let _ = writeln!(self.0, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(self.0, "{name}_count{{{labels}}} {count}");
        let _ = writeln!(self.0, "{name}_sum{{{labels}}} {}", seconds(sum_ns));
    }
}

/// `vm="web"`, escaped.
pub(crate) fn label(name: &str, value: &str) -> String {
    format!("{name}=\"{}\"", escaped(value))
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
