//! Did a change help?
//!
//! ```text
//! recording A --8 windows--> each metric 8 times --\
//!                                                    ratio with interval --> table `change`: what noise explains, and what not
//! recording B --8 windows--> each metric 8 times --/
//! ```
//! In: two recordings of the same load. Out: a Section whose table has a row for each metric that both have. A recording is
//! cut into windows because one number has no spread; bench results bring their own repetitions, and have a table of their
//! own (`benches`).

pub(crate) mod benches;
mod metrics;
pub(crate) mod ratio;

pub use metrics::Metric;
pub use ratio::{Ratio, Verdict};

use crate::{Answer, Case, Error, Input};
use base::number::{list, many, plain};
use base::table::{Shown, TableSpec};
use base::{Column, ColumnType, Section, Table};
use metrics::Metrics;

/// Id of the Section.
pub const ID: &str = "compare";
/// The question, as a person would ask it.
pub const QUESTION: &str = "Changes between two recordings of the same load?";

/// A metric of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// What was measured.
    pub metric: Metric,
    /// What changed.
    pub ratio: Ratio,
}

impl Changed {
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
    let Some(before) = case.before() else { return Ok(None) };
    Ok(Some(Answer { section: section(before, case)?, problems: Vec::new() }))
}

fn section(before: &Case, after: &Case) -> Result<Section, Error> {
    let sides = [before, after].map(|case| benches::Side::of(case.benches()));
    let tests = benches::changed(&sides[0], &sides[1]);
    let mut section = Section::new(ID, QUESTION);
    let title = |case: &Case| case.input().recording.title();
    section.about = vec![format!("before: {}", title(before)), format!("after: {}", title(after))];
    for (side, case) in [("before", before), ("after", after)] {
        if let Some(emulator) = case.input().recording.emulated {
            let name = emulator.name();
            section.about.push(format!("{side}: EMULATED by {name}: counts and order are real, times are not."));
        }
    }
    let mut sentences = Vec::new();
    match metrics::of(before).and_then(|one| Ok((one, metrics::of(after)?))) {
        Ok((one, two)) if tests.is_empty() && !one.keys().any(|metric| two.contains_key(metric)) => {
            return Err(Error::NoEvents("the recordings have no common metric, so nothing can be compared".to_owned()));
        }
        Ok((one, two)) if !one.is_empty() || tests.is_empty() => {
            sentences.push(say_traces(&mut section, &one, &two));
            sentences.extend(unlike(before.input(), after.input()));
        }
        Ok(_) => {}
        Err(error) if tests.is_empty() => return Err(error),
        Err(error) => sentences.push(format!("The traces are not compared: {error}.")),
    }
    if let Some(said) = benches::summary(&tests) {
        sentences.push(said);
        sentences.extend(say_benches(&mut section, &sides, &tests));
    }
    section.summary = sentences.join(" ");
    Ok(section)
}

