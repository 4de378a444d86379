//! CPU now, CPU after: each change alone, and those that go together.
//!
//! Rates move first, then what nesting adds to the exits that remain. The band takes the least, the most likely and the most
//! of costs and effects together, so it is wider than chance would make it.

use super::effects::{EFFECTS, Effect, Moves, Place};
use super::inputs::Inputs;
use facts::estimate::Estimate;

/// What the row of the combination is called.
pub(crate) const TOGETHER: &str = "together";

/// One row of the answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Predicted {
    /// The change, or [`TOGETHER`].
    pub change: String,
    pub title: String,
    /// CPU before.
    pub now: Estimate,
    /// CPU after; `None`: not predicted.
    pub after: Option<Estimate>,
    pub saved: Option<Estimate>,
    /// Why there is no prediction, or a remark.
    pub note: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// True for AMD.
    pub svm: bool,
    /// True with Hyper-V as L0.
    pub hyperv: bool,
    /// Changes of the combination; empty: the usual ones.
    pub with: Vec<String>,
}

impl Wanted {
    /// Whether a change is possible there.
    pub fn allows(&self, effect: &Effect) -> bool {
        match effect.place {
            Place::Any => true,
            Place::Vmx => !self.svm,
            Place::Svm => self.svm,
            Place::Hyperv => self.hyperv && !self.svm,
            Place::VmxOnKvm => !self.svm && !self.hyperv,
        }
    }
}

/// All rows: each change that is possible, then the combination.
pub(crate) fn predict(inputs: &Inputs, wanted: &Wanted) -> Vec<Predicted> {
    let possible: Vec<&Effect> = EFFECTS.iter().filter(|effect| wanted.allows(effect)).collect();
    let mut rows: Vec<Predicted> = possible.iter().map(|effect| alone(inputs, effect)).collect();
    let chosen = |effect: &&&Effect| {
        let asked = if wanted.with.is_empty() { effect.usual } else { wanted.with.iter().any(|id| id == effect.id) };
        asked && factor(inputs, effect).is_ok()
    };
    let together: Vec<&Effect> = possible.iter().filter(chosen).copied().collect();
    if together.len() > 1 {
        let ids: Vec<&str> = together.iter().map(|effect| effect.id).collect();
        let row = of(inputs, &together, TOGETHER.to_owned(), ids.join(" + "));
        rows.push(Predicted { note: ids.join(", "), ..row });
    }
    rows
}

fn alone(inputs: &Inputs, effect: &Effect) -> Predicted {
    let (change, title) = (effect.id.to_owned(), effect.title.to_owned());
    match factor(inputs, effect) {
        Ok(factor) => {
            let row = of(inputs, &[effect], change, title);
            let up_to_all = matches!(effect.moves, Moves::Rates { .. }) && factor.high == 1.0;
            let note = if up_to_all { "at best; no published value".to_owned() } else { row.note.clone() };
            Predicted { note, ..row }
        }
        Err(note) => Predicted { change, title, now: inputs.now(), after: None, saved: None, note },
    }
}

/// What remains of what a change moves, or why that cannot be told.
fn factor(inputs: &Inputs, effect: &Effect) -> Result<Estimate, String> {
    if !effect.feature.is_empty() && inputs.on.iter().any(|on| on == effect.feature) {
        return Err("already on".to_owned());
    }
    match &effect.moves {
        Moves::Nothing => Err("not predicted: the model does not cover it".to_owned()),
        Moves::Nesting(factor) => Ok(*factor),
        Moves::Rates { exits, keep } => {
            if inputs.shares.iter().any(|share| exits.contains(&share.reason.as_str())) {
                Ok(*keep)
            } else {
                Err("the input has none of its exits".to_owned())
            }
        }
        Moves::Chain { exits, otherwise } => match &inputs.observed {
            Some(observed) if observed.undisturbed() > 0 => {
                observed.remains_without(exits).ok_or_else(|| "no gain: the chains have none of its exits".to_owned())
            }
            _ => otherwise.ok_or_else(|| "no published value, and no recording shows it".to_owned()),
        },
    }
}

/// CPU after these changes.
fn of(inputs: &Inputs, effects: &[&Effect], change: String, title: String) -> Predicted {
    let now = inputs.now();
    let [low, mid, high] = [0, 1, 2].map(|end| after(inputs, effects, end, end));
    // Savings at one end of the costs: least with the weakest effect, most with the strongest.
    let least = now.low - after(inputs, effects, 0, 2);
    let most = now.high - after(inputs, effects, 2, 0);
    let saved = Estimate { low: least.max(0.0), mid: (now.mid - mid).max(0.0), high: most.max(0.0) };
    let note = if now.mid > 1.0 { "more than one CPU: one vCPU cannot have all of these rates" } else { "" };
    Predicted {
        change,
        title,
        now,
        after: Some(Estimate { low, mid, high }),
        saved: Some(saved),
        note: note.to_owned(),
    }
}

