//! Where does a difference of CPU time come from, and which setting may be the cause?
//!
//! ```text
//! busy = sum of shares: guests' own code, work on exits by level and reason, the VMM, polling, interrupts of the host
//! share of exits = n c         n exits a second, c each takes
//! difference     = (n2 - n1)(c1 + c2) / 2  +  (c2 - c1)(n1 + n2) / 2        how often, how long each takes
//! ```
//! Both sums close: the rows are the difference in all, and how often and how long are that of each row. In: the recordings of both sides, and what
//! was set up differently. Out: table [`CAUSES`] and a sentence. Times of guests' own traces are left out where the host's own are there.

mod effects;
mod shares;

use super::ID;
use super::configuration::Difference;
use crate::Case;
use crate::statistics::holm;
use crate::statistics::student::Welch;
use base::number::{decimals, list, percent};
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};
use effects::{EFFECTS, Moves};
use shares::{Component, Shares, Spent};
use std::collections::BTreeSet;

const F64: ColumnType = ColumnType::F64;

/// Where the difference comes from.
pub const CAUSES: TableSpec = TableSpec {
    section: ID,
    name: "causes",
    version: 1,
    row: "One part of the time that vCPUs were busy, as shares of their time before and after, largest difference first; `all` is their sum. Of work on exits, \
          `by_rate` is the difference because they happen more or less often and `by_cost` because each takes longer or shorter; both sum up to it. Low and high \
          are its 95 % interval over recordings; missing for one recording a side. `setting` is what was set up differently and may be the cause.",
    columns: &[
        Column::key("part"),
        Column::share("before"),
        Column::share("after"),
        Column::value("difference", "share", F64),
        Column::value("low", "share", F64),
        Column::value("high", "share", F64),
        Column::value("by_rate", "share", F64),
        Column::value("by_cost", "share", F64),
        Column::value("exits_per_s_before", "exits/s", F64),
        Column::value("exits_per_s_after", "exits/s", F64),
        Column::value("cost_before_ns", "ns", F64),
        Column::value("cost_after_ns", "ns", F64),
        Column::text("setting"),
        Column::text("verdict"),
        Column::text("source"),
    ],
    shown: Some(Shown {
        whole: &["part", "setting"],
        ..Shown::of(
            "Where the CPU time of vCPUs went",
            &[
                ("part", "busy with"),
                ("before", "before"),
                ("after", "after"),
                ("by_rate", "by how often"),
                ("by_cost", "by how long"),
                ("setting", "because of"),
                ("verdict", "verdict"),
            ],
            12,
        )
    }),
};

/// Parts of a difference that are named in the sentence.
const NAMED: usize = 3;
/// A part that is less of the vCPUs' time than this, a tenth of a point, is one of the others.
const LEAST: f64 = 0.001;

/// One part of the difference.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cause {
    pub part: String,
    pub before: Spent,
    pub after: Spent,
    pub interval: Option<(f64, f64)>,
    /// Whether it holds together with all others; `None`: one recording a side.
    pub holds: Option<bool>,
    /// What was set up differently and may be the cause, and where it says that it would be.
    pub setting: Option<(String, &'static str)>,
}

impl Cause {
    fn difference(&self) -> f64 {
        self.after.share - self.before.share
    }

    /// Because of how often, and of how long each takes; `None` for what is no work on exits.
    fn parted(&self) -> Option<(f64, f64)> {
        let (one, two) = (self.before, self.after);
        let (n1, n2) = (one.per_s?, two.per_s?);
        // What never happened took as long as on the other side.
        let cost = |of: Spent, n: f64| if n > 0.0 { Some(of.share / n) } else { None };
        let (c1, c2) = (cost(one, n1).or(cost(two, n2))?, cost(two, n2).or(cost(one, n1))?);
        Some(((n2 - n1) * (c1 + c2) / 2.0, (c2 - c1) * (n1 + n2) / 2.0))
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Causes {
    pub list: Vec<Cause>,
    pub all: Cause,
}

/// What differs between the sides; `None` where one of them has no vCPUs' time.
pub(super) fn causes(before: &[&Case], after: &[&Case], configured: &[Difference]) -> Option<Causes> {
    let shares = |side: &[&Case]| side.iter().map(|case| Shares::of(case)).collect::<Option<Vec<Shares>>>();
    Some(between(&shares(before)?, &shares(after)?, configured))
}

fn between(one: &[Shares], two: &[Shares], configured: &[Difference]) -> Causes {
    let parts: BTreeSet<&Component> = one.iter().chain(two).flat_map(|shares| shares.parts.keys()).collect();
    let cause = |part: String, of: &dyn Fn(&Shares) -> Spent, setting| {
        let [values_before, values_after] = [one, two].map(|side| side.iter().map(of).collect::<Vec<Spent>>());
        let share = |values: &[Spent]| values.iter().map(|spent| spent.share).collect::<Vec<f64>>();
        let welch = Welch::of(&share(&values_before), &share(&values_after));
        let cause = Cause {
            part,
            before: Spent::mean(&values_before),
            after: Spent::mean(&values_after),
            interval: welch.map(|welch| welch.interval),
            holds: None,
            setting,
        };
        (cause, welch.map(|welch| welch.chance))
    };
    let of_part = |part: &Component| {
        let setting = setting_of(part, configured);
        cause(
            part.title(),
            &|shares: &Shares| shares.parts.get(part).copied().unwrap_or_else(|| part.nothing()),
            setting,
        )
    };
    let (mut list, chances): (Vec<Cause>, Vec<Option<f64>>) = parts.into_iter().map(of_part).unzip();
    let tested: Vec<f64> = chances.iter().flatten().copied().collect();
    let mut held = holm::hold(&tested).into_iter();
    for (cause, _) in list.iter_mut().zip(&chances).filter(|(_, chance)| chance.is_some()) {
        cause.holds = held.next();
    }
    list.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()).then_with(|| a.part.cmp(&b.part)));
    let (mut all, chance) =
        cause("all".to_owned(), &|shares: &Shares| Spent { share: shares.busy(), per_s: None }, None);
    all.holds = chance.map(|chance| holm::hold(&[chance]).first().copied().unwrap_or(false));
    Causes { list, all }
}

