//! How much does it matter on which operation the model is calibrated? All choices, with the errors of the others.
//!
//! A plain exit (CPUID, a hypercall) shows what nesting adds and little else. An operation with work of its own at L1 has a
//! smaller ratio of L2 to L1, and three levels up that ratio is all there is: such a calibration fails, and its row says so.
//! Operations that end in L1's VMM are left out: their k was fitted (`validate`).

use super::model::{K_KERNEL, cost_at_l2, cost_at_l3};
use base::number::percent;
use facts::published::value;
use std::fmt::Write as _;

/// A published table: what it is called, the beginning of its records' ids, its operations by id and name, its deepest level.
type Published = (&'static str, &'static str, &'static [(&'static str, &'static str)], u8);

const SETS: &[Published] = &[
    (
        "PVM 2023",
        "pvm23",
        &[("cpuid", "CPUID"), ("hypercall", "hypercall"), ("exception", "exception"), ("msr", "MSR")],
        2,
    ),
    (
        "DVH 2020",
        "dvh20",
        &[("hypercall", "hypercall"), ("timer", "ProgramTimer"), ("devnotify", "DevNotify"), ("ipi", "SendIPI")],
        3,
    ),
    ("dorsal 2018", "dorsal18", &[("hypercall", "hypercall")], 3),
];

/// The model calibrated on one operation, against all others of the same table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calibration {
    pub set: &'static str,
    pub(crate) calibrated_on: &'static str,
    pub level: u8,
    /// How many operations it predicts.
    pub predicted: u64,
    /// Lowest error, as a share.
    pub low: f64,
    /// Highest error.
    pub high: f64,
}

impl Calibration {
    /// The error that is farthest from nothing, without its sign.
    pub(crate) fn worst(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// For a sentence: `6.2 % (PVM 2023, hypercall)`.
    fn said(&self) -> String {
        format!("{} ({}, {})", percent(self.worst()), self.set, self.calibrated_on)
    }
}

/// Every choice at every level.
pub(crate) fn calibrations() -> Vec<Calibration> {
    let of_set = |(set, prefix, operations, deepest): &Published| {
        let cost = |operation: &str, level: u8| value(&format!("{prefix}.{operation}.l{level}"));
        let mut rows = Vec::new();
        for level in 2..=*deepest {
            for (own, calibrated_on) in *operations {
                let (ratio, d) = (cost(own, 2) / cost(own, 1), cost(own, 2) - cost(own, 1));
                // At L2 the operation itself is what the model was given; at L3 nobody gave it.
                let others = operations.iter().filter(|(operation, _)| level > 2 || operation != own);
                let errors: Vec<f64> = others
                    .map(|(operation, _)| {
                        let model = match level {
                            2 => cost_at_l2(cost(operation, 1), K_KERNEL.mid, d),
                            _ => cost_at_l3(cost(operation, 2), ratio, d),
                        };
                        model / cost(operation, level) - 1.0
                    })
                    .collect();
                let (low, high) = (errors.iter().copied().reduce(f64::min), errors.iter().copied().reduce(f64::max));
                if let (Some(low), Some(high)) = (low, high) {
                    let predicted = errors.len() as u64;
                    rows.push(Calibration { set, calibrated_on, level, predicted, low, high });
                }
            }
        }
        rows
    };
    SETS.iter().flat_map(of_set).collect()
}

/// The best and the worst choice at a level, for a sentence.
pub(crate) fn best_and_worst(level: u8) -> Option<(String, String)> {
    let of_level = || calibrations().into_iter().filter(|one| one.level == level);
    let best = of_level().min_by(|a, b| a.worst().total_cmp(&b.worst()))?;
    let worst = of_level().max_by(|a, b| a.worst().total_cmp(&b.worst()))?;
    Some((best.said(), worst.said()))
}

/// The part of docs/formats/validation.md about the choice of the operation that calibrates the model.
pub(super) fn printed() -> String {
    let said = |level: u8| {
        let (best, worst) = best_and_worst(level).unwrap_or_default();
        format!("within {best} at best and {worst} at worst")
    };
    let mut out = format!(
        "\n### Which operation calibrates the model\n\nCalibrated on one operation of a published table, the model predicts the others at L2 {}. At L3, \
         where it also takes what each operation costs at L2, it predicts them {}: calibrate it on a plain exit, such as CPUID or a hypercall.\n\n\
         | data set | calibrated on | at | operations | lowest error | highest error |\n|---|---|---|---|---|---|\n",
        said(2),
        said(3)
    );
    for one in calibrations() {
        let Calibration { set, calibrated_on, level, predicted, low, high } = one;
        let (low, high) = (percent(low), percent(high));
        let _ = writeln!(out, "| {set} | {calibrated_on} | L{level} | {predicted} | {low} | {high} |");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_has_the_errors_that_the_published_numbers_give() {
        // By hand, out of the tables: D of the choice added to what the others cost at L1, against L2.
        let expected = [
            ("PVM 2023", "CPUID", 2, 3, 10.7),
            ("PVM 2023", "hypercall", 2, 3, 6.2),
            ("PVM 2023", "exception", 2, 3, 13.8),
            ("PVM 2023", "MSR", 2, 3, 10.6),
            ("DVH 2020", "hypercall", 2, 3, 15.0),
            ("DVH 2020", "ProgramTimer", 2, 3, 13.8),
            ("DVH 2020", "DevNotify", 2, 3, 19.2),
            ("DVH 2020", "SendIPI", 2, 3, 14.9),
            ("DVH 2020", "hypercall", 3, 4, 14.9),
            ("DVH 2020", "ProgramTimer", 3, 4, 18.5),
            ("DVH 2020", "DevNotify", 3, 4, 55.0),
            ("DVH 2020", "SendIPI", 3, 4, 53.6),
            ("dorsal 2018", "hypercall", 3, 1, 30.1),
        ];
        let found = calibrations();
        assert_eq!(found.len(), expected.len());
        for (one, (set, on, level, predicted, worst)) in found.iter().zip(expected) {
            assert_eq!((one.set, one.calibrated_on, one.level, one.predicted), (set, on, level, predicted));
            assert!((one.worst() * 100.0 - worst).abs() < 0.06, "{one:?}");
        }
        let (best, worst) = best_and_worst(2).unwrap();
        assert!(best.starts_with("6.2 % (PVM 2023, h") && worst.starts_with("19.2 % (DVH 2020, D"), "{best}, {worst}");
    }
}
