//! Does a claim stand without the measurements that others disturbed?
//!
//! ```text
//! enough undisturbed ones on both sides    the claim must hold for those alone
//! too few                                  sides that were disturbed alike: it stands; one far more than the other: void
//! ```
//! In: measurements, and for each whether its interference record names somebody. A claim can only be voided here, never made: what undisturbed
//! measurements alone would claim was chosen after looking.

use super::ratio::Verdict;
use base::number::counted;

/// Shares of disturbed measurements that differ by more than this are no longer alike: our own limit.
const ALIKE: f64 = 0.5;
/// The median of several is disturbed if more of them are.
const MOSTLY: f64 = 0.5;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Measurements {
    pub values: Vec<f64>,
    /// What disturbed each of them, the worst of it.
    by: Vec<Option<String>>,
}

impl Measurements {
    /// A measurement, with what its interference record says.
    pub(super) fn push(&mut self, value: f64, interference: &[String]) {
        self.values.push(value);
        self.by.push(interference.first().cloned());
    }

    /// The `median` of `others` as one measurement; it is disturbed if most of them are.
    pub(super) fn push_median(&mut self, median: f64, others: &Self) {
        let is_disturbed = others.disturbed_share() > MOSTLY;
        self.values.push(median);
        self.by.push(others.worst().filter(|_| is_disturbed).map(str::to_owned));
    }

    pub(super) fn extend(&mut self, others: Self) {
        self.values.extend(others.values);
        self.by.extend(others.by);
    }

    pub(super) fn disturbed(&self) -> usize {
        self.by.iter().flatten().count()
    }

    fn disturbed_share(&self) -> f64 {
        self.disturbed() as f64 / self.values.len().max(1) as f64
    }

    fn undisturbed(&self) -> Vec<f64> {
        self.values.iter().zip(&self.by).filter(|(_, by)| by.is_none()).map(|(value, _)| *value).collect()
    }

    /// What disturbed the first of them.
    fn worst(&self) -> Option<&str> {
        self.by.iter().flatten().next().map(String::as_str)
    }
}

/// `verdict`, or [`Verdict::Void`] where what was disturbed may be all that there is to it. `judge` tells what `fewest` measurements a side or
/// more say.
pub(super) fn without(
    verdict: Verdict,
    [before, after]: [&Measurements; 2],
    fewest: usize,
    judge: impl Fn(&[f64], &[f64]) -> Verdict,
) -> Verdict {
    if !verdict.is_claim() || before.disturbed() + after.disturbed() == 0 {
        return verdict;
    }
    let [one, two] = [before, after].map(Measurements::undisturbed);
    let stands = if one.len().min(two.len()) >= fewest {
        judge(&one, &two) == verdict
    } else {
        (before.disturbed_share() - after.disturbed_share()).abs() <= ALIKE
    };
    if stands { verdict } else { Verdict::Void }
}

/// How many claims are void, and what disturbed the first of them; none if none is.
pub(super) fn said<'m>(void: impl Iterator<Item = [&'m Measurements; 2]>) -> Option<String> {
    let void: Vec<[&Measurements; 2]> = void.collect();
    let by = void.iter().flatten().find_map(|side| side.worst())?;
    let are = counted(void.len() as u64, "difference is", "differences are");
    Some(format!("{are} void: measurements were disturbed ({by}); measure again on a quiet host."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ratio::Ratio;

    fn side(values: &[(f64, bool)]) -> Measurements {
        let mut side = Measurements::default();
        let by = ["cc1 ran".to_owned()];
        values.iter().for_each(|(value, is_disturbed)| side.push(*value, if *is_disturbed { &by } else { &[] }));
        side
    }

    fn judge(one: &[f64], two: &[f64]) -> Verdict {
        Ratio::of(one, two).map_or(Verdict::Unknown, |ratio| ratio.verdict())
    }

    fn of(before: &[(f64, bool)], after: &[(f64, bool)]) -> [Verdict; 2] {
        let [before, after] = [before, after].map(side);
        let verdict = judge(&before.values, &after.values);
        [verdict, without(verdict, [&before, &after], 3, judge)]
    }

    const QUIET: [(f64, bool); 5] = [(100.0, false), (101.0, false), (99.0, false), (100.5, false), (99.5, false)];

    #[test]
    fn a_claim_that_only_disturbed_measurements_carry_is_void() {
        // Three of the five after are as those before; two that were disturbed are twice as long, and pull the mean.
        let pulled = [(100.2, false), (201.0, true), (200.0, true), (202.0, true), (99.0, false), (100.0, false)];
        assert_eq!(of(&QUIET, &pulled), [Verdict::Higher, Verdict::Void]);
        let real = [(150.0, false), (151.0, true), (149.0, false), (150.5, false), (149.5, true)];
        assert_eq!(of(&QUIET, &real), [Verdict::Higher, Verdict::Higher]);
    }

    #[test]
    fn one_side_disturbed_alone_explains_all_and_both_alike_nothing() {
        let disturbed = |factor: f64| QUIET.map(|(value, _)| (value * factor, true));
        assert_eq!(of(&QUIET, &disturbed(1.5)), [Verdict::Higher, Verdict::Void]);
        assert_eq!(of(&disturbed(1.0), &disturbed(1.5)), [Verdict::Higher, Verdict::Higher]);
    }

    #[test]
    fn what_was_not_claimed_is_not_voided() {
        let all = QUIET.map(|(value, _)| (value, true));
        assert_eq!(of(&QUIET, &all), [Verdict::NoChange, Verdict::NoChange]);
    }
}
