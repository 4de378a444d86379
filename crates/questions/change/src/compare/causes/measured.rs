//! What is taken apart: its words, its unit, what of it is worth a word.

use super::tables;
use base::TableSpec;
use base::number::{decimals, duration, percent, thousands};

/// Shares of less than this, a tenth of a point, are no causes worth a word.
const LEAST_SHARE: f64 = 0.001;
/// Of a time before, the same.
const LEAST_OF_TIME: f64 = 0.01;

/// What is taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Measured {
    /// The time that vCPUs were busy, as a share of theirs.
    Busy,
    /// What the host took from them without being asked, likewise.
    Lost,
    /// The time that vCPUs were busy for each unit of work, in ns: `exit of L2`, `request`.
    PerWork(String),
    /// The time that a guest stood still while it was moved, in ns.
    Dark,
}

impl Measured {
    pub(crate) fn spec(&self) -> &'static TableSpec {
        match self {
            Measured::Busy => &tables::CAUSES,
            Measured::Lost => &tables::LOSSES,
            Measured::PerWork(_) => &tables::PER_WORK,
            Measured::Dark => &tables::DARK,
        }
    }

    /// The unit of work, where it is measured by that.
    pub(crate) fn work(&self) -> Option<&str> {
        match self {
            Measured::PerWork(work) => Some(work),
            Measured::Busy | Measured::Lost | Measured::Dark => None,
        }
    }

    /// How long one of `often` took, in ns, if all of them took `amount`.
    pub(crate) fn each_ns(&self, amount: f64, often: f64) -> f64 {
        match self {
            Measured::Busy | Measured::Lost => amount / often * 1e9,
            Measured::PerWork(_) | Measured::Dark => amount / often,
        }
    }

    /// The least that is worth a word, where all was `before`.
    pub(crate) fn least(&self, before: f64) -> f64 {
        match self {
            Measured::Busy | Measured::Lost => LEAST_SHARE,
            Measured::PerWork(_) | Measured::Dark => before * LEAST_OF_TIME,
        }
    }

    /// `vCPUs were busy 36.0 % of their time, 63.0 % before (-27.0 points)`.
    pub(crate) fn whole(&self, before: f64, after: f64) -> String {
        let difference = self.difference(after - before);
        match self {
            Measured::Busy => {
                format!("vCPUs were busy {} of their time, {} before ({difference})", percent(after), percent(before))
            }
            Measured::Lost => {
                format!(
                    "The host took {} of the vCPUs' time, {} before ({difference})",
                    percent(after),
                    percent(before)
                )
            }
            Measured::PerWork(work) => {
                let [before, after] = [before, after].map(time);
                format!("Each {work} takes {after} of vCPU time, {before} before ({difference})")
            }
            Measured::Dark => {
                let [before, after] = [before, after].map(time);
                format!("The guest was dark for {after}, {before} before ({difference})")
            }
        }
    }

    /// `-28.1 points`, `-0.4 ms`.
    pub(crate) fn difference(&self, amount: f64) -> String {
        let (text, is_zero) = match self {
            Measured::Busy | Measured::Lost => {
                let text = decimals(amount * 100.0, 1);
                let is_zero = text == "0.0";
                (format!("{text} points"), is_zero)
            }
            Measured::PerWork(_) | Measured::Dark => {
                (format!("{}{}", if amount < 0.0 { "-" } else { "" }, time(amount.abs())), false)
            }
        };
        let sign = if amount > 0.0 && !is_zero { "+" } else { "" };
        format!("{sign}{text}")
    }

    /// How often, before and after: `140,000 exits/s before, 10,000 after`.
    pub(crate) fn rates(&self, before: f64, after: f64) -> String {
        let whole = |value: f64| thousands(value.round() as u64);
        let [one, two] = [before, after].map(|value| match self {
            Measured::PerWork(_) | Measured::Dark => decimals(value, 1),
            _ => whole(value),
        });
        match self {
            Measured::Busy => format!("{one} exits/s before, {two} after"),
            Measured::Lost => format!("{one} times/s before, {two} after"),
            Measured::PerWork(_) | Measured::Dark => format!("{one} exits each before, {two} after"),
        }
    }
}

fn time(ns: f64) -> String {
    duration(ns)
}
