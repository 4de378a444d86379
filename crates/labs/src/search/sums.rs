//! What the trials at each rate say of a goal.
//!
//! A rate is a lower bound if bad trials would not exceed their share even if all trials still missing were bad, an upper
//! bound if they exceed it even if all of those were good, and else undecided (RFC 9971's classification of loads; all
//! trials here have full length, so the terms of short trials are zero).

use super::Goal;
use super::trials::Trial;
use std::collections::BTreeMap;

/// Good and bad trials of a rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) good: u32,
    pub(super) bad: u32,
}

/// What a rate is for a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Lower,
    Upper,
    Undecided,
}

impl Sums {
    /// What they are worth where `needed` trials settle a rate.
    pub(super) fn class(self, needed: u32, exceed_ratio: f64) -> Class {
        let whole = self.good.saturating_add(self.bad).max(needed);
        let most_bad = f64::from(whole) * exceed_ratio;
        if f64::from(whole - self.good) <= most_bad {
            Class::Lower
        } else if f64::from(self.bad) > most_bad {
            Class::Upper
        } else {
            Class::Undecided
        }
    }
}

/// Loss ratios of the trials that count, by rate.
#[derive(Debug, Default)]
pub(super) struct Database(BTreeMap<u64, Vec<f64>>);

impl Database {
    pub(super) fn add(&mut self, trial: &Trial) {
        self.0.entry(trial.intended_pps).or_default().push(trial.loss_ratio());
    }

    /// What a rate is for a goal of which `needed` trials settle a rate.
    pub(super) fn class(&self, pps: u64, goal: &Goal, needed: u32) -> Class {
        self.0.get(&pps).map_or(Class::Undecided, |losses| class_of(losses, goal, needed))
    }

    /// The relevant bounds: the lowest rate that is an upper bound, and the highest below it that is a lower one. A device that
    /// loses frames at a rate and none at a higher one is so taken at its lower rate (RFC 9971, relevant bounds).
    pub(super) fn bounds(&self, goal: &Goal, needed: u32) -> (Option<u64>, Option<u64>) {
        let mut lower = None;
        for (pps, losses) in &self.0 {
            match class_of(losses, goal, needed) {
                Class::Upper => return (lower, Some(*pps)),
                Class::Lower => lower = Some(*pps),
                Class::Undecided => {}
            }
        }
        (lower, None)
    }
}

fn class_of(losses: &[f64], goal: &Goal, needed: u32) -> Class {
    let bad = losses.iter().filter(|loss| **loss > goal.loss_ratio).count();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Sums { good: count(losses.len() - bad), bad: count(bad) }.class(needed, goal.exceed_ratio)
}
