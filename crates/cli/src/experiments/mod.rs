//! Experiments on a live host: measure, propose a change, make it, measure again, undo it, compare.
//!
//! ```text
//! begin --> measure --> propose --> make --> measure --> undo --> [measure --> make --> measure --> undo --> ..] --> compare
//!                          |                    |         |
//!                          nothing: ends here   |         after the last turn: kept, if the experiment says so
//!                                               stopped, failed: undone first, then told
//! ```
//! Turns alternate, so that what drifts on the machine meets both states. [`run`] is the one loop; what is measured and
//! changed is an [`Experiment`]. Here the live side and the analysis meet: `lab` changes and records, `analysis` says what it
//! was, and neither knows the other.

pub(crate) mod recorded;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[cfg(feature = "labs")]
pub(crate) mod starve;
pub(crate) mod trial;

use analysis::compare::{Ratio, Verdict};

/// In which state of the host is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Before,
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    #[cfg_attr(not(feature = "labs"), allow(dead_code, reason = "only labs have a throughput"))]
    Higher,
    Lower,
}

/// One experiment. Wherever a method may be ended by the user, it says so by `None` or false, and not by an error.
pub(crate) trait Experiment {
    type Sample;
    type Proposal;
    /// What undoes a change that was made.
    type Made;
    /// What both states against each other say.
    type Found;

    /// Prepares the first measurement; false: the user ended it.
    fn begin(&mut self) -> anyhow::Result<bool> {
        Ok(true)
    }

    /// Measures once, when the host has settled; `None`: the user ended it.
    fn measure(&mut self, state: State) -> anyhow::Result<Option<Self::Sample>>;

    /// What to change after the first measurement; `None`: nothing.
    fn propose(&mut self) -> anyhow::Result<Option<Self::Proposal>>;

    /// Makes the change, or nothing of it; `None`: the user ended it before.
    fn make(&mut self, proposal: &Self::Proposal) -> anyhow::Result<Option<Self::Made>>;

    fn undo(&mut self, made: Self::Made) -> anyhow::Result<()>;

    /// Holds all runs before against all runs after.
    fn compare(&self, runs: &Runs<Self::Sample>) -> Self::Found;

    /// Both measurements of a turn are done.
    fn turned(&mut self, _runs: &Runs<Self::Sample>) {}

    /// True if the change of the last turn stays; asked while it is still made.
    fn keeps(&mut self, _runs: &Runs<Self::Sample>, _found: &Self::Found) -> anyhow::Result<bool> {
        Ok(false)
    }

    fn keep(&mut self, _made: Self::Made) {}
}

#[derive(Debug, Clone)]
pub(crate) struct Runs<S> {
    pub before: Vec<S>,
    pub after: Vec<S>,
}

#[derive(Debug)]
pub(crate) enum Ended<S, F> {
    /// The user ended it; nothing is changed.
    Interrupted,
    /// There was nothing to change.
    Unchanged(Runs<S>),
    /// Both states were measured.
    Compared(Runs<S>, F),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It is better, and noise does not explain it.
    Helped,
    /// It is worse, and noise does not explain it.
    Harmed,
    /// Noise could explain it.
    NoDifference,
    /// There are too few measurements to say.
    Unknown,
}

/// The amounts of both states against each other, where one number of each run is compared.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// The amounts; `None` if one of the states has none but zeros.
    pub ratio: Option<Ratio>,
    pub effect: Effect,
}

impl Comparison {
    /// What the amounts before and after say.
    pub(crate) fn of(before: &[f64], after: &[f64], better: Better) -> Self {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let ratio = Ratio::of(before, after);
        let effect = match (ratio.as_ref().map(Ratio::verdict), better) {
            (Some(Verdict::Higher), Better::Higher) | (Some(Verdict::Lower), Better::Lower) => Effect::Helped,
            (Some(Verdict::Higher), Better::Lower) | (Some(Verdict::Lower), Better::Higher) => Effect::Harmed,
            (Some(Verdict::Unknown | Verdict::Void), _) => Effect::Unknown,
            // All that was lost is lost no more: a ratio to nothing cannot be told, and needs none.
            (None, Better::Lower) if mean(before) > 0.0 && mean(after) == 0.0 => {
                let ratio = Some(Ratio { before: mean(before), after: 0.0, ratio: 0.0, interval: None, chance: None });
                return Self { ratio, effect: Effect::Helped };
            }
            (Some(Verdict::NoChange) | None, _) => Effect::NoDifference,
        };
        Self { ratio, effect }
    }
}

/// Runs an experiment of so many turns. However it ends, what was made is undone, unless the experiment keeps it.
///
/// # Errors
/// Those of the experiment. If undoing fails, that is the error: the host is not as it was.
pub(crate) fn run<E: Experiment>(experiment: &mut E, turns: u32) -> anyhow::Result<Ended<E::Sample, E::Found>> {
    if !experiment.begin()? {
        return Ok(Ended::Interrupted);
    }
    let Some(first) = experiment.measure(State::Before)? else { return Ok(Ended::Interrupted) };
    let mut runs = Runs { before: vec![first], after: Vec::new() };
    let Some(proposal) = experiment.propose()? else { return Ok(Ended::Unchanged(runs)) };
    for turn in 1..=turns {
        if turn > 1 {
            let Some(again) = experiment.measure(State::Before)? else { return Ok(Ended::Interrupted) };
            runs.before.push(again);
        }
        let Some(made) = experiment.make(&proposal)? else { return Ok(Ended::Interrupted) };
        match with_change(experiment, &mut runs, turn == turns) {
            Ok(Some(true)) => experiment.keep(made),
            ended => {
                experiment.undo(made)?;
                if ended?.is_none() {
                    return Ok(Ended::Interrupted);
                }
            }
        }
        experiment.turned(&runs);
    }
    let found = experiment.compare(&runs);
    Ok(Ended::Compared(runs, found))
}

/// Measures with the change, and asks in the last turn whether it stays; `None`: the user ended it.
fn with_change<E: Experiment>(
    experiment: &mut E,
    runs: &mut Runs<E::Sample>,
    is_last: bool,
) -> anyhow::Result<Option<bool>> {
    let Some(sample) = experiment.measure(State::After)? else { return Ok(None) };
    runs.after.push(sample);
    if !is_last {
        return Ok(Some(false));
    }
    let found = experiment.compare(runs);
    experiment.keeps(runs, &found).map(Some)
}

#[cfg(test)]
mod tests;
