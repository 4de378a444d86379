//! What changed between two benches, test by test?
//!
//! ```text
//! before   launch 1 .. n: the median of each  --\   ratio of medians, with a bootstrap interval
//! after    launch 1 .. m: the median of each  --/   ranks: Mann-Whitney U and its p
//! ```
//! Launches are the repetitions, never the samples of one. A change is called one only if both agree: the interval leaves 1
//! out, and ranks as lopsided would come by chance in less than one case of twenty. Two sets of three cannot say that.

use super::disturbed::{self, Measurements};
use super::ratio::Verdict;
use base::bench::Measured;
use base::number::many;
use base::{Cell, Shown, Table, TableSpec, shown, table};
use facts::benches::Benches;
use facts::statistics::ranks::{Ranks, mann_whitney};
use facts::statistics::{launches, spread};
use std::collections::BTreeMap;

/// The chance that is taken of calling nothing a change.
const CHANCE: f64 = 0.05;
/// With fewer launches on either side no ranks are as rare as that.
const FEWEST: usize = 4;
/// Beginnings of names of the environment that differ from run to run.
const UNSTEADY: &[&str] = &[base::bench::NS_PER_TICK, "MHz"];

pub(crate) struct Side {
    /// The values of each test, one of each launch, in the order in which tests were first measured.
    tests: Vec<(Key, Measurements)>,
    environment: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// Its name, with what was read or run.
    pub test: String,
    /// `here` or `guest`; empty for whole programs.
    pub place: String,
    pub ring: Option<u8>,
    /// Unit of its values.
    pub unit: String,
}

/// A test of both sides.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    pub key: Key,
    before: Measurements,
    after: Measurements,
}

/// True of a test's launch, and of a program's run; false of what is repeated as a whole (throughput).
pub(super) fn is_test(measured: &Measured) -> bool {
    !measured.hdr.is_empty() || measured.params.command.is_some()
}

impl Side {
    /// The benches of the recordings of a side; what cannot be read is told by `report`.
    pub(crate) fn of<'b>(recordings: impl Iterator<Item = &'b Benches>) -> Self {
        let mut side = Self { tests: Vec::new(), environment: BTreeMap::new() };
        for bench in recordings.flat_map(|benches| &benches.runs).map(|run| &run.bench) {
            for measured in bench.results.iter().filter(|result| is_test(result)) {
                let Some(value) = launches::median(measured) else { continue };
                let key = Key::of(measured);
                let place = side.tests.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
                    side.tests.push((key, Measurements::default()));
                    side.tests.len() - 1
                });
                side.tests[place].1.push(value, &measured.interference);
            }
            side.environment.extend(bench.environment.clone());
        }
        side
    }
}

impl Side {
    /// Of each test the median over its launches, by its name, place, ring and unit.
    pub(crate) fn medians(&self) -> Vec<(String, f64)> {
        let median = |(key, launches): &(Key, Measurements)| Some((key.to_string(), spread::median(&launches.values)?));
        self.tests.iter().filter_map(median).collect()
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.test)?;
        if !self.place.is_empty() {
            write!(f, " {}", self.place)?;
        }
        if let Some(ring) = self.ring {
            write!(f, " ring {ring}")?;
        }
        write!(f, ", {}", self.unit)
    }
}

impl Key {
    fn of(measured: &Measured) -> Self {
        let params = &measured.params;
        let what = [&params.clock, &params.source, &params.command, &params.content, &params.memory];
        let what = what.into_iter().map(Option::as_deref);
        let words = std::iter::once(measured.name.as_str()).chain(what.flatten());
        Self {
            test: words.collect::<Vec<_>>().join(" "),
            place: params.place.clone(),
            ring: params.ring,
            unit: measured.unit.clone(),
        }
    }
}

impl Changed {
    /// Medians before and after.
    fn medians(&self) -> Option<(f64, f64)> {
        spread::median(&self.before.values).zip(spread::median(&self.after.values))
    }

