//! What changed between two measurements of the same datapaths, kind of trial by kind of trial?
//!
//! ```text
//! before   trials of a kind: repeats 1 .. n  --\   ratio of means with its interval (Welch), verdicts corrected for all kinds (Holm)
//! after    trials of a kind: repeats 1 .. m  --/   what bound each side
//! searches        one interval of rates a side: apart, or not      (`bounds`)
//! ```
//! A kind is a design, a pattern, a length and a size; messages of a stream are no frames, so they stand in a column of their own. With one
//! recording a side its repeats are the samples; with several, each recording is one, its median. What one side alone has is named.

mod samples;
mod searches;

pub(super) use searches::BOUNDS;

use super::benches::differing;
use super::disturbed;
use super::ratio::{Ratio, Verdict};
use super::regressions::Judged;
use super::runs::holds_for_all;
use base::number::{counted, list, plain};
use base::{Cell, Section, Shown, Table, TableSpec, Unknown, shown, table};
use facts::datapaths::Bed;
use facts::statistics::spread::median;
use samples::{Kind, Measure, Samples, Series};
use std::collections::{BTreeMap, BTreeSet};

/// Repeats of a kind below which nothing is called a change: two say next to nothing of their spread.
const FEWEST: usize = 3;

/// Changes that are told in sentences; the table has all.
const MOST_TOLD: usize = 3;
/// Kinds of one side alone that are named in the sentence; the table has all.
const MOST_NAMED: usize = 4;

/// What datapaths carried, both sides.
pub(super) const DATAPATHS: TableSpec = table! {
    compare.datapaths version 1:
    "One rate or cost of a kind of trial, before and after: the mean of its repeats (of several recordings a side: of their medians), \
          the ratio with its 95 % interval, and whether that is more than noise, for all rows together. size_bytes is of frames, \
          message_bytes of a stream's messages. Bound is what bound the trials. A kind that one side alone has has no ratio.";
    key design, key pattern, key_u64("") vnfs, key_u64("") size_bytes, key_u64("") message_bytes, key measure,
    f64("") before, f64("") after, f64("") ratio, f64("") ratio_low, f64("") ratio_high, text verdict,
    count before_samples, count after_samples, text before_bound, text after_bound, count before_disturbed,
    count after_disturbed;
    Shown {
        whole: &["design", "measure", "verdict"],
        ..shown![
            "Datapaths before and after", 60;
            design, vnfs: "VNFs", size_bytes: "bytes", measure, before, after, ratio, ratio_low: "from",
            ratio_high: "to", verdict, before_bound: "bound by", after_bound: "bound after",
        ]
    }
};

struct Changed {
    kind: Kind,
    before: Series,
    after: Series,
    ratio: Option<Ratio>,
    verdict: Verdict,
}

impl Changed {
    fn is_certain(&self) -> bool {
        self.verdict.is_claim()
    }

    fn is_of_both(&self) -> bool {
        !self.before.measured.values.is_empty() && !self.after.measured.values.is_empty()
    }

    /// As a number that has a better and a worse.
    fn judged(&self) -> Option<Judged> {
        let is_worse_if = match self.kind.measure {
            Measure::Rate | Measure::Stream => Verdict::Lower,
            Measure::Cycles => Verdict::Higher,
        };
        let (what, table) = (format!("{}: {}", self.kind.words(), self.kind.measure.noun()), "compare.datapaths");
        let ratio = self.ratio?;
        Some(Judged { what, ratio: ratio.ratio, words: ratio.words(), verdict: self.verdict, is_worse_if, table })
    }

    fn verdict_words(&self) -> &'static str {
        match (self.before.measured.values.is_empty(), self.after.measured.values.is_empty()) {
            (true, _) => "only after",
            (_, true) => "only before",
            _ => self.verdict.name(),
        }
    }

    /// `ovs-dpdk, chain of 2 VNFs, 64 bytes: 1.3 times the packets (1.2 to 1.4), 2 Mpps before, 2.6 after; bound by pmd as before`.
    fn words(&self) -> Option<String> {
        let ratio = self.ratio?;
        let (low, high) = ratio.interval?;
        let [times, low, high] = [ratio.ratio, low, high].map(|value| plain((value * 100.0).round() / 100.0));
        let [before, after] = [ratio.before, ratio.after].map(|value| plain(value / self.kind.measure.scale()));
        let (what, unit) = (self.kind.measure.noun(), self.kind.measure.unit());
        let kind = self.kind.words();
        let said = match ratio.ratio {
            0.0 => format!("{kind}: {what}: {before} {unit} before, none after"),
            is_new if is_new.is_infinite() => format!("{kind}: {what}: none before, {after} {unit} after"),
            _ => format!("{kind}: {times} times {what} ({low} to {high}), {before} {unit} before, {after} after"),
        };
        Some(match (self.before.bound(), self.after.bound()) {
            (Some(one), Some(other)) if one != other => format!("{said}; bound by {one} before, by {other} after"),
            (Some(one), Some(_)) => format!("{said}; bound by {one} as before"),
            _ => said,
        })
    }
}

