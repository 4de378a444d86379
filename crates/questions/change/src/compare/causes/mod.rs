//! Where does a difference come from, and which setting may be the cause?
//!
//! ```text
//! busy = sum of shares: guests' own code, work on exits by level and reason, the VMM, polling, interrupts of the host        `busy`
//! lost = sum of shares: who ran instead, interrupts, waking up, ..                                                          `lost`
//! dark = sum of times: devices and steps of both sides of a migration                                                     `dark`
//! each unit of work = busy / units of work in a second         exits of a nested guest, what marks count
//! one part     = n c           it happens n times, c each takes
//! difference   = (n2 - n1)(c1 + c2) / 2  +  (c2 - c1)(n1 + n2) / 2        how often, how long each takes
//! ```
//! Both sums close: the rows are the difference in all, and how often and how long are that of each row. In: the recordings of both sides, and what
//! was set up differently. Out: a table for each that is `measured`, and a sentence. Times of guests' own traces are left out where the host's own
//! are there.

mod busy;
mod dark;
mod effects;
mod figures;
mod lost;
mod measured;
mod parts;
pub(crate) mod tables;

use super::configuration::Difference;
use base::number::{list, thousands};
use base::{Figure, Table};
use busy::Busy;
use effects::{EFFECTS, Moves};
use facts::Case;
use facts::statistics::holm;
use facts::statistics::student::Welch;
use measured::Measured;
use parts::{Component, Parts, Spent};
use std::collections::BTreeSet;

/// Parts of a difference that are named in the sentence.
const NAMED: usize = 3;
/// A load that changed by more than this is not the same: our own limit.
const SAME_LOAD: f64 = 0.1;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cause {
    pub part: String,
    /// The state that it is time in, by the names that columns and people have for it.
    pub kind: (String, String),
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
        self.after.amount - self.before.amount
    }

    /// Because of how often, and of how long each takes; `None` for what is no work on exits.
    fn parted(&self) -> Option<(f64, f64)> {
        let (one, two) = (self.before, self.after);
        let (n1, n2) = (one.often?, two.often?);
        // What never happened took as long as on the other side.
        let cost = |of: Spent, n: f64| if n > 0.0 { Some(of.amount / n) } else { None };
        let (c1, c2) = (cost(one, n1).or(cost(two, n2))?, cost(two, n2).or(cost(one, n1))?);
        Some(((n2 - n1) * (c1 + c2) / 2.0, (c2 - c1) * (n1 + n2) / 2.0))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Causes {
    pub measured: Measured,
    pub list: Vec<Cause>,
    pub all: Cause,
}

/// Everything that could be taken apart.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub tables: Vec<Table>,
    pub figures: Vec<Figure>,
    pub sentences: Vec<String>,
}

/// What differs between the sides; nothing where one of them has no vCPUs' time.
pub(super) fn told(before: &[&Case], after: &[&Case], configured: &[Difference]) -> Told {
    let busy = |side: &[&Case]| side.iter().map(|case| Busy::of(case)).collect::<Option<Vec<Busy>>>();
    let lost = |side: &[&Case]| side.iter().map(|case| lost::of(case)).collect::<Option<Vec<Parts>>>();
    let mut told = Told::default();
    if let (Some(one), Some(two)) = (busy(before), busy(after)) {
        let parts = |side: &[Busy]| side.iter().map(|busy| busy.parts.clone()).collect::<Vec<Parts>>();
        let in_all = between(Measured::Busy, &parts(&one), &parts(&two), configured);
        let per_work = per_work(&one, &two, configured);
        // More of everything is no cause: of another load only what each unit took is taken apart in words.
        let is_same_load = per_work.iter().all(|(load, _)| load.is_empty());
        told.sentences.push(if is_same_load { in_all.sentence() } else { in_all.whole() + "." });
        told.sentences.extend(per_work.iter().map(|(load, each)| load.clone() + &each.sentence()));
        told.figures.extend(figures::staircase(&in_all, "causes".into()));
        told.tables.extend(tables::table(&[in_all]));
        let each: Vec<Causes> = per_work.into_iter().map(|(_, each)| each).collect();
        let pictures = each.iter().enumerate();
        told.figures.extend(pictures.filter_map(|(at, each)| figures::staircase(each, format!("per-work-{at}"))));
        told.tables.extend(tables::table(&each));
    }
    if let (Some(one), Some(two)) = (lost(before), lost(after)) {
        let lost = between(Measured::Lost, &one, &two, configured);
        told.sentences.extend(lost.is_any().then(|| lost.sentence()));
        told.figures.extend(figures::staircase(&lost, "lost".into()));
        told.tables.extend(tables::table(&[lost]).filter(|table| table.rows().count() > 1));
    }
    let (one, two) = (dark::of(before), dark::of(after));
    if !one.is_empty() && !two.is_empty() {
        let dark = between(Measured::Dark, &one, &two, configured);
        told.sentences.push(dark.sentence());
        told.tables.extend(tables::table(&[dark]));
    }
    told
}