    /// After to before.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.medians().filter(|(before, _)| *before > 0.0).map(|(before, after)| after / before)
    }

    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        spread::ratio_interval(&self.before.values, &self.after.values)
    }

    pub(crate) fn ranks(&self) -> Option<Ranks> {
        mann_whitney(&self.before.values, &self.after.values)
    }

    /// What both say, and still say without the launches that were disturbed.
    pub(crate) fn verdict(&self) -> Verdict {
        let of_all = judge(&self.before.values, &self.after.values);
        disturbed::without(of_all, [&self.before, &self.after], FEWEST, judge)
    }
}

/// What interval and ranks say of launches before and after.
fn judge(before: &[f64], after: &[f64]) -> Verdict {
    if before.len().min(after.len()) < FEWEST {
        return Verdict::Unknown;
    }
    match (spread::ratio_interval(before, after), mann_whitney(before, after)) {
        (Some((low, _)), Some(ranks)) if low > 1.0 && ranks.p < CHANCE => Verdict::Higher,
        (Some((_, high)), Some(ranks)) if high < 1.0 && ranks.p < CHANCE => Verdict::Lower,
        (Some(_), Some(_)) => Verdict::NoChange,
        _ => Verdict::Unknown,
    }
}

/// The tests that both sides have, in the order of the first.
pub(crate) fn changed(before: &Side, after: &Side) -> Vec<Changed> {
    let both = before.tests.iter().filter_map(|(key, values)| {
        let (_, other) = after.tests.iter().find(|(known, _)| known == key)?;
        Some(Changed { key: key.clone(), before: values.clone(), after: other.clone() })
    });
    both.collect()
}

/// The tests that both benches have.
pub(crate) const BENCH: TableSpec = table! {
    compare.bench version 1:
    "One test that both benches have: its median over launches before and after, and whether that is more than noise.";
    key test, key where, key_u64("") ring, key unit, f64("") before, f64("") after, f64("") ratio, f64("") ratio_low,
    f64("") ratio_high, f64("") u, f64("") p, text verdict, count before_launches, count after_launches,
    count before_disturbed, count after_disturbed;
    Shown {
        whole: &["test", "verdict"],
        ..shown![
            "Cost per test, medians of launches", 60;
            test, where, before, after, ratio, ratio_low: "from", ratio_high: "to", p, verdict,
        ]
    }
};

/// What the two machines do not share.
pub(crate) const FINGERPRINT: TableSpec = table! {
    compare.fingerprint version 1:
    "One setting of machine or run that differs between the benches, or the measured datapaths, of both sides.";
    key name, text before, text after;
    shown!["Settings that differ between both sides", 40; name, before, after]
};

/// Table [`BENCH`].
pub(crate) fn table(changed: &[Changed]) -> Table {
    let mut table = Table::new(&BENCH);
    let rounded = |value: Option<f64>, grain: f64| Cell::from(value.map(|value| (value * grain).round() / grain));
    for one in changed {
        let (medians, ranks, (low, high)) = (one.medians(), one.ranks(), one.interval().unzip());
        table.push(vec![
            one.key.test.as_str().into(),
            one.key.place.as_str().into(),
            one.key.ring.map(u64::from).into(),
            one.key.unit.as_str().into(),
            rounded(medians.map(|(before, _)| before), 100.0),
            rounded(medians.map(|(_, after)| after), 100.0),
            rounded(one.ratio(), 1e4),
            rounded(low, 1e4),
            rounded(high, 1e4),
            ranks.map(|ranks| ranks.u).into(),
            rounded(ranks.map(|ranks| ranks.p), 1e6),
            one.verdict().name().into(),
            (one.before.values.len() as u64).into(),
            (one.after.values.len() as u64).into(),
            (one.before.disturbed() as u64).into(),
            (one.after.disturbed() as u64).into(),
        ]);
    }
    table
}