/// Datapaths of both sides, if both have any: their tables, and what they say.
pub(super) struct Compared {
    pub tables: Vec<Table>,
    pub sentences: Vec<String>,
    pub about: Vec<String>,
    pub unknown: Vec<Unknown>,
    /// Settings of machine or programs that differ: name, before, after.
    pub differences: Vec<(String, String, String)>,
    /// Rates and costs of both sides.
    pub judged: Vec<Judged>,
}

impl Compared {
    /// Puts its tables and words into the answer; its sentences are the caller's, and its settings are in the table of settings.
    pub(super) fn join(self, section: &mut Section) -> Vec<String> {
        let carried = self.tables.iter().find(|table| std::ptr::eq(table.spec, &DATAPATHS));
        section.figures.extend(carried.and_then(super::figures::repeated::datapaths));
        section.tables.extend(self.tables);
        section.about.extend(self.about);
        section.unknown.extend(self.unknown);
        self.sentences
    }
}

/// Of each kind of trial of one recording the median over its repeats, by its name and unit.
pub(super) fn medians(beds: &[Bed]) -> Vec<(String, f64)> {
    let named = |(kind, series): (Kind, Series)| {
        let (what, unit) = (kind.measure.noun(), kind.measure.unit());
        Some((format!("{}: {what}, {unit}", kind.words()), median(&series.measured.values)? / kind.measure.scale()))
    };
    samples::of(&[beds], false).into_iter().filter_map(named).collect()
}

/// What changed; `None` if a side has measured no datapath. A side is the beds of each of its recordings.
pub(super) fn compared(before: &[&[Bed]], after: &[&[Bed]]) -> Option<Compared> {
    let are_repeats = before.len() == 1 && after.len() == 1;
    let (one, two) = (samples::of(before, are_repeats), samples::of(after, are_repeats));
    if one.is_empty() || two.is_empty() {
        return None;
    }
    let all = changed(one, two, are_repeats);
    let searches = searches::compared(before, after);
    let mut sentences = vec![summary(&all, are_repeats)];
    let certain = all.iter().filter(|one| one.is_certain()).filter_map(Changed::words);
    sentences.extend(certain.take(MOST_TOLD).map(|said| format!("{said}.")));
    let void = all.iter().filter(|one| one.verdict == Verdict::Void);
    sentences.extend(disturbed::said(void.map(|one| [&one.before.measured, &one.after.measured])));
    sentences.extend(searches::summary(&searches));
    let alone = [("before", "only before"), ("after", "only after")].map(|(side, verdict)| {
        let named = all.iter().filter(|one| one.verdict_words() == verdict).map(|one| one.kind.words());
        (side, named.collect::<BTreeSet<String>>())
    });
    for (side, kinds) in alone.iter().filter(|(_, kinds)| !kinds.is_empty()) {
        let names: Vec<String> = kinds.iter().cloned().collect();
        let more = names.len().saturating_sub(MOST_NAMED);
        let mut named: Vec<String> = names.into_iter().take(MOST_NAMED).collect();
        named.extend((more > 0).then(|| format!("{} of the table", counted(more as u64, "other", "others"))));
        sentences.push(format!("Measured {side} alone, so not compared: {}.", list(&named)));
    }
    let [one, two] = [before, after].map(environment);
    let differences = differing(&one, &two);
    sentences.push(say_environment(&differences));
    let mut tables = vec![table(&all)];
    tables.extend((!searches.is_empty()).then(|| searches::table(&searches)));
    let about = match are_repeats {
        true => {
            "datapaths: the repeats of each kind of trial are the samples; from and to are the 95 % interval of the ratio of their \
                 means (Welch), verdicts hold for all kinds together (Holm)"
        }
        false => {
            "datapaths: each recording is one sample, the median of its repeats; from and to are the 95 % interval of the ratio of \
                  their means (Welch), verdicts hold for all kinds together (Holm)"
        }
    };
    let mut unknown = Vec::new();
    if are_repeats {
        unknown.push(Unknown {
            what: "between_recordings".to_owned(),
            amount: None,
            unit: String::new(),
            text: "How much recordings of one configuration differ: repeats of one recording share its hour and its neighbours. \
                   Record each side several times, in turn, and name the others with --before and --after."
                .to_owned(),
        });
    }
    let judged = all.iter().filter_map(Changed::judged).collect();
    Some(Compared { tables, sentences, about: vec![about.to_owned()], unknown, differences, judged })
}

