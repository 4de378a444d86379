//! What can be wrong with who runs where: rules as data.
//!
//! Each row says what it is called, why it costs, what being wrong about it would cost, what to type, what that needs and
//! where the claim comes from; its `check` returns what it saw. A rule that lacks a fact stays silent.

mod devices;
mod evidence;
mod guest;
mod host;
mod proposal;
mod threads;

pub(crate) use proposal::PROPOSAL;

use super::model::Model;
use base::rule::Words;
use facts::rule::Hit;

pub type Rule = facts::rule::Rule<fn(&Model) -> Vec<Hit>>;

/// All rules, in the order in which equal findings are shown.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [threads::RULES, evidence::RULES, devices::RULES, guest::RULES, host::RULES, proposal::RULES].into_iter().flatten()
}

pub fn words() -> Vec<Words> {
    rules().map(Rule::words).collect()
}
