//! Did a change help?
//!
//! ```text
//! snapshots of both sides --settings of the same name--> table `configuration`: what was set up differently
//! time that vCPUs were busy, part by part --> table `causes`: how often, how long each, and which setting may be the cause
//! recordings before --metrics--\
//!                                ratio with interval --> table `change`: what differs, and what that may be worth (`runs`)
//! recordings after  --metrics--/
//! ```
//! In: recordings of the same load, one or several a side. Out: a Section whose table has a row for each metric that both have.
//! Where there is a budget, the goals of both sides stand side by side (`goals`). What vCPUs lost, and what programs measured, is drawn
//! with a curve for each side (`figures`).
//! A single recording is cut into windows because one number has no spread; bench results bring their own repetitions, and have
//! a table of their own (`benches`), as measured datapaths have (`datapaths`). Where the machines are not alike (`unlike`), a finding says so.

pub(crate) mod benches;
mod causes;
mod configuration;
mod datapaths;
mod disturbed;
mod figures;
mod goals;
mod headline;
pub mod history;
mod metrics;
mod placement;
pub(crate) mod ratio;
mod regressions;
mod runs;
mod threads;
mod unlike;

pub use metrics::Metric;
pub use ratio::{Ratio, Verdict};
pub use regressions::REGRESSION;

use base::number::{list, many, percent};
use base::rule::Words;
use base::{Cell, Section, Shown, Table, TableSpec, Unknown, shown, table};
use facts::datapaths::Bed;
use facts::{Answer, Case, Error};
use metrics::Metrics;

/// Id of the Section.
pub const ID: &str = "compare";
/// What stands beside a difference of one recording a side.
pub(crate) const SINGLE: &str = "one run a side";
/// What is unknown where nothing was repeated often enough to say that it got worse.
pub const UNTOLD: &str = "regression";
/// The question, as a person would ask it.
pub const QUESTION: &str = "What differs between these runs of the same load?";

/// What the rules say of themselves.
pub fn words() -> Vec<Words> {
    unlike::words().into_iter().chain([regressions::words()]).collect()
}

/// A metric of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    pub metric: Metric,
    pub ratio: Ratio,
    pub verdict: Verdict,
}

impl Changed {
    pub fn of(metric: Metric, ratio: Ratio) -> Self {
        Self { metric, ratio, verdict: ratio.verdict() }
    }

    fn is_certain(&self) -> bool {
        self.verdict.is_claim()
    }

    /// By how much it changed, on a scale on which half is as much as twice. That one side has none says little where noise could explain it.
    fn size(&self) -> f64 {
        let size = self.ratio.ratio.ln().abs();
        if size.is_finite() || self.is_certain() { size } else { 0.0 }
    }

    /// False for what a task did that hardly did anything.
    fn is_worth_showing(&self) -> bool {
        !self.metric.is_of_task() || self.ratio.before.max(self.ratio.after) >= TASK_FLOOR
    }
}

/// Share of the time that a task must have run, or waited, on either side to be shown.
const TASK_FLOOR: f64 = 0.05;

/// Answers it; `None` if there is no recording from before the change.
///
/// # Errors
/// If a recording's traces hold nothing that could be measured, and there are no benches in both either.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    if case.before().is_empty() {
        return Ok(None);
    }
    let before: Vec<&Case> = case.before().iter().collect();
    let after: Vec<&Case> = std::iter::once(case).chain(case.again()).collect();
    let section = section(&before, &after, case.given().accepted_regression)?;
    Ok(Some(Answer { section, problems: Vec::new() }))
}