/// All kinds of either side: what is certain first, then by how much it changed, then what one side alone has.
fn changed(mut one: Samples, mut two: Samples, are_repeats: bool) -> Vec<Changed> {
    let kinds: BTreeSet<Kind> = one.keys().chain(two.keys()).cloned().collect();
    let of_kind = |kind: Kind| {
        let (before, after) = (one.remove(&kind).unwrap_or_default(), two.remove(&kind).unwrap_or_default());
        let [one, two] = [&before, &after].map(|series| series.measured.values.as_slice());
        let ratio = ratio(one, two, are_repeats);
        let is_told = !are_repeats || one.len().min(two.len()) >= FEWEST;
        let verdict = ratio.filter(|_| is_told).map_or(Verdict::Unknown, |ratio| ratio.verdict());
        Changed { kind, before, after, ratio, verdict }
    };
    let mut all: Vec<Changed> = kinds.into_iter().map(of_kind).collect();
    let tested = all.iter_mut().filter(|one| one.verdict != Verdict::Unknown);
    holds_for_all(tested.filter_map(|one| Some((&mut one.verdict, one.ratio?.chance?))).collect());
    for one in &mut all {
        let judge = |before: &[f64], after: &[f64]| {
            ratio(before, after, are_repeats).map_or(Verdict::Unknown, |ratio| ratio.verdict())
        };
        one.verdict = disturbed::without(one.verdict, [&one.before.measured, &one.after.measured], FEWEST, judge);
    }
    let size = |one: &Changed| one.ratio.map_or(0.0, |ratio| ratio.ratio.ln().abs());
    all.sort_by(|a, b| {
        let order = |one: &Changed| (!one.is_certain(), !one.is_of_both());
        order(a).cmp(&order(b)).then(size(b).total_cmp(&size(a))).then_with(|| a.kind.cmp(&b.kind))
    });
    all
}

fn ratio(before: &[f64], after: &[f64], are_repeats: bool) -> Option<Ratio> {
    let ratio = if are_repeats { Ratio::of(before, after) } else { Ratio::of_runs(before, after) };
    ratio.or_else(|| Ratio::with_none(before, after))
}

/// The answer in a sentence.
fn summary(all: &[Changed], are_repeats: bool) -> String {
    let both: Vec<&Changed> = all.iter().filter(|one| one.is_of_both()).collect();
    let numbers = counted(both.len() as u64, "rate or cost", "rates and costs");
    let certain = both.iter().filter(|one| one.is_certain()).count();
    if both.is_empty() {
        return "Both sides measured datapaths, and no kind of trial is on both: nothing is compared.".to_owned();
    }
    if both.iter().all(|one| one.verdict == Verdict::Unknown) {
        let most = both
            .iter()
            .map(|one| one.before.measured.values.len().min(one.after.measured.values.len()))
            .max()
            .unwrap_or_default();
        let few = counted(most as u64, "repeat", "repeats");
        let more = format!("measure at least {FEWEST} a side (lab ovs --repeats 5)");
        return format!(
            "Both sides have {numbers} of datapaths, but {few} a side at most: no difference can be told from noise; {more}."
        );
    }
    let noise = if are_repeats { "repeats" } else { "recordings" };
    match certain {
        0 => format!("Of {numbers} of datapaths, none changed by more than {noise} differ."),
        1 => format!("Of {numbers} of datapaths, 1 changed by more than {noise} differ."),
        some => format!("Of {numbers} of datapaths, {some} changed by more than {noise} differ."),
    }
}

/// What the machines and programs of a side were.
fn environment(side: &[&[Bed]]) -> BTreeMap<String, String> {
    let beds = side.iter().flat_map(|beds| beds.iter());
    beds.flat_map(|bed| bed.runs.environment.clone()).collect()
}

fn say_environment(differences: &[(String, String, String)]) -> String {
    const MOST: usize = 4;
    if differences.is_empty() {
        return "CPU, kernel, versions and settings were the same on both sides.".to_owned();
    }
    let all = differences.iter().map(|(name, before, after)| format!("{name} ({before} before, {after} after)"));
    let mut told: Vec<String> = all.take(MOST).collect();
    told.extend((differences.len() > MOST).then(|| format!("{} more", differences.len() - MOST)));
    format!("The beds differ in {}, which may explain what changed.", list(&told))
}

/// Table [`DATAPATHS`].
fn table(all: &[Changed]) -> Table {
    let mut table = Table::new(&DATAPATHS);
    for one in all {
        let Changed { kind, before, after, ratio, .. } = one;
        let (low, high) = ratio.and_then(|ratio| ratio.interval).unzip();
        // Of 0 there is no multiple.
        let finite = |value: Option<f64>| Cell::from(value.filter(|value| value.is_finite()));
        let (frame, message) = match kind.measure {
            Measure::Stream => (None, Some(kind.bytes)),
            _ => (Some(kind.bytes), None),
        };
        let cells: [Cell; 18] = [
            kind.design.as_str().into(),
            kind.pattern.map(base::datapath::Traffic::name).into(),
            u64::from(kind.vnfs).into(),
            frame.map(u64::from).into(),
            message.map(u64::from).into(),
            kind.measure.name().into(),
            before.mean().into(),
            after.mean().into(),
            finite(ratio.map(|ratio| ratio.ratio)),
            finite(low),
            finite(high),
            one.verdict_words().into(),
            (before.measured.values.len() as u64).into(),
            (after.measured.values.len() as u64).into(),
            before.bound().into(),
            after.bound().into(),
            (before.measured.disturbed() as u64).into(),
            (after.measured.disturbed() as u64).into(),
        ];
        table.push(cells.into());
    }
    table
}

#[cfg(test)]
mod tests;
