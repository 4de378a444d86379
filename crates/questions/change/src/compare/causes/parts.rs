//! What a recording's time is taken apart into, and what each part took.

use std::collections::{BTreeMap, BTreeSet};

/// How the name of a state begins in which KVM worked on an exit of a guest of that level.
const HANDLING: &str = "handling_l";
const USERSPACE: &str = "userspace";
const POLLING: &str = "halt_poll";

/// A part of the time, by the state's name and title and the reason of the exit that was worked on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Component {
    state: String,
    title: String,
    reason: String,
    /// What the host took, rather than what vCPUs were busy with.
    is_lost: bool,
}

impl Component {
    /// One of that state, by the names that columns and people have for it, and of that reason.
    pub(super) fn new(state: &str, title: &str, reason: &str) -> Self {
        Self { state: state.to_owned(), title: title.to_owned(), reason: reason.to_owned(), is_lost: false }
    }

    /// Time that the host took in that state.
    pub(super) fn lost(state: &str, title: String) -> Self {
        Self { state: state.to_owned(), title, reason: String::new(), is_lost: true }
    }

    /// `VMREAD of L1`: what people call it.
    pub(super) fn title(&self) -> String {
        match (self.level(), self.reason.as_str()) {
            (_, "") => self.title.clone(),
            (Some(level), reason) => format!("{reason} of L{level}"),
            (None, reason) => format!("{reason}, {}", self.title),
        }
    }

    /// Its state, by the names that columns and people have for it.
    pub(super) fn kind(&self) -> (String, String) {
        let words = match self.state.as_str() {
            "handling" => "work on exits".to_owned(),
            state if self.is_lost => state.replace('_', " "),
            _ => self.title.clone(),
        };
        (self.state.clone(), words)
    }

    /// The level of the guest whose exits are worked on.
    pub(super) fn level(&self) -> Option<u8> {
        self.state.strip_prefix(HANDLING).filter(|_| !self.is_lost)?.parse().ok()
    }

    pub(super) fn state(&self) -> &str {
        &self.state
    }

    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// KVM or the VMM works on exits.
    pub(super) fn is_work(&self) -> bool {
        self.level().is_some() || self.state == USERSPACE && !self.is_lost
    }

    pub(super) fn is_polling(&self) -> bool {
        self.state == POLLING
    }

    /// What it took where it was not seen.
    pub(super) fn nothing(&self) -> Spent {
        let is_counted = self.is_lost || self.level().is_some() && !self.reason.is_empty();
        Spent { amount: 0.0, often: is_counted.then_some(0.0) }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    /// Of the vCPUs' time; for a unit of work, ns.
    pub amount: f64,
    /// How often, in a second or for a unit of work, where that is counted.
    pub often: Option<f64>,
}

impl Spent {
    pub(crate) fn mean(values: &[Self]) -> Self {
        let mean = |of: &dyn Fn(&Self) -> f64| values.iter().map(of).sum::<f64>() / values.len().max(1) as f64;
        let are_counted = values.iter().any(|spent| spent.often.is_some());
        Self {
            amount: mean(&|spent| spent.amount),
            often: are_counted.then(|| mean(&|spent| spent.often.unwrap_or(0.0))),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Parts {
    pub parts: BTreeMap<Component, Spent>,
}

impl Parts {
    /// Out of ns and counts in `wall_ns` of vCPUs' time.
    pub(super) fn of_time(times: impl Iterator<Item = (Component, u64, u64)>, wall_ns: u64) -> Self {
        let spent = |(part, ns, count): (Component, u64, u64)| {
            let often = part.nothing().often.map(|_| count as f64 / (wall_ns as f64 / 1e9));
            (part, Spent { amount: ns as f64 / wall_ns as f64, often })
        };
        Self { parts: times.map(spent).collect() }
    }

    /// The same for each of so many units of work in a second of vCPUs' time.
    pub(super) fn per_work(&self, per_s: f64) -> Self {
        let each =
            |spent: &Spent| Spent { amount: spent.amount * 1e9 / per_s, often: spent.often.map(|often| often / per_s) };
        Self { parts: self.parts.iter().map(|(part, spent)| (part.clone(), each(spent))).collect() }
    }

    /// Of several; what one of them lacks took nothing there.
    pub(super) fn mean(all: &[Self]) -> Self {
        let names: BTreeSet<&Component> = all.iter().flat_map(|parts| parts.parts.keys()).collect();
        let of = |part: &Component| {
            let values = all.iter().map(|parts| parts.parts.get(part).copied().unwrap_or_else(|| part.nothing()));
            (part.clone(), Spent::mean(&values.collect::<Vec<Spent>>()))
        };
        Self { parts: names.into_iter().map(of).collect() }
    }

    pub(super) fn sum(&self) -> f64 {
        self.parts.values().map(|spent| spent.amount).sum()
    }
}