fn section(before: &[&Case], after: &[&Case], accepted: Option<f64>) -> Result<Section, Error> {
    let benches = |side: &[&Case]| benches::Side::of(side.iter().map(|case| case.benches()));
    let sides = [benches(before), benches(after)];
    let tests = benches::changed(&sides[0], &sides[1]);
    let carried = datapaths::compared(&beds(before), &beds(after));
    let configured = configuration::compared(before, after);
    let placed = placement::compared(before, after);
    let has_others = !tests.is_empty() || carried.is_some() || placed.is_some() || configured.has_snapshots();
    let mut section = Section::new(ID, QUESTION);
    let mut judged_for_worse: Vec<regressions::Judged> = regressions::of_benches(&tests).collect();
    for (side, cases) in [("before", before), ("after", after)] {
        for recording in cases.iter().map(|case| &case.input().recording) {
            section.about.push(format!("{side}: {}", recording.title()));
            if let Some(emulator) = recording.emulated {
                let name = emulator.name();
                section.about.push(format!("{side}: EMULATED by {name}: counts and order are real, times are not."));
            }
        }
    }
    let is_emulated = before.iter().chain(after).any(|case| case.input().recording.emulated.is_some());
    let mut headline = None;
    let mut sentences: Vec<String> = configured.sentence().into_iter().collect();
    let judged = goals::goals(before, after);
    let is_judged = judged.is_some();
    let metrics = |side: &[&Case]| side.iter().map(|case| metrics::of(case)).collect::<Result<Vec<Metrics>, Error>>();
    match metrics(before).and_then(|one| Ok((one, metrics(after)?))) {
        Ok((one, two)) => {
            let changed = runs::changed(&one, &two);
            let has_metrics = one.iter().chain(&two).any(|metrics| !metrics.is_empty());
            if changed.is_empty() && !has_others && !is_judged {
                let why = "the recordings have no common metric, so nothing can be compared".to_owned();
                return Err(Error::NoEvents(why));
            }
            if has_metrics || !has_others {
                section.figures = figures::figures(before, after);
                let causes = causes::told(before, after, &configured.differences);
                sentences.extend(causes.sentences);
                section.tables.extend(causes.tables);
                // What changed stands first, then where that comes from, then how it is spread.
                section.figures.splice(0..0, causes.figures);
                // Windows of one run say nothing of the next one.
                let are_runs = before.len() > 1 || after.len() > 1;
                judged_for_worse.extend(regressions::of_traces(&changed).filter(|_| are_runs));
                let worth: Vec<Changed> = changed.iter().filter(|one| one.is_worth_showing()).cloned().collect();
                headline = headline::headline(&worth, is_emulated);
                if let ([before], [after]) = (before, after)
                    && let Some((table, said)) = threads::compared(before, after)
                {
                    sentences.extend(said);
                    section.tables.push(table);
                }
                // Of what threads measured nothing more is to be said where nothing else was recorded.
                let is_all_named = changed.iter().all(|one| matches!(one.metric, Metric::Named(_)));
                let has_threads = section.tables.iter().any(|table| table.spec.name == threads::THREADS.name);
                let said = say_traces(&mut section, changed, [before.len(), after.len()], is_emulated);
                sentences.extend((!is_all_named || !has_threads).then_some(said));
                let unlike = unlike::finding(before, after, &one, &two);
                sentences.extend(unlike.as_ref().map(|finding| format!("{}.", finding.title)));
                section.findings.extend(unlike);
            }
        }
        Err(error) if !has_others && !is_judged => return Err(error),
        Err(error) => sentences.push(format!("The traces are not compared: {error}.")),
    }
    let mut differences = Vec::new();
    if let Some(said) = benches::summary(&tests) {
        sentences.push(said);
        sentences.extend(benches::void(&tests));
        differences = benches::differences(&sides[0], &sides[1]);
        sentences.extend(say_benches(&mut section, &differences, &tests, is_emulated));
    }
    if let Some(carried) = carried {
        differences.extend(carried.differences.clone());
        judged_for_worse.extend(carried.judged.clone());
        sentences.extend(carried.join(&mut section));
    }
    differences.sort();
    differences.dedup();
    section.tables.extend((!differences.is_empty()).then(|| benches::fingerprint(&differences)));
    if let Some(accepted) = accepted {
        sentences.insert(0, say_regressions(&mut section, &judged_for_worse, accepted));
    }
    if let Some((table, said)) = placed {
        sentences.push(said);
        section.figures.extend(figures::repeated::prices(&table));
        section.tables.extend(Some(table).filter(|table| !table.rows.is_empty()));
    }
    section.tables.splice(0..0, Some(configured.table()).filter(|table| !table.rows.is_empty()));
    section.unknown.extend(configured.unknown());
    if let Some((table, said)) = judged {
        section.tables.insert(0, table);
        sentences.insert(0, said);
    }
    // Whoever asked for a verdict reads it first; else the largest change is the first thing said, in a paragraph of its own.
    let verdicts = usize::from(accepted.is_some()) + usize::from(is_judged);
    let rest = sentences.split_off(verdicts.min(sentences.len())).join(" ");
    let said = [sentences.join(" "), headline.unwrap_or_default(), rest];
    section.summary = said.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join("\n\n");
    Ok(section)
}

