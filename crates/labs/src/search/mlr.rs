//! Multiple Loss Ratio Search: bounds for several goals out of one set of trials.
//!
//! ```text
//! a trial at the highest rate, one at the rate that arrived                     hints
//! stage 1: 1 trial settles a rate,       bounds 4 widths apart   ndr, pdr
//! stage 2: a few do,                     2 widths                ndr, pdr       begins between the bounds of stage 1
//! stage 3: all that the goal asks for,   1 width                 ndr, pdr       begins between those of stage 2
//! ```
//! All rates lie on one grid, a width from each other, so that goals share trials: the upper bound of one is often the lower
//! bound of the next. The order in which rates are tried is free (RFC 9971); what the trials are worth is not ([`super::sums`]).

use super::sums::{Class, Database};
use super::trials::{Refused, Trials};
use super::{Ended, Found, Goal, Outcome, Range, Trial, is_narrow};
use std::collections::BTreeSet;

/// Stages before the last, each with bounds half as far apart.
const COARSE_STAGES: u32 = 2;
/// Searches for all goals.
///
/// # Errors
/// Those of a trial.
pub(crate) fn mlr<E>(goals: &[Goal], range: &Range, run: impl FnMut(u64) -> Result<Trial, E>) -> Result<Outcome, E> {
    let step = goals.iter().map(|goal| -(1.0 - goal.width).ln()).fold(f64::INFINITY, f64::min);
    let mut search = Search { trials: Trials::new(range, run), database: Database::default(), range: *range, step };
    let mut ended = vec![Ended::Trials; goals.len()];
    let over = match search.stages(goals, &mut ended) {
        Ok(()) | Err(Refused::Missed) => None,
        Err(Refused::Over(why)) => Some(why),
        Err(Refused::Failed(error)) => return Err(error),
    };
    let found = goals.iter().zip(ended).map(|(goal, ended)| {
        let (lower_pps, upper_pps) = search.database.bounds(goal, goal.trials);
        let is_found = lower_pps.zip(upper_pps).is_some_and(|(lower, upper)| is_narrow(lower, upper, goal.width));
        let ended = over.filter(|_| !is_found).unwrap_or(ended);
        Found { goal: *goal, lower_pps, upper_pps, ended: search.trials.ended(ended, upper_pps) }
    });
    Ok(Outcome { found: found.collect(), trials: search.trials.kept })
}

struct Search<F> {
    trials: Trials<F>,
    database: Database,
    range: Range,
    /// Between two rates of the grid, in their logarithm.
    step: f64,
}

impl<F, E> Search<F>
where
    F: FnMut(u64) -> Result<Trial, E>,
{
    fn stages(&mut self, goals: &[Goal], ended: &mut [Ended]) -> Result<(), Refused<E>> {
        let first = self.first_hints()?;
        let mut hints = vec![first; goals.len()];
        for stage in 0..=COARSE_STAGES {
            let coarser = COARSE_STAGES - stage;
            for ((goal, hints), ended) in goals.iter().zip(&mut hints).zip(ended.iter_mut()) {
                let needed = f64::from(goal.trials).powf(f64::from(stage) / f64::from(COARSE_STAGES)).round() as u32;
                let coarse = Goal { width: goal.width * f64::from(1 << coarser), ..*goal };
                *ended = self.narrow(&coarse, needed, hints)?;
                let (lower, upper) = self.database.bounds(goal, needed);
                // The next stage wants half the width, so one of the two bounds is not needed once the middle is settled.
                let middle = lower.zip(upper).map(|(lower, upper)| self.on_grid((lower as f64 * upper as f64).sqrt()));
                *hints = middle.into_iter().chain(lower).chain(upper).collect();
            }
        }
        Ok(())
    }

    /// What arrives of the highest rate, and what arrives of that: near the bounds of a device that carries what it can.
    fn first_hints(&mut self) -> Result<Vec<u64>, Refused<E>> {
        let mut hints = Vec::new();
        let mut pps = self.range.most_pps;
        for _ in 0..2 {
            match self.trials.at(pps) {
                Ok(trial) => self.database.add(&trial),
                Err(Refused::Missed) => {}
                Err(over) => return Err(over),
            }
            let arrived = self.trials.kept.last().map_or(0.0, |(trial, _)| trial.received_pps());
            pps = self.on_grid(arrived);
            hints.push(pps);
        }
        hints.reverse();
        Ok(hints)
    }

    /// Tries rates until the goal's bounds are close, where `needed` trials settle a rate.
    fn narrow(&mut self, goal: &Goal, needed: u32, hints: &[u64]) -> Result<Ended, Refused<E>> {
        let Range { least_pps, most_pps, .. } = self.range;
        let mut reach = goal.width;
        let mut tried = BTreeSet::new();
        loop {
            let (lower, upper) = self.database.bounds(goal, needed);
            let top = upper.map_or(self.trials.ceiling_pps, |upper| upper.min(self.trials.ceiling_pps));
            let hint = hints.iter().find(|hint| lower.is_none_or(|lower| **hint > lower) && **hint < top);
            let pps = match (lower, hint) {
                (Some(lower), _) if lower == most_pps => return Ok(Ended::CarriesAll),
                (Some(lower), _) if top <= most_pps && is_narrow(lower, top, goal.width) => return Ok(Ended::Narrow),
                (None, _) if top <= least_pps => return Ok(Ended::CarriesLess),
                (_, Some(hint)) => *hint,
                (lower, None) => {
                    let pps = match lower {
                        Some(lower) if top <= most_pps => (lower as f64 * top as f64).sqrt(),
                        Some(lower) => lower as f64 * (1.0 + reach),
                        None => top as f64 * (1.0 - reach),
                    };
                    reach *= 2.0;
                    // Between the bounds, however little a step is.
                    self.on_grid(pps).clamp(lower.map_or(least_pps, |lower| lower + 1), most_pps.min(top - 1))
                }
            };
            // What was settled is a bound since, and what was missed the ceiling: neither is asked for again.
            if !tried.insert(pps) {
                return Ok(Ended::Trials);
            }
            match self.settle(pps, goal, needed) {
                Ok(()) | Err(Refused::Missed) => {}
                Err(over) => return Err(over),
            }
        }
    }

    /// Tries a rate until it is settled.
    fn settle(&mut self, pps: u64, goal: &Goal, needed: u32) -> Result<(), Refused<E>> {
        while self.database.class(pps, goal, needed) == Class::Undecided {
            let trial = self.trials.at(pps)?;
            self.database.add(&trial);
        }
        Ok(())
    }

    /// The nearest rate of the grid.
    fn on_grid(&self, pps: f64) -> u64 {
        let most = self.range.most_pps as f64;
        let steps = ((most / pps.max(1.0)).ln() / self.step).round();
        ((most * (-steps * self.step).exp()).round() as u64).clamp(self.range.least_pps, self.range.most_pps)
    }
}
