//! The tables of the answer.

use super::features::meaning;
use super::known;
use super::model::Model;
use super::{flags, inferred, measured};
use base::figure::Standing;
use base::table::{Across, Shown, TableSpec};
use base::{Cell, Level, Table, shown, table};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// All tables of this question, in reading order.
pub const TABLES: &[&TableSpec] = &[
    &FEATURES,
    &PARAMETERS,
    &flags::FLAGS,
    &inferred::INFERRED,
    &measured::exits::EXITS,
    &measured::clocks::CLOCKS,
    &measured::ladder::LADDER,
    &measured::programs::PROGRAMS,
    &measured::programs::PROGRAM_RUNS,
];

/// Every feature of every machine, and what only another level can tell.
pub(crate) const FEATURES: TableSpec = table! {
    nesting.features version 2:
    "Whether one virtualization feature is on at one level, and what shows it; no machine where it is another level's.";
    key machine, key level, key feature, text state, text evidence, text meaning;
};

const OF_ONE_MACHINE: Shown = shown!["Features", ALL_ROWS; level: "", feature, state: "is", evidence: "because"];

const OF_SEVERAL_MACHINES: Shown = Shown {
    across: Some(Across { by: "machine", cell: "state", after: 1 }),
    ..shown!["Features by machine", ALL_ROWS; feature, meaning: "description"]
};

/// Every parameter of KVM's modules, with what is known of it.
pub const PARAMETERS: TableSpec = table! {
    nesting.parameters version 2: "One parameter of a KVM module on one machine, and what is known of it.";
    key machine, key level, key module, key parameter, text value, text default, text meaning, text without;
};

/// So many features that say nothing of their own are worth their lines.
const FEW_SILENT: usize = 12;

/// How the kernel says that a vulnerability is none of this processor's
/// (Documentation/ABI/testing/sysfs-devices-system-cpu, vulnerabilities).
const NOT_AFFECTED: &str = "Not affected";

/// More rows than there are features.
const ALL_ROWS: usize = 200;

/// What is said of a feature: of a machine, or of a level that only another machine can tell.
struct Said<'m> {
    machine: Option<&'m str>,
    level: Level,
    feature: &'static str,
    state: Standing,
    evidence: Cow<'m, str>,
}

fn said(model: &Model) -> Vec<Said<'_>> {
    let seen = model.machines.iter().flat_map(|machine| {
        machine.features.iter().map(|row| Said {
            machine: Some(&machine.id),
            level: machine.level,
            feature: row.feature,
            state: row.state,
            evidence: Cow::Borrowed(&row.evidence),
        })
    });
    let untold = model.untold().into_iter().map(|(level, feature, evidence)| Said {
        machine: None,
        level,
        feature,
        state: Standing::Unknown,
        evidence: Cow::Owned(evidence),
    });
    seen.chain(untold).collect()
}

/// Table [`FEATURES`]; with `all`, people see it too.
pub fn features(model: &Model, all: bool) -> Table {
    let mut rows = said(model);
    let shown = match model.machines.len() {
        _ if !all => None,
        0 => None,
        1 => as_list(&mut rows),
        _ => as_matrix(&mut rows),
    };
    let mut table = Table { shown, ..Table::new(&FEATURES) };
    for row in rows {
        let mut cells = vec![Cell::from(row.machine), row.level.to_string().into()];
        cells.extend([row.feature, row.state.name(), &row.evidence, meaning(row.feature)].map(Cell::from));
        table.push(cells);
    }
    table
}

/// The features of one machine, those that say nothing of their own last.
fn as_list(rows: &mut Vec<Said<'_>>) -> Option<Shown> {
    let unknown = rows.iter().filter(|row| row.state == Standing::Unknown).count();
    let mut reasons = BTreeSet::new();
    let silent = |row: &Said<'_>| match row.state {
        Standing::Unknown => unknown > FEW_SILENT,
        Standing::Absent => row.evidence.ends_with(NOT_AFFECTED) || !reasons.insert(row.evidence.to_string()),
        Standing::On | Standing::Off => false,
    };
    let silent: Vec<bool> = rows.iter().map(silent).collect();
    let rest = match unknown > FEW_SILENT {
        true => "unknown, not affected, or absent for a reason given above",
        false => "not affected, or absent for a reason given above",
    };
    telling_first(rows, &silent);
    let number = silent.iter().filter(|silent| **silent).count();
    without_silent(OF_ONE_MACHINE, number, silent.len() - number, rest)
}

/// The features of several machines side by side, those that are unknown everywhere last.
fn as_matrix(rows: &mut Vec<Said<'_>>) -> Option<Shown> {
    let mut known: BTreeMap<&str, bool> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.machine.is_some()) {
        *known.entry(row.feature).or_default() |= row.state != Standing::Unknown;
    }
    let silent: Vec<bool> = rows.iter().map(|row| known.get(row.feature) != Some(&true)).collect();
    telling_first(rows, &silent);
    let telling = known.values().filter(|known| **known).count();
    without_silent(OF_SEVERAL_MACHINES, known.len() - telling, telling, "unknown on every machine")
}

/// Table [`PARAMETERS`].
pub fn parameters(model: &Model) -> Table {
    let mut table = Table::new(&PARAMETERS);
    for machine in &model.machines {
        for parameter in &machine.facts.parameters {
            let known = known::of(&parameter.module, &parameter.name);
            let text =
                |of: fn(&known::Known) -> &'static str| Cell::from(known.map(of).filter(|text| !text.is_empty()));
            let level = machine.level.to_string();
            let own = [&machine.id, &level, &parameter.module, &parameter.name];
            let mut row: Vec<Cell> = own.into_iter().map(|text| Cell::from(text.as_str())).collect();
            row.push(parameter.value.clone().into());
            row.extend([text(|known| known.default), text(|known| known.meaning), text(|known| known.without)]);
            table.push(row);
        }
    }
    table
}

/// Rows that are `silent` go last.
fn telling_first<T>(rows: &mut Vec<T>, silent: &[bool]) {
    let mut ranked: Vec<(bool, T)> = silent.iter().copied().zip(std::mem::take(rows)).collect();
    ranked.sort_by_key(|(silent, _)| *silent);
    rows.extend(ranked.into_iter().map(|(_, row)| row));
}

/// How people see a table of which so many rows say something and so many are silent: these are not printed where they are
/// many, because a machine without VMX has a page of features that are absent for this one reason. Their number, and that
/// they are the `rest`, is said below.
fn without_silent(shown: Shown, silent: usize, telling: usize, rest: &'static str) -> Option<Shown> {
    match (silent, telling) {
        (..=FEW_SILENT, _) => Some(shown),
        (_, 0) => None,
        (_, telling) => Some(Shown { most_rows: telling, rest: Some(rest), ..shown }),
    }
}
