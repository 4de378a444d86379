//! The tables of a plan.

use super::inputs::Inputs;
use super::predict::Predicted;
use super::{effects, predict};
use base::{Cell, Table, TableSpec, shown, table};
use facts::estimate::Estimate;

pub const TABLES: &[&TableSpec] = &[&PLAN, &PLAN_EXITS, &ASSUMPTIONS, &EFFECTS];

const MOST_ROWS: usize = 60;

/// What remains after each change, and after all of them.
pub(super) const PLAN: TableSpec = table! {
    plan.plan version 1:
    "What one change, or the combination of all, would leave of the CPU time that exits take, modelled.";
    key change, text title, text needs, share cpu_now, share cpu_now_low, share cpu_now_high, share cpu_after,
    share cpu_after_low, share cpu_after_high, share saved, share saved_low, share saved_high, text kind, text note,
    text evidence;
    shown![
        "What remains after each change", MOST_ROWS;
        change, cpu_now: "CPU now", cpu_after: "after", cpu_after_low: "least", cpu_after_high: "most", needs, note,
    ]
};

/// What the exits cost now.
pub(super) const PLAN_EXITS: TableSpec = table! {
    plan.plan_exits version 1: "What the exits from one level for one reason cost now, as a share of one vCPU's CPU.";
    key level, key reason, f64("count") per_second, share cpu, share cpu_low, share cpu_high, share cpu_nested,
    text from;
    shown![
        "Cost of exits now, share of one vCPU's CPU", MOST_ROWS;
        level: "at", reason: "exit", per_second: "per second", cpu: "CPU", cpu_low: "least", cpu_high: "most",
        cpu_nested: "due to nesting", from,
    ]
};

/// What the model was given, and what it had to assume.
pub(super) const ASSUMPTIONS: TableSpec = table! {
    plan.assumptions version 1: "One value that the prediction rests on, and where it comes from.";
    key what, text value, text from;
    shown!["Assumptions", MOST_ROWS; what, value: "assumed", from: "by"]
};

/// All changes that the model knows, and where their numbers come from.
pub(super) const EFFECTS: TableSpec = table! {
    plan.effects version 1: "One change that the model knows, and the publications that its effect is taken from.";
    key change, text title, text evidence;
    shown!["Sources of the effects", MOST_ROWS; change, title: "is", evidence: "by"]
};

fn ends(value: Option<Estimate>) -> [Cell; 3] {
    [value.map(|value| value.mid).into(), value.map(|value| value.low).into(), value.map(|value| value.high).into()]
}

/// Table [`PLAN`].
pub(super) fn plan(rows: &[Predicted]) -> Table {
    let mut table = Table::new(&PLAN);
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
    table
}

/// Table [`PLAN_EXITS`].
pub(super) fn exits(inputs: &Inputs) -> Table {
    let mut table = Table::new(&PLAN_EXITS);
    for one in &inputs.shares {
        let cpu = one.plain + one.nested;
        let mut row: Vec<Cell> =
            vec![format!("L{}", one.level).into(), one.reason.as_str().into(), one.per_second.into()];
        row.extend(ends(Some(cpu)));
        row.extend([one.nested.mid.into(), one.from.into()]);
        table.push(row);
    }
    table
}

/// Table [`ASSUMPTIONS`].
pub(super) fn assumptions(inputs: &Inputs) -> Table {
    let mut table = Table::new(&ASSUMPTIONS);
    for one in &inputs.assumptions {
        table.push(vec![one.what.as_str().into(), one.value.as_str().into(), one.from.into()]);
    }
    table
}

/// Table [`EFFECTS`].
pub(super) fn effects_known(wanted: &predict::Wanted) -> Table {
    let mut table = Table::new(&EFFECTS);
    for effect in effects::EFFECTS.iter().filter(|effect| wanted.allows(effect)) {
        table.push(vec![effect.id.into(), effect.title.into(), effect.evidence.into()]);
    }
    table
}