/// What was set up differently that is known to move this part.
fn setting_of(part: &Component, configured: &[Difference]) -> Option<(String, &'static str)> {
    let source = |difference: &Difference| {
        let words: Vec<&str> =
            [&difference.before, &difference.after].into_iter().filter_map(Option::as_deref).collect();
        EFFECTS.iter().filter(|effect| effect.is_of(&difference.setting, &words)).find(|effect| match effect.moves {
            Moves::Rate(depth, reasons) => {
                part.level() == difference.level.map(|level| level + depth) && reasons.contains(&part.reason())
            }
            Moves::Cost => part.is_work(),
            Moves::Polling => part.is_polling(),
        })
    };
    let known = configured.iter().filter_map(|difference| Some((difference.named(), source(difference)?.source)));
    let (named, sources): (Vec<String>, Vec<&str>) = known.unzip();
    Some((list(&named), *sources.first()?))
}

impl Causes {
    /// `vCPUs were busy 47.0 % of their time after, 78.0 % before: -28.1 points ..`
    pub fn sentence(&self) -> String {
        let all = self.all.difference();
        let (before, after) = (percent(self.all.before.share), percent(self.all.after.share));
        let whole = format!("vCPUs were busy {after} of their time, {before} before ({})", points(all));
        let known: Vec<&Cause> = self.list.iter().filter(|cause| cause.is_known()).collect();
        let explained: f64 = known.iter().map(|cause| cause.difference()).sum();
        let mut parts = Vec::new();
        if known.is_empty() {
            let most = self.list.iter().filter(|cause| cause.is_seen()).take(NAMED);
            parts.extend(most.map(|cause| format!("{} {}", points(cause.difference()), cause.said())));
        } else {
            let settings: BTreeSet<&str> = known.iter().filter_map(|cause| cause.named()).collect();
            for setting in settings {
                let of: Vec<&&Cause> = known.iter().filter(|cause| cause.named() == Some(setting)).collect();
                let sum: f64 = of.iter().map(|cause| cause.difference()).sum();
                let said: Vec<String> = of.iter().take(NAMED).map(|cause| cause.said()).collect();
                parts.push(format!("{} {}, possible cause: {setting}", points(sum), list(&said)));
            }
            parts.push(format!("{} unexplained by what was set up differently", points(all - explained)));
        }
        if parts.is_empty() { format!("{whole}.") } else { format!("{whole}: {}.", parts.join("; ")) }
    }

    pub fn table(&self) -> Table {
        let mut table = Table::new(&CAUSES);
        for cause in std::iter::once(&self.all).chain(&self.list) {
            let (by_rate, by_cost) = cause.parted().unzip();
            let real = |value: Option<f64>| value.map_or(Cell::Missing, Cell::F64);
            let (low, high) = cause.interval.unzip();
            let verdict = match (cause.holds, cause.difference() > 0.0) {
                (None, _) => "one run a side",
                (Some(false), _) => "noise could explain it",
                (Some(true), true) => "higher",
                (Some(true), false) => "lower",
            };
            table.push(vec![
                cause.part.as_str().into(),
                cause.before.share.into(),
                cause.after.share.into(),
                cause.difference().into(),
                real(low),
                real(high),
                real(by_rate),
                real(by_cost),
                real(cause.before.per_s),
                real(cause.after.per_s),
                real(cause.before.cost_ns()),
                real(cause.after.cost_ns()),
                cause.named().map_or(Cell::Missing, Cell::from),
                verdict.into(),
                cause.setting.as_ref().map_or(Cell::Missing, |(_, source)| (*source).into()),
            ]);
        }
        table
    }
}

impl Cause {
    fn is_seen(&self) -> bool {
        self.difference().abs() >= LEAST && self.holds != Some(false)
    }

    fn is_known(&self) -> bool {
        self.is_seen() && self.setting.is_some()
    }

    fn named(&self) -> Option<&str> {
        self.setting.as_ref().map(|(named, _)| named.as_str())
    }

    /// `from VMREAD of L1, of which there were 12,000 a second and are 0`.
    fn said(&self) -> String {
        let rates = self.before.per_s.zip(self.after.per_s);
        match rates {
            Some((one, two)) => format!("from {} ({} exits/s before, {} after)", self.part, rounded(one), rounded(two)),
            None => format!("from {}", self.part),
        }
    }
}

/// `-28.1 points`.
fn points(share: f64) -> String {
    let text = decimals(share * 100.0, 1);
    let sign = if share > 0.0 && text != "0.0" { "+" } else { "" };
    format!("{sign}{text} points")
}

fn rounded(value: f64) -> String {
    base::number::thousands(value.round() as u64)
}

#[cfg(test)]
mod tests;