/// CPU with costs and effects each at one end: 0 the least, 1 the most likely, 2 the most that remains.
fn after(inputs: &Inputs, effects: &[&Effect], cost: usize, effect: usize) -> f64 {
    let factors: Vec<(&Effect, f64)> =
        effects.iter().filter_map(|one| Some((*one, factor(inputs, one).ok()?.each()[effect]))).collect();
    let mut sum = inputs.rest;
    for share in &inputs.shares {
        let (mut kept, mut nested) = (1.0, 1.0);
        for (one, factor) in &factors {
            match &one.moves {
                Moves::Rates { exits, .. } if exits.contains(&share.reason.as_str()) => kept *= factor,
                Moves::Nesting(_) | Moves::Chain { .. } => nested *= factor,
                Moves::Rates { .. } | Moves::Nothing => {}
            }
        }
        sum += kept * (share.plain.each()[cost] + nested * share.nested.each()[cost]);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::inputs::{Rate, Stated};
    use super::*;

    fn stated(rates: &[(&str, f64, bool)]) -> Inputs {
        let rate = |(reason, per_second, userspace): &(&str, f64, bool)| Rate {
            level: 2,
            reason: (*reason).to_owned(),
            per_second: *per_second,
            userspace: *userspace,
        };
        Inputs::of_stated(&Stated {
            c1: Some(Estimate::exact(1_350.0)),
            d: Some(Estimate::exact(19_350.0)),
            hz: Some(2.4e9),
            guest: Some(0.10),
            rates: rates.iter().map(rate).collect(),
            ..Stated::default()
        })
    }

    fn row<'a>(rows: &'a [Predicted], change: &str) -> &'a Predicted {
        rows.iter().find(|row| row.change == change).unwrap_or_else(|| panic!("no row {change}"))
    }

    #[test]
    fn the_slides_cpuid_costs_with_the_enlightened_vmcs_what_they_measured() {
        // 10,000 CPUID of L2 a second at 20,700 cycles of 2.4 GHz, and then at 8,900.
        let inputs = stated(&[("CPUID", 10_000.0, false)]);
        assert!((inputs.now().mid - (0.10 + 10_000.0 * 20_700.0 / 2.4e9)).abs() < 1e-9);
        let rows = predict(&inputs, &Wanted { hyperv: true, ..Wanted::default() });
        let after = row(&rows, "evmcs").after.unwrap().mid;
        assert!((after - (0.10 + 10_000.0 * 8_900.0 / 2.4e9)).abs() < 1e-4, "{after}");
        assert!(rows.iter().all(|row| row.change != "shadow"), "there is no shadowing for guests of Hyper-V");
    }

    #[test]
    fn a_change_without_exits_in_the_input_is_not_predicted() {
        let rows = predict(&stated(&[("CPUID", 1_000.0, false)]), &Wanted::default());
        assert_eq!(row(&rows, "apicv").after, None);
        assert_eq!(row(&rows, "pinning").after, None);
        assert!(row(&rows, "shadow").after.is_some());
    }

    #[test]
    fn bands_hold_their_middle_and_together_is_no_less_than_any_alone() {
        let inputs = stated(&[("CPUID", 1_000.0, false), ("IO", 500.0, true), ("PREEMPTION_TIMER", 4_000.0, false)]);
        let rows = predict(&inputs, &Wanted::default());
        let together = rows.last().unwrap();
        assert_eq!((together.change.as_str(), together.title.as_str()), (TOGETHER, "shadow + timers + sriov"));
        for row in rows.iter().filter(|row| row.after.is_some()) {
            let (after, saved) = (row.after.unwrap(), row.saved.unwrap());
            assert!(after.low <= after.mid && after.mid <= after.high, "{row:?}");
            assert!(saved.low <= saved.mid && saved.mid <= saved.high, "{row:?}");
        }
        for id in ["shadow", "timers", "sriov"] {
            assert!(row(&rows, id).saved.unwrap().mid <= together.saved.unwrap().mid);
        }
    }

    #[test]
    fn what_is_on_already_saves_nothing_and_without_d_nothing_is_said() {
        let mut inputs = stated(&[("CPUID", 1_000.0, false)]);
        inputs.on = vec!["vmcs_shadowing".to_owned()];
        assert_eq!(row(&predict(&inputs, &Wanted::default()), "shadow").note, "already on");
        let rates = vec![Rate { level: 2, reason: "CPUID".into(), per_second: 1.0, userspace: false }];
        let without =
            Inputs::of_stated(&Stated { c1: Some(Estimate::exact(1.0)), hz: Some(1e9), rates, ..Stated::default() });
        assert!(without.shares.is_empty() && without.missing[0].contains("--d"));
    }
}
