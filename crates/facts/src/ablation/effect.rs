//! What did each change do, and could chance have done it?

use super::{Measure, Run, measures};
use crate::budget::Budget;
use crate::statistics::{holm, permutation};
use std::cmp::Ordering;

/// The runs of one change, which took turns.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    pub name: String,
    /// Runs without it.
    pub before: Vec<Run>,
    pub after: Vec<Run>,
}

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Effect {
        /// Something fell by more than chance explains, and nothing rose.
        Helped = "helped",
        /// Something rose by more than chance explains.
        Harmed = "harmed",
        /// Chance explains all differences.
        NoneFound = "none found",
        /// So few runs cannot show any effect.
        TooFew = "too few runs",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    pub name: String,
    pub effect: Effect,
    /// Each measure, in the budget's order.
    pub changes: Vec<Change>,
}

/// What became of a measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub measure: Measure,
    /// Its mean over the runs without the change.
    pub before: f64,
    pub after: f64,
    /// How likely a difference as large as this is if the change did nothing.
    pub chance: f64,
    /// Whether that is too little to believe in chance, for all tests together.
    pub is_certain: bool,
}

/// What each of `tried` did by the goals of `budget`: first what took away most of the first measure that changed for certain, last
/// what made things worse; what had no effect keeps its order.
pub fn ranked(budget: &Budget, tried: &[Tried]) -> Vec<Ranked> {
    let measures = measures(budget);
    let mut all: Vec<Ranked> = tried.iter().map(|one| Ranked::of(one, &measures)).collect();
    let chances: Vec<f64> = all.iter().flat_map(|one| &one.changes).map(|change| change.chance).collect();
    let mut holds = holm::hold(&chances).into_iter();
    for change in all.iter_mut().flat_map(|one| &mut one.changes) {
        change.is_certain = holds.next().unwrap_or(false) && change.before != change.after;
    }
    for (one, tried) in all.iter_mut().zip(tried) {
        let runs = tried.before.len().min(tried.after.len());
        one.effect = one.found(can_find(runs, chances.len()));
    }
    all.sort_by(|one, other| other.removed(one));
    all
}

/// Whether so many runs each way can show anything where so many numbers are tested.
fn can_find(runs: usize, tests: usize) -> bool {
    permutation::least(runs) <= holm::CHANCE / tests.max(1) as f64
}

/// How many runs each way it takes at least to show an effect of any of `changes` changes by the goals of `budget`.
pub fn least_runs(budget: &Budget, changes: usize) -> usize {
    let tests = measures(budget).len() * changes;
    (1..=MOST_RUNS).find(|runs| can_find(*runs, tests)).unwrap_or(MOST_RUNS)
}

/// More runs cannot show more: ways to deal them are drawn.
const MOST_RUNS: usize = 16;

impl Ranked {
    fn of(tried: &Tried, measures: &[Measure]) -> Self {
        let changes = measures.iter().enumerate().filter_map(|(place, measure)| {
            let [before, after] = [&tried.before, &tried.after]
                .map(|runs| runs.iter().filter_map(|run| run.values.get(place).copied()).collect::<Vec<f64>>());
            let chance = permutation::permutation(&before, &after)?;
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let (before, after) = (mean(&before), mean(&after));
            Some(Change { measure: measure.clone(), before, after, chance, is_certain: false })
        });
        Self { name: tried.name.clone(), effect: Effect::TooFew, changes: changes.collect() }
    }

    fn found(&self, can_find: bool) -> Effect {
        let mut certain = self.changes.iter().filter(|change| change.is_certain).peekable();
        match (certain.peek().is_some(), can_find) {
            (true, _) if certain.all(|change| change.after < change.before) => Effect::Helped,
            (true, _) => Effect::Harmed,
            (false, true) => Effect::NoneFound,
            (false, false) => Effect::TooFew,
        }
    }

    /// Which of two took away less, by the first measure in which they differ for certain.
    fn removed(&self, other: &Self) -> Ordering {
        let certain = |change: &Change| if change.is_certain { change.before - change.after } else { 0.0 };
        let both = self.changes.iter().zip(&other.changes);
        both.map(|(one, other)| certain(one).total_cmp(&certain(other)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::built_in;

    fn budget() -> Budget {
        built_in("kvm4nfv-2015").unwrap()
    }

    /// Runs whose every measure is one of `values`.
    fn runs(values: &[f64]) -> Vec<Run> {
        let count = measures(&budget()).len();
        values.iter().map(|value| Run::for_tests(&vec![*value; count])).collect()
    }

    fn tried(name: &str, before: &[f64], after: &[f64]) -> Tried {
        Tried { name: name.to_owned(), before: runs(before), after: runs(after) }
    }

    const NOISY: [f64; 8] = [5.0, 7.0, 6.0, 5.5, 6.5, 7.5, 5.2, 6.9];
    const OTHER: [f64; 8] = [6.1, 5.1, 7.1, 5.6, 6.6, 5.3, 7.4, 6.7];
    const LOW: [f64; 8] = [1.0, 1.5, 0.5, 1.2, 1.1, 0.9, 1.3, 0.7];
    const NONE: [f64; 8] = [0.0; 8];

    #[test]
    fn what_took_away_most_is_first_and_what_harmed_is_last() {
        let all = [
            tried("harms", &LOW, &NOISY),
            tried("nothing", &NOISY, &OTHER),
            tried("helps", &NOISY, &LOW),
            tried("helps most", &NOISY, &NONE),
        ];
        let ranked = ranked(&budget(), &all);
        let said: Vec<(&str, Effect)> = ranked.iter().map(|one| (one.name.as_str(), one.effect)).collect();
        let expected = [
            ("helps most", Effect::Helped),
            ("helps", Effect::Helped),
            ("nothing", Effect::NoneFound),
            ("harms", Effect::Harmed),
        ];
        assert_eq!(said, expected);
        assert!(ranked[2].changes.iter().all(|change| !change.is_certain && change.chance > 0.2));
    }

    #[test]
    fn so_few_runs_that_nothing_can_be_found_are_said() {
        let few = ranked(&budget(), &[tried("helps", &NOISY[..4], &NONE[..4])]);
        assert_eq!(
            few[0].effect,
            Effect::TooFew,
            "of four runs each way 2 of 70 ways are apart, and five numbers are tested"
        );
        assert_eq!((least_runs(&budget(), 1), least_runs(&budget(), 10)), (5, 7));
        let enough = ranked(&budget(), &[tried("helps", &NOISY[..5], &NONE[..5])]);
        assert_eq!(enough[0].effect, Effect::Helped);
    }

    #[test]
    fn changes_that_do_nothing_are_rarely_said_to_do_anything() {
        // Truth by construction: both sides are drawn from one distribution, which has a long tail.
        let mut state = 7_u64;
        let mut drawn = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = (state >> 11) as f64 / (1_u64 << 53) as f64;
            1.0 / (1.0 - unit)
        };
        let mut side = || -> Vec<f64> { (0..8).map(|_| drawn()).collect() };
        const TRIALS: usize = 200;
        let claims = (0..TRIALS).filter(|_| {
            let several: Vec<Tried> = (0..3).map(|_| tried("nothing", &side(), &side())).collect();
            ranked(&budget(), &several).iter().any(|one| one.effect != Effect::NoneFound)
        });
        // One in twenty may; 3.3 deviations more are 10.1 %.
        let claims = claims.count();
        assert!(claims as f64 / TRIALS as f64 <= 0.101, "{claims} of {TRIALS}");
    }
}