/// How the machines behind two traces differ, where they do: what changed may come from there.
fn unlike(before: &Input, after: &Input) -> Option<String> {
    let of = |input: &Input| -> Option<[(&'static str, String); 4]> {
        let part = input.parts.first()?;
        let facts = part.trace.facts();
        Some([
            ("emulator", input.recording.emulated.map_or("none", base::recording::Emulator::name).to_owned()),
            ("level", part.level.to_string()),
            ("kernel", facts.uname.clone().unwrap_or_default()),
            ("number of CPUs", facts.cpus.to_string()),
        ])
    };
    let (one, two) = (of(before)?, of(after)?);
    let unlike: Vec<String> = one
        .into_iter()
        .zip(two)
        .filter(|((_, one), (_, two))| one != two && !one.is_empty() && !two.is_empty())
        .map(|((what, one), (_, two))| format!("{what} ({one} and {two})"))
        .collect();
    (!unlike.is_empty())
        .then(|| format!("The recordings are of different machines, which may explain changes: {}.", list(&unlike)))
}

/// Adds what changed between two traces, and says it.
fn say_traces(section: &mut Section, one: &Metrics, two: &Metrics) -> String {
    let both = one.iter().filter_map(|(metric, values)| {
        Some(Changed { metric: metric.clone(), ratio: Ratio::of(values, two.get(metric)?)? })
    });
    let changed: Vec<Changed> = both.filter(Changed::is_worth_showing).collect();
    section.about.push(format!(
        "each trace is split into {} nearly equal windows; low and high are the 95 % confidence interval of the ratio; waits: \
         runnable while others ran",
        crate::WINDOWS
    ));
    let said = summary(&changed);
    section.tables.push(table(&CHANGE, changed));
    said
}

/// Adds what changed between two benches; says how machine or run differ, if they do.
fn say_benches(section: &mut Section, sides: &[benches::Side; 2], tests: &[benches::Changed]) -> Option<String> {
    section.about.push(
        "benches: from and to are the 95 % confidence interval of the ratio (bootstrap over launches), p is that of \
         the Mann-Whitney U test"
            .to_owned(),
    );
    section.tables.push(benches::table(tests));
    let differences = benches::differences(&sides[0], &sides[1]);
    if differences.is_empty() {
        return None;
    }
    let names: Vec<String> = differences.iter().map(|(name, ..)| name.clone()).collect();
    section.tables.push(benches::fingerprint(&differences));
    Some(format!(
        "The benches differ in {} of machine or run, which may explain changes: {}.",
        many(names.len() as u64, "setting"),
        list(&names)
    ))
}

fn summary(changed: &[Changed]) -> String {
    let certain = changed.iter().filter(|one| matches!(one.ratio.verdict(), Verdict::Higher | Verdict::Lower));
    match (changed.len(), certain.clone().count()) {
        (0, _) => "The recordings have no common metric: no verdict is possible.".to_owned(),
        (all, 0) => format!("Of {}, none changed by more than noise.", many(all as u64, "metric")),
        (all, some) => {
            // A thread that had nothing to do before has the largest ratio and says the least.
            let whole = |one: &Changed| !one.metric.is_of_task();
            let size = |one: &Changed| one.ratio.ratio.ln().abs();
            let most = certain.max_by(|a, b| whole(a).cmp(&whole(b)).then(size(a).total_cmp(&size(b))));
            let most = most
                .map(|one| format!("; largest change: {}, x{}", one.metric, plain(one.ratio.ratio)))
                .unwrap_or_default();
            format!("Of {}, {some} changed by more than noise{most}.", many(all as u64, "metric"))
        }
    }
}

/// All tables of a comparison, in reading order.
pub const TABLES: &[&TableSpec] = &[&CHANGE, &benches::BENCH, &benches::FINGERPRINT];

/// What changed, what is certain first, then by how much it changed.
pub const CHANGE: TableSpec = TableSpec {
    section: ID,
    name: "change",
    version: 1,
    row: "One metric before and after, and whether the change is more than noise.",
    columns: &[
        Column::key("metric"),
        Column::value("before", "", ColumnType::F64),
        Column::value("after", "", ColumnType::F64),
        Column::value("ratio", "", ColumnType::F64),
        Column::value("low", "", ColumnType::F64),
        Column::value("high", "", ColumnType::F64),
        Column::text("verdict"),
    ],
    shown: Some(Shown {
        whole: &["metric", "verdict"],
        ..Shown::of(
            "Changes",
            &[
                ("metric", "metric"),
                ("before", "before"),
                ("after", "after"),
                ("ratio", "ratio"),
                ("low", "low"),
                ("high", "high"),
                ("verdict", "verdict"),
            ],
            30,
        )
    }),
};

/// What changed, as [`CHANGE`] or a table like it.
pub fn table(spec: &'static TableSpec, mut changed: Vec<Changed>) -> Table {
    changed.sort_by(|a, b| {
        let certain = |one: &Changed| matches!(one.ratio.verdict(), Verdict::Higher | Verdict::Lower);
        let size = |one: &Changed| one.ratio.ratio.ln().abs();
        certain(b)
            .cmp(&certain(a))
            .then(size(b).total_cmp(&size(a)))
            .then_with(|| a.metric.to_string().cmp(&b.metric.to_string()))
    });
    let mut table = Table::new(spec);
    for Changed { metric, ratio } in changed {
        let (low, high) = ratio.interval.unzip();
        table.push(vec![
            metric.to_string().into(),
            ratio.before.into(),
            ratio.after.into(),
            ratio.ratio.into(),
            low.into(),
            high.into(),
            ratio.verdict().name().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Cell;

    #[test]
    fn what_is_certain_stands_first() {
        let changed = |metric: &str, after: [f64; 3]| Changed {
            metric: Metric::Named(metric.into()),
            ratio: Ratio::of(&[1.0, 1.01, 0.99], &after).unwrap(),
        };
        let thread = Changed { metric: Metric::TaskWaits("rustc".into()), ..changed("", [90.0, 90.1, 89.9]) };
        let all = vec![changed("noise", [1.0, 9.0, 0.1]), changed("more", [3.0, 3.01, 2.99])];
        let with_thread = [all.clone(), vec![thread]].concat();
        assert_eq!(summary(&with_thread), "Of 3 metrics, 2 changed by more than noise; largest change: more, x3.");
        assert_eq!(summary(&all), "Of 2 metrics, 1 changed by more than noise; largest change: more, x3.");
        let table = table(&CHANGE, all);
        assert_eq!(table.cell(0, "metric"), Some(&Cell::Text("more".into())));
        assert_eq!(table.cell(0, "verdict"), Some(&Cell::Text("higher".into())));
        let hardly = Ratio::of(&[0.02], &[0.04]).unwrap();
        let shows = |metric: Metric| Changed { metric, ratio: hardly }.is_worth_showing();
        assert!(shows(Metric::State("halted".into())) && !shows(Metric::TaskRuns("vhost".into())));
        assert_eq!(table.cell(1, "verdict"), Some(&Cell::Text("noise could explain it".into())));
    }
}
