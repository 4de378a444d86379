//! The tables of a plan.

use super::inputs::Inputs;
use super::model::Estimate;
use super::predict::Predicted;
use super::{effects, predict};
use base::table::Shown;
use base::{Cell, Column, ColumnType, Table};

const TEXT: ColumnType = ColumnType::Text;
const F64: ColumnType = ColumnType::F64;

fn shown(title: &str, columns: &[(&str, &str)]) -> Option<Shown> {
    let columns = columns.iter().map(|(name, heading)| ((*name).to_owned(), (*heading).to_owned())).collect();
    Some(Shown { title: title.to_owned(), columns, most_rows: 60, ..Shown::default() })
}

fn ends(value: Option<Estimate>) -> [Cell; 3] {
    [value.map(|value| value.mid).into(), value.map(|value| value.low).into(), value.map(|value| value.high).into()]
}

/// Table `plan`: a row per change, and the combination.
pub fn plan(rows: &[Predicted]) -> Table {
    let share = |name: &str| Column::value(name, "share", F64);
    let mut columns = vec![Column::key("change"), Column::value("title", "", TEXT), Column::value("needs", "", TEXT)];
    columns.extend(["cpu_now", "cpu_now_low", "cpu_now_high"].map(share));
    columns.extend(["cpu_after", "cpu_after_low", "cpu_after_high"].map(share));
    columns.extend(["saved", "saved_low", "saved_high"].map(share));
    columns.extend(["kind", "note", "evidence"].map(|name| Column::value(name, "", TEXT)));
    let mut table = Table::new("plan", columns);
    for row in rows {
        let effect = effects::effect(&row.change);
        let needs = effect.map(|effect| effect.needs.name());
        let mut cells: Vec<Cell> = vec![row.change.as_str().into(), row.title.as_str().into(), needs.into()];
        cells.extend(ends(Some(row.now)));
        cells.extend(ends(row.after));
        cells.extend(ends(row.saved));
        cells.push(if row.after.is_some() { "modelled".into() } else { Cell::Missing });
        cells.push(Some(row.note.as_str()).filter(|note| !note.is_empty()).into());
        cells.push(effect.map(|effect| effect.evidence).into());
        table.push(cells);
    }
    let columns = [
        ("change", "change"),
        ("cpu_now", "CPU now"),
        ("cpu_after", "after"),
        ("cpu_after_low", "least"),
        ("cpu_after_high", "most"),
        ("needs", "needs"),
        ("note", "note"),
    ];
    table.shown = shown("What remains after each change", &columns);
    table
}

/// Table `plan_exits`: what the exits cost now.
pub fn exits(inputs: &Inputs) -> Table {
    let share = |name: &str| Column::value(name, "share", F64);
    let mut columns = vec![Column::key("level"), Column::key("reason"), Column::value("per_second", "count", F64)];
    columns.extend(["cpu", "cpu_low", "cpu_high", "cpu_nested"].map(share));
    columns.push(Column::value("from", "", TEXT));
    let mut table = Table::new("plan_exits", columns);
    for one in &inputs.shares {
        let cpu = one.plain + one.nested;
        let mut row: Vec<Cell> =
            vec![format!("L{}", one.level).into(), one.reason.as_str().into(), one.per_second.into()];
        row.extend(ends(Some(cpu)));
        row.extend([one.nested.mid.into(), one.from.into()]);
        table.push(row);
    }
    let columns = [
        ("level", "at"),
        ("reason", "exit"),
        ("per_second", "per second"),
        ("cpu", "CPU"),
        ("cpu_low", "least"),
        ("cpu_high", "most"),
        ("cpu_nested", "due to nesting"),
        ("from", "from"),
    ];
    table.shown = shown("Cost of exits now, share of one vCPU's CPU", &columns);
    table
}

/// Table `assumptions`.
pub fn assumptions(inputs: &Inputs) -> Table {
    let columns = vec![Column::key("what"), Column::value("value", "", TEXT), Column::value("from", "", TEXT)];
    let mut table = Table::new("assumptions", columns);
    for one in &inputs.assumptions {
        table.push(vec![one.what.as_str().into(), one.value.as_str().into(), one.from.into()]);
    }
    table.shown = shown("Assumptions", &[("what", "what"), ("value", "assumed"), ("from", "by")]);
    table
}

/// Table `effects`: all changes that the model knows, and where their numbers come from.
pub fn effects_known(wanted: &predict::Wanted) -> Table {
    let columns = vec![Column::key("change"), Column::value("title", "", TEXT), Column::value("evidence", "", TEXT)];
    let mut table = Table::new("effects", columns);
    for effect in effects::EFFECTS.iter().filter(|effect| wanted.allows(effect)) {
        table.push(vec![effect.id.into(), effect.title.into(), effect.evidence.into()]);
    }
    table.shown = shown("Sources of the effects", &[("change", "change"), ("title", "is"), ("evidence", "by")]);
    table
}