/// Adds a finding if something is worse by more than is accepted; says what was judged.
fn say_regressions(section: &mut Section, judged: &[regressions::Judged], accepted: f64) -> String {
    let found = regressions::finding(judged, accepted);
    let told = regressions::told(judged);
    if told == 0 {
        section.unknown.push(Unknown {
            what: UNTOLD.into(),
            amount: None,
            unit: String::new(),
            text: "Whether anything got worse: nothing here was repeated often enough. Name several recordings of each side \
                   (compare A1 A2 A3 -- B1 B2 B3), or benches with 4 launches or more."
                .into(),
        });
        return "Whether anything got worse cannot be separated from noise.".to_owned();
    }
    let numbers = many(told as u64, "number");
    let said = match &found {
        Some(finding) => format!("{} of {numbers} that have a better and a worse.", finding.title),
        None => format!("None of {numbers} got worse by more than {} and noise.", percent(accepted)),
    };
    section.findings.extend(found);
    said
}

/// What each recording of a side measured of datapaths.
fn beds<'c>(side: &[&'c Case]) -> Vec<&'c [Bed]> {
    side.iter().map(|case| case.datapaths().beds.as_slice()).collect()
}

/// Adds what changed between the traces of `recordings` before and after, and says it.
fn say_traces(section: &mut Section, changed: Vec<Changed>, recordings: [usize; 2], is_emulated: bool) -> String {
    let mut changed: Vec<Changed> = changed.into_iter().filter(Changed::is_worth_showing).collect();
    let are_runs = recordings != [1, 1];
    in_order(&mut changed);
    section.figures.splice(0..0, figures::dumbbells::figure(&changed, are_runs, is_emulated));
    let are_windows = changed.iter().any(|one| !matches!(one.metric, Metric::Named(_)));
    if are_runs {
        section.about.push(
            "each recording is one value; low and high are the 95 % confidence interval of the ratio, verdicts hold for all metrics \
             together (Holm); waits: runnable while others ran"
                .to_owned(),
        );
    } else if are_windows {
        section.about.push(format!(
            "each trace is split into {} nearly equal windows; low and high are the 95 % confidence interval of the ratio of \
             these two runs; waits: runnable while others ran",
            facts::WINDOWS
        ));
    }
    let said = summary(&changed, recordings);
    let mut table = table(&CHANGE, changed);
    if !are_runs {
        let title = "Differences between these two runs";
        table.shown = table.shown.map(|shown| Shown { title, ..shown });
        section.unknown.push(Unknown {
            what: "run_to_run".into(),
            amount: None,
            unit: String::new(),
            text:
                "How much runs of one configuration differ from each other: two recordings cannot show it. Name more \
                   recordings of either side with --before and --after; several of one side alone are a baseline."
                    .into(),
        });
    }
    section.tables.push(table);
    said
}

/// Adds what changed between two benches; says how machine or run differ, if they do.
fn say_benches(
    section: &mut Section,
    differences: &[(String, String, String)],
    tests: &[benches::Changed],
    is_emulated: bool,
) -> Option<String> {
    section.about.push(
        "benches: from and to are the 95 % confidence interval of the ratio (bootstrap over launches), p is that of \
         the Mann-Whitney U test"
            .to_owned(),
    );
    let table = benches::table(tests);
    section.figures.extend(figures::repeated::benches(&table, is_emulated));
    section.tables.push(table);
    let names: Vec<String> = differences.iter().map(|(name, ..)| name.clone()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The benches differ in {} of machine or run, which may explain changes: {}.",
            many(names.len() as u64, "setting"),
            list(&names)
        )
    })
}

