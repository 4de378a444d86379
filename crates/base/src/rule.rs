//! What a rule says of itself, whatever it looks at: `kvmscope explain RULE` prints it.

use crate::{FactKind, Needs};
use serde::Serialize;

/// An amount from which on something is worth a finding: the very constant that the check compares with.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Limit {
    /// What is compared with it.
    pub what: &'static str,
    /// The amount.
    pub amount: f64,
    /// Its unit, as costs have it.
    pub unit: &'static str,
}

/// What is compared with that amount.
pub const fn limit(what: &'static str, amount: f64, unit: &'static str) -> Limit {
    Limit { what, amount, unit }
}

/// What a rule says of itself, whatever it looks at.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Words {
    /// Its name.
    pub id: &'static str,
    /// What has at most one such finding.
    pub per: &'static str,
    /// What its check looks at.
    pub looks_at: &'static str,
    /// What has to be known before it can be judged.
    pub requires: &'static [FactKind],
    /// From where on it is worth a finding.
    pub limits: &'static [Limit],
    /// Why this happens or costs.
    pub why: &'static str,
    /// What to type, with words such as `DOMAIN` for what only a finding knows.
    pub fix: &'static [&'static str],
    /// The way back.
    pub undo: &'static [&'static str],
    /// What the change needs.
    pub needs: Needs,
    /// Where the claim comes from.
    pub source: &'static str,
}