/// The same for each unit of work that all recordings count, with a sentence about the load where that was not the same.
fn per_work(one: &[Busy], two: &[Busy], configured: &[Difference]) -> Vec<(String, Causes)> {
    let counted = |work: &&String| one.iter().chain(two).all(|busy| busy.work.contains_key(*work));
    let works: Vec<&String> =
        one.iter().flat_map(|busy| busy.work.keys()).collect::<BTreeSet<_>>().into_iter().collect();
    let of = |work: &String| {
        let parts =
            |side: &[Busy]| side.iter().map(|busy| busy.parts.per_work(busy.work[work])).collect::<Vec<Parts>>();
        let mean = |side: &[Busy]| side.iter().map(|busy| busy.work[work]).sum::<f64>() / side.len() as f64;
        let (before, after) = (mean(one), mean(two));
        let is_same = (after / before - 1.0).abs() <= SAME_LOAD;
        let [whole_before, whole_after] = [before, after].map(|per_s| thousands(per_s.round() as u64));
        let load = if is_same {
            String::new()
        } else {
            let units = plural(work);
            format!(
                "The rate of work changed, with the change or by another load: {whole_before} {units} in a second of vCPU time \
                 before, {whole_after} after. "
            )
        };
        (load, between(Measured::PerWork(work.clone()), &parts(one), &parts(two), configured))
    };
    works.into_iter().filter(counted).map(of).collect()
}

/// `exits of L2`; units in capitals, as GB, have no other plural.
fn plural(work: &str) -> String {
    let (first, rest) = work.split_at(work.find(' ').unwrap_or(work.len()));
    if first.chars().any(char::is_lowercase) { format!("{first}s{rest}") } else { work.to_owned() }
}

fn between(measured: Measured, one: &[Parts], two: &[Parts], configured: &[Difference]) -> Causes {
    let parts: BTreeSet<&Component> = one.iter().chain(two).flat_map(|parts| parts.parts.keys()).collect();
    let cause = |part: String, kind: (String, String), of: &dyn Fn(&Parts) -> Spent, setting| {
        let [values_before, values_after] = [one, two].map(|side| side.iter().map(of).collect::<Vec<Spent>>());
        let amount = |values: &[Spent]| values.iter().map(|spent| spent.amount).collect::<Vec<f64>>();
        let welch = Welch::of(&amount(&values_before), &amount(&values_after));
        let cause = Cause {
            part,
            kind,
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
        let of = |parts: &Parts| parts.parts.get(part).copied().unwrap_or_else(|| part.nothing());
        cause(part.title(), part.kind(), &of, setting)
    };
    let (mut list, chances): (Vec<Cause>, Vec<Option<f64>>) = parts.into_iter().map(of_part).unzip();
    let tested: Vec<f64> = chances.iter().flatten().copied().collect();
    let mut held = holm::hold(&tested).into_iter();
    for (cause, _) in list.iter_mut().zip(&chances).filter(|(_, chance)| chance.is_some()) {
        cause.holds = held.next();
    }
    list.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()).then_with(|| a.part.cmp(&b.part)));
    let sum = |parts: &Parts| Spent { amount: parts.sum(), often: None };
    let (mut all, chance) = cause("all".to_owned(), Default::default(), &sum, None);
    all.holds = chance.map(|chance| holm::hold(&[chance]).first().copied().unwrap_or(false));
    Causes { measured, list, all }
}