/// The answer in a sentence: of two runs what differs between them, of several what changed.
fn summary(changed: &[Changed], [before, after]: [usize; 2]) -> String {
    let certain = changed.iter().filter(|one| one.is_certain());
    let (all, some) = (many(changed.len() as u64, "metric"), certain.clone().count());
    if changed.is_empty() {
        return "The recordings have no common metric: no verdict is possible.".to_owned();
    }
    // A thread that had nothing to do before has the largest ratio and says the least.
    let whole = |one: &Changed| !one.metric.is_of_task();
    let most = certain.max_by(|a, b| whole(a).cmp(&whole(b)).then(a.size().total_cmp(&b.size())));
    let most = |what: &str| {
        most.map(|one| format!("; largest {what}: {}, {}", one.metric, one.ratio.words())).unwrap_or_default()
    };
    if changed.iter().all(|one| one.verdict == Verdict::Unknown) {
        return format!("{all} on both sides, none of which was measured often enough for a verdict.");
    }
    match ((before, after), some) {
        ((1, 1), 0) => format!("Of {all}, none differs between these two runs by more than within each."),
        ((1, 1), _) => format!(
            "Of {all}, {some} {} between these two runs by more than within each{}. Whether the configuration is the cause is \
             open: runs of one configuration differ as well.",
            if some == 1 { "differs" } else { "differ" },
            most("difference")
        ),
        _ => {
            let runs = format!("{} before, {after} after", many(before as u64, "recording"));
            match some {
                0 => format!("Of {all}, none changed by more than noise between runs ({runs})."),
                _ => format!("Of {all}, {some} changed by more than noise between runs ({runs}){}.", most("change")),
            }
        }
    }
}

/// All tables of a comparison, in reading order.
pub const TABLES: &[&TableSpec] = &[
    &goals::GOALS,
    &configuration::CONFIGURATION,
    &causes::tables::CAUSES,
    &causes::tables::PER_WORK,
    &causes::tables::LOSSES,
    &causes::tables::DARK,
    &placement::PRICES,
    &threads::THREADS,
    &CHANGE,
    &benches::BENCH,
    &datapaths::DATAPATHS,
    &datapaths::BOUNDS,
    &benches::FINGERPRINT,
];

/// What changed, what is certain first, then by how much it changed.
pub const CHANGE: TableSpec = table! {
    compare.change version 1: "One metric before and after, and whether the change is more than noise.";
    key metric, f64("") before, f64("") after, f64("") ratio, f64("") low, f64("") high, text verdict;
    Shown {
        whole: &["metric", "verdict"],
        ..shown!["Changes", 30; metric, before, after, ratio, low, high, verdict]
    }
};

/// What changed, as [`CHANGE`] or a table like it.
pub fn table(spec: &'static TableSpec, mut changed: Vec<Changed>) -> Table {
    in_order(&mut changed);
    let mut table = Table::new(spec);
    for Changed { metric, ratio, verdict } in changed {
        // Of 0 there is no multiple.
        let finite = |value: Option<f64>| Cell::from(value.filter(|value| value.is_finite()));
        let (low, high) = ratio.interval.unzip();
        table.push(vec![
            metric.to_string().into(),
            ratio.before.into(),
            ratio.after.into(),
            finite(Some(ratio.ratio)),
            finite(low),
            finite(high),
            verdict.name().into(),
        ]);
    }
    table
}

/// What is certain first, then by how much it changed.
fn in_order(changed: &mut [Changed]) {
    changed.sort_by(|a, b| {
        let certain = Changed::is_certain;
        certain(b)
            .cmp(&certain(a))
            .then(b.size().total_cmp(&a.size()))
            .then_with(|| a.metric.to_string().cmp(&b.metric.to_string()))
    });
}

#[cfg(test)]
mod tests;
