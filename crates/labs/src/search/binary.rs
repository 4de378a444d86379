//! The plain form: one trial for each rate, halves (RFC 2544, 26.1).

use super::trials::{Refused, Trials};
use super::{Ended, Found, Goal, Outcome, Range, Trial, is_narrow};

/// Searches for one goal after the other, each from what the trials before it say of it: so no goal ends below a stricter one. How many
/// trials settle a rate and which share of them may be bad does not matter here: one does.
///
/// # Errors
/// Those of a trial.
pub fn binary<E>(goals: &[Goal], range: &Range, run: impl FnMut(u64) -> Result<Trial, E>) -> Result<Outcome, E> {
    let mut trials = Trials::new(range, run);
    let mut found = Vec::new();
    for goal in goals {
        let (mut lower, mut upper) = trials.bounds(goal.loss_ratio);
        let ended = loop {
            let top = upper.unwrap_or(trials.ceiling_pps).min(trials.ceiling_pps);
            let pps = match lower {
                Some(lower) if lower == range.most_pps => break Ended::CarriesAll,
                Some(lower) if top <= range.most_pps && is_narrow(lower, top, goal.width) => break Ended::Narrow,
                None if top <= range.least_pps => break Ended::CarriesLess,
                _ if top > range.most_pps => range.most_pps,
                _ => u64::midpoint(lower.unwrap_or(0), top).max(range.least_pps),
            };
            match trials.at(pps) {
                Ok(trial) if trial.loss_ratio() > goal.loss_ratio => upper = Some(pps),
                Ok(_) => lower = Some(pps),
                Err(Refused::Missed) => {}
                Err(Refused::Over(why)) => break why,
                Err(Refused::Failed(error)) => return Err(error),
            }
        };
        found.push(Found { goal: *goal, lower_pps: lower, upper_pps: upper, ended: trials.ended(ended, upper) });
    }
    Ok(Outcome { found, trials: trials.kept })
}
