//! The tables of the answer.

use super::features::meaning;
use super::known;
use super::model::{Machine, Model, State};
use base::table::Shown;
use base::{Cell, Column, ColumnType, Table};
use std::collections::BTreeSet;

const TEXT: ColumnType = ColumnType::Text;

/// So many features that say nothing of their own are worth their lines.
const FEW_SILENT: usize = 12;

/// How the kernel says that a vulnerability is none of this processor's
/// (Documentation/ABI/testing/sysfs-devices-system-cpu, vulnerabilities).
const NOT_AFFECTED: &str = "Not affected";

/// More rows than there are features.
const ALL_ROWS: usize = 200;

/// Every feature of every machine, and what only another level can tell.
pub fn features(model: &Model, all: bool) -> Table {
    let columns = vec![
        Column::key("level"),
        Column::key("feature"),
        Column::value("state", "", TEXT),
        Column::value("evidence", "", TEXT),
        Column::value("machine", "", TEXT),
        Column::value("meaning", "", TEXT),
    ];
    let mut table = Table::new("features", columns);
    let mut push = |level: String, feature: &str, state: State, evidence: &str, machine: &str| {
        let cells = [level.as_str(), feature, state.name(), evidence, machine, meaning(feature)];
        table.push(cells.into_iter().map(Cell::from).collect());
    };
    for machine in &model.machines {
        for row in &machine.features {
            push(machine.level.to_string(), row.feature, row.state, &row.evidence, &machine.id);
        }
    }
    for (level, feature, evidence) in model.untold() {
        push(level.to_string(), feature, State::Unknown, &evidence, "");
    }
    if all && model.machines.len() == 1 {
        let columns = [("level", ""), ("feature", "feature"), ("state", "is"), ("evidence", "because")];
        let is = |row: &[Cell], state: State| row[2] == Cell::from(state.name());
        let unknown = table.rows.iter().filter(|row| is(row, State::Unknown)).count();
        let mut reasons = BTreeSet::new();
        let silent = |row: &[Cell]| match &row[3] {
            _ if is(row, State::Unknown) => unknown > FEW_SILENT,
            Cell::Text(reason) if is(row, State::Absent) => {
                reason.ends_with(NOT_AFFECTED) || !reasons.insert(reason.clone())
            }
            _ => false,
        };
        let rest = match unknown > FEW_SILENT {
            true => "unknown, not affected, or absent for a reason given above",
            false => "not affected, or absent for a reason given above",
        };
        table.shown = telling_first(&mut table.rows, silent, rest, shown("Features", &columns));
    }
    table
}

/// Features against machines, for people.
pub fn matrix(model: &Model, all: bool) -> Table {
    let mut columns = vec![Column::key("feature")];
    columns.extend(model.machines.iter().map(|machine| Column::value(&machine.id, "", TEXT)));
    columns.push(Column::value("meaning", "", TEXT));
    let mut table = Table::new("matrix", columns);
    let mut names: Vec<&str> = Vec::new();
    for row in model.machines.iter().flat_map(|machine| &machine.features) {
        if !names.contains(&row.feature) {
            names.push(row.feature);
        }
    }
    for name in names {
        let state = |machine: &Machine| Cell::from(machine.row(name).map(|row| row.state.name()));
        let mut row: Vec<Cell> = vec![name.into()];
        row.extend(model.machines.iter().map(state));
        row.push(meaning(name).into());
        table.push(row);
    }
    if all && model.machines.len() > 1 {
        let ids: Vec<(&str, &str)> =
            model.machines.iter().map(|machine| (machine.id.as_str(), machine.id.as_str())).collect();
        let columns = [&[("feature", "feature")], ids.as_slice(), &[("meaning", "description")]].concat();
        let unknown = |row: &[Cell]| {
            row[1..=ids.len()]
                .iter()
                .all(|cell| matches!(cell, Cell::Missing) || *cell == Cell::from(State::Unknown.name()))
        };
        table.shown =
            telling_first(&mut table.rows, unknown, "unknown on every machine", shown("Features by machine", &columns));
    }
    table
}

/// Every parameter of KVM's modules, with what is known of it.
pub fn parameters(model: &Model) -> Table {
    let columns = vec![
        Column::key("level"),
        Column::key("module"),
        Column::key("parameter"),
        Column::value("value", "", TEXT),
        Column::value("default", "", TEXT),
        Column::value("meaning", "", TEXT),
        Column::value("without", "", TEXT),
    ];
    let mut table = Table::new("parameters", columns);
    for machine in &model.machines {
        for parameter in &machine.facts.parameters {
            let known = known::of(&parameter.module, &parameter.name);
            let text =
                |of: fn(&known::Known) -> &'static str| Cell::from(known.map(of).filter(|text| !text.is_empty()));
            let own = [machine.level.to_string(), parameter.module.clone(), parameter.name.clone()];
            let mut row: Vec<Cell> = own.into_iter().map(Cell::from).collect();
            row.push(parameter.value.clone().into());
            row.extend([text(|known| known.default), text(|known| known.meaning), text(|known| known.without)]);
            table.push(row);
        }
    }
    table
}

/// Rows that are `silent` go last, and are not printed where they are many: a machine without VMX has a page of features
/// that are absent for this one reason. Their number, and that they are the `rest`, is said below.
fn telling_first(
    rows: &mut Vec<Vec<Cell>>,
    silent: impl FnMut(&[Cell]) -> bool,
    rest: &'static str,
    shown: Option<Shown>,
) -> Option<Shown> {
    let silent: Vec<bool> = rows.iter().map(Vec::as_slice).map(silent).collect();
    let number = silent.iter().filter(|silent| **silent).count();
    let mut ranked: Vec<(bool, Vec<Cell>)> = silent.into_iter().zip(std::mem::take(rows)).collect();
    ranked.sort_by_key(|(silent, _)| *silent);
    rows.extend(ranked.into_iter().map(|(_, row)| row));
    match (number, rows.len() - number) {
        (..=FEW_SILENT, _) => shown,
        (_, 0) => None,
        (_, telling) => shown.map(|shown| Shown { most_rows: telling, rest: Some(rest), ..shown }),
    }
}

fn shown(title: &str, columns: &[(&str, &str)]) -> Option<Shown> {
    let columns = columns.iter().map(|(name, heading)| ((*name).to_owned(), (*heading).to_owned())).collect();
    Some(Shown { title: title.to_owned(), columns, most_rows: ALL_ROWS, ..Shown::default() })
}