fn setting_of(part: &Component, configured: &[Difference]) -> Option<(String, &'static str)> {
    let source = |difference: &Difference| {
        let words: Vec<&str> =
            [&difference.before, &difference.after].into_iter().filter_map(Option::as_deref).collect();
        EFFECTS.iter().filter(|effect| effect.is_of(&difference.setting, difference.area, &words)).find(|effect| {
            match effect.moves {
                Moves::Rate(depth, reasons) => {
                    part.level() == difference.level.map(|level| level + depth) && reasons.contains(&part.reason())
                }
                Moves::Cost => part.is_work(),
                Moves::Polling => part.is_polling(),
                Moves::Lost(states) => part.is_lost() && states.contains(&part.state()),
            }
        })
    };
    let known = configured.iter().filter_map(|difference| Some((difference.named(), source(difference)?.source)));
    let (named, sources): (Vec<String>, Vec<&str>) = known.unzip();
    Some((list(&named), *sources.first()?))
}

impl Causes {
    /// `vCPUs were busy 47.0 % of their time after, 78.0 % before: -28.1 points ..`
    fn sentence(&self) -> String {
        let (all, whole) = (self.all.difference(), self.whole());
        let least = self.measured.least(self.all.before.amount);
        let seen: Vec<&Cause> = self.list.iter().filter(|cause| cause.is_seen(least)).collect();
        let known: Vec<&Cause> = seen.iter().copied().filter(|cause| cause.setting.is_some()).collect();
        let explained: f64 = known.iter().map(|cause| cause.difference()).sum();
        let difference = |amount: f64| self.measured.difference(amount);
        let mut parts = Vec::new();
        if known.is_empty() {
            parts.extend(
                seen.iter().take(NAMED).map(|cause| format!("{} {}", difference(cause.difference()), self.said(cause))),
            );
        } else {
            let settings: BTreeSet<&str> = known.iter().filter_map(|cause| cause.named()).collect();
            for setting in settings {
                let of: Vec<&&Cause> = known.iter().filter(|cause| cause.named() == Some(setting)).collect();
                let sum: f64 = of.iter().map(|cause| cause.difference()).sum();
                let said: Vec<String> = of.iter().take(NAMED).map(|cause| self.said(cause)).collect();
                parts.push(format!("{} {}, possible cause: {setting}", difference(sum), list(&said)));
            }
            parts.push(format!("{} unexplained by what was set up differently", difference(all - explained)));
        }
        if parts.is_empty() { format!("{whole}.") } else { format!("{whole}: {}.", parts.join("; ")) }
    }

    /// Without what it consists of.
    fn whole(&self) -> String {
        self.measured.whole(self.all.before.amount, self.all.after.amount)
    }

    /// `from VMREAD of L1 (12,000 exits/s before, 0 after)`.
    fn said(&self, cause: &Cause) -> String {
        match cause.before.often.zip(cause.after.often) {
            Some((one, two)) => format!("from {} ({})", cause.part, self.measured.rates(one, two)),
            None => format!("from {}", cause.part),
        }
    }

    /// True if there was anything on either side.
    fn is_any(&self) -> bool {
        self.all.before.amount + self.all.after.amount > 0.0
    }
}

impl Cause {
    fn is_seen(&self, least: f64) -> bool {
        self.difference().abs() >= least && self.holds != Some(false)
    }

    fn named(&self) -> Option<&str> {
        self.setting.as_ref().map(|(named, _)| named.as_str())
    }
}

#[cfg(test)]
mod tests;
