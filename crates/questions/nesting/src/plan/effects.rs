//! What would a change move? The rows of `effects.toml`, typed.
//!
//! A change moves what nesting adds to each exit (a factor on it), or how often exits happen (what is kept of their rate).
//! Each states where its numbers come from; where nobody published one, the change can save anything between nothing and
//! all of its exits, and the row says so.

use base::Needs;
use facts::estimate::Estimate;
use facts::rows::rows;
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// What `--with` calls it.
    pub id: &'static str,
    /// In a few words.
    pub title: &'static str,
    pub moves: Moves,
    /// The feature of table `features` that is on when it has been made; empty: none shows it.
    #[serde(default)]
    pub feature: &'static str,
    pub needs: Needs,
    pub place: Place,
    /// True if it is part of the combination that is shown unasked.
    pub usual: bool,
    pub evidence: &'static str,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub enum Moves {
    /// What remains of the time that nesting adds to each exit.
    Nesting(Estimate),
    /// The same, told by the exits of L1 that fall away from each chain of a recording; else by the estimate, if any.
    Chain { exits: Vec<&'static str>, otherwise: Option<Estimate> },
    /// What remains of the rate of these exits.
    Rates { exits: Vec<&'static str>, keep: Estimate },
    /// Neither: the model has no word for it.
    Nothing,
}

/// Where a change is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Wherever guests run guests.
    Any,
    Vmx,
    /// On AMD.
    Svm,
    /// On Intel with Hyper-V as L0.
    Hyperv,
    /// On Intel with KVM as L0.
    VmxOnKvm,
}

pub static EFFECTS: LazyLock<Vec<Effect>> = LazyLock::new(|| rows(include_str!("effects.toml")));

/// The effect called `id`.
pub fn effect(id: &str) -> Option<&'static Effect> {
    EFFECTS.iter().find(|effect| effect.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::published::value;

    /// What remains of the added time, with 1,350 cycles of a plain exit (FOSDEM 2018) below both.
    fn remains(before: &str, after: &str) -> f64 {
        let c1 = value("fosdem18.cpuid.l1");
        (value(after) - c1) / (value(before) - c1)
    }

    fn factor(id: &str) -> Estimate {
        match effect(id).unwrap().moves {
            Moves::Nesting(factor)
            | Moves::Chain { otherwise: Some(factor), .. }
            | Moves::Rates { keep: factor, .. } => factor,
            Moves::Chain { otherwise: None, .. } | Moves::Nothing => panic!("{id} has no factor"),
        }
    }

    #[test]
    fn factors_are_those_of_the_published_records() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 0.005, "{a} and {b}");
        close(factor("evmcs").mid, remains("fosdem18.cpuid.l2", "fosdem18.cpuid.l2.evmcs"));
        close(factor("evmcs").high, remains("evmcs18.cpuid.l2", "evmcs18.cpuid.l2.evmcs"));
        close(factor("kernel").high, remains("xstate24.skylake.before", "xstate24.skylake.after"));
        close(factor("kernel").mid, remains("xstate24.icelake.before", "xstate24.icelake.after"));
        close(factor("kernel").low, remains("xstate24.emeraldrapids.before", "xstate24.emeraldrapids.after"));
        close(factor("shadow").high, 1.0 / 1.61);
        let pvm = |op: &str| {
            let at = |end: &str| value(&format!("pvm23.{op}.{end}"));
            (at("l2.pvm") - at("l1")) / (at("l2") - at("l1"))
        };
        close(factor("pvm").mid, pvm("exception"));
        close(factor("pvm").high, pvm("pio"));
    }

    #[test]
    fn every_effect_says_where_its_numbers_come_from_and_none_adds() {
        for effect in EFFECTS.iter() {
            assert!(!effect.evidence.is_empty());
            let (Moves::Nesting(factor)
            | Moves::Rates { keep: factor, .. }
            | Moves::Chain { otherwise: Some(factor), .. }) = effect.moves
            else {
                continue;
            };
            assert!(
                0.0 <= factor.low && factor.low <= factor.mid && factor.mid <= factor.high && factor.high <= 1.0,
                "{}",
                effect.id
            );
        }
    }
}