/// The answer in a sentence or two; none if there is no test.
pub(crate) fn summary(changed: &[Changed]) -> Option<String> {
    let certain: Vec<&Changed> = changed.iter().filter(|one| one.verdict().is_claim()).collect();
    let judged = changed.iter().filter(|one| one.verdict() != Verdict::Unknown).count();
    if changed.is_empty() {
        return None;
    }
    let tests = many(changed.len() as u64, "test");
    if judged == 0 {
        return Some(format!(
            "The benches have {tests} in common, but fewer than {FEWEST} launches: no verdict is possible."
        ));
    }
    let most = certain.iter().filter_map(|one| Some((one, one.ratio()?)));
    let most = most.max_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()));
    Some(match most {
        None => format!("Of {tests} in both benches, none changed by more than noise."),
        Some((one, ratio)) => format!(
            "Of {tests} in both benches, {} changed by more than noise; largest change: {}, x{}.",
            certain.len(),
            one.key.test,
            base::number::plain((ratio * 100.0).round() / 100.0)
        ),
    })
}

/// How many claims are void because launches were disturbed; none if none is.
pub(crate) fn void(changed: &[Changed]) -> Option<String> {
    let void = changed.iter().filter(|one| one.verdict() == Verdict::Void);
    disturbed::said(void.map(|one| [&one.before, &one.after]))
}

/// What the two machines do not share: name, before, after.
pub(crate) fn differences(before: &Side, after: &Side) -> Vec<(String, String, String)> {
    differing(&before.environment, &after.environment)
}

/// The same of what any two runs say of their machines.
pub(crate) fn differing(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<(String, String, String)> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let said =
        |side: &BTreeMap<String, String>, name: &str| side.get(name).cloned().unwrap_or_else(|| "unknown".to_owned());
    let steady = names.into_iter().filter(|name| !UNSTEADY.iter().any(|unsteady| name.starts_with(unsteady)));
    let all = steady.map(|name| (name.clone(), said(before, name), said(after, name)));
    all.filter(|(_, before, after)| before != after).collect()
}

/// Table [`FINGERPRINT`].
pub(crate) fn fingerprint(differences: &[(String, String, String)]) -> Table {
    let mut table = Table::new(&FINGERPRINT);
    for (name, before, after) in differences {
        table.push(vec![name.as_str().into(), before.as_str().into(), after.as_str().into()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(before: &[f64], after: &[f64]) -> Changed {
        let key = Key { test: "cpuid".into(), place: "guest".into(), ring: Some(3), unit: "cycles".into() };
        let side = |values: &[f64]| {
            let mut side = Measurements::default();
            values.iter().for_each(|value| side.push(*value, &[]));
            side
        };
        Changed { key, before: side(before), after: side(after) }
    }

    #[test]
    fn a_change_needs_both_witnesses_and_enough_launches() {
        let quiet = [1_000.0, 1_010.0, 1_005.0, 1_020.0, 1_002.0];
        let higher = quiet.map(|value| value * 1.2);
        assert_eq!(one(&quiet, &higher).verdict(), Verdict::Higher);
        assert_eq!(one(&higher, &quiet).verdict(), Verdict::Lower);
        assert_eq!(one(&quiet, &quiet).verdict(), Verdict::NoChange);
        assert_eq!(one(&quiet[..3], &higher[..3]).verdict(), Verdict::Unknown);
        // One pair of sixteen the other way: the bootstrap leaves 1 out, and the ranks come by chance in 4 of 70 cases.
        let doubtful = one(&[100.0, 101.0, 102.0, 110.0], &[109.0, 112.0, 113.0, 114.0]);
        assert!(doubtful.interval().unwrap().0 > 0.99 && (doubtful.ranks().unwrap().p - 4.0 / 70.0).abs() < 1e-9);
        assert_eq!(doubtful.verdict(), Verdict::NoChange);
    }

    #[test]
    fn what_differs_from_run_to_run_is_no_difference_of_machines() {
        let side = |governor: &str, mhz: &str| Side {
            tests: Vec::new(),
            environment: [("governor", governor), ("MHz", mhz), (base::bench::NS_PER_TICK, mhz)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        };
        assert!(differences(&side("powersave", "1"), &side("powersave", "2")).is_empty());
        let differ = differences(&side("powersave", "1"), &side("performance", "2"));
        assert_eq!(differ, [("governor".to_owned(), "powersave".to_owned(), "performance".to_owned())]);
    }
}
