//! The tables of a plan.

use super::inputs::Inputs;
use super::model::Estimate;
use super::predict::Predicted;
use super::{effects, predict};
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};

/// All tables of a plan.
pub const TABLES: &[&TableSpec] = &[&PLAN, &PLAN_EXITS, &ASSUMPTIONS, &EFFECTS];

const MOST_ROWS: usize = 60;

/// What remains after each change, and after all of them.
pub const PLAN: TableSpec = TableSpec {
    section: "plan",
    name: "plan",
    version: 1,
    row: "What one change, or the combination of all, would leave of the CPU time that exits take, modelled.",
    columns: &[
        Column::key("change"),
        Column::text("title"),
        Column::text("needs"),
        Column::share("cpu_now"),
        Column::share("cpu_now_low"),
        Column::share("cpu_now_high"),
        Column::share("cpu_after"),
        Column::share("cpu_after_low"),
        Column::share("cpu_after_high"),
        Column::share("saved"),
        Column::share("saved_low"),
        Column::share("saved_high"),
        Column::text("kind"),
        Column::text("note"),
        Column::text("evidence"),
    ],
    shown: Some(Shown::of(
        "What remains after each change",
        &[
            ("change", "change"),
            ("cpu_now", "CPU now"),
            ("cpu_after", "after"),
            ("cpu_after_low", "least"),
            ("cpu_after_high", "most"),
            ("needs", "needs"),
            ("note", "note"),
        ],
        MOST_ROWS,
    )),
};

/// What the exits cost now.
pub const PLAN_EXITS: TableSpec = TableSpec {
    section: "plan",
    name: "plan_exits",
    version: 1,
    row: "What the exits from one level for one reason cost now, as a share of one vCPU's CPU.",
    columns: &[
        Column::key("level"),
        Column::key("reason"),
        Column::value("per_second", "count", ColumnType::F64),
        Column::share("cpu"),
        Column::share("cpu_low"),
        Column::share("cpu_high"),
        Column::share("cpu_nested"),
        Column::text("from"),
    ],
    shown: Some(Shown::of(
        "Cost of exits now, share of one vCPU's CPU",
        &[
            ("level", "at"),
            ("reason", "exit"),
            ("per_second", "per second"),
            ("cpu", "CPU"),
            ("cpu_low", "least"),
            ("cpu_high", "most"),
            ("cpu_nested", "due to nesting"),
            ("from", "from"),
        ],
        MOST_ROWS,
    )),
};

/// What the model was given, and what it had to assume.
pub const ASSUMPTIONS: TableSpec = TableSpec {
    section: "plan",
    name: "assumptions",
    version: 1,
    row: "One value that the prediction rests on, and where it comes from.",
    columns: &[Column::key("what"), Column::text("value"), Column::text("from")],
    shown: Some(Shown::of("Assumptions", &[("what", "what"), ("value", "assumed"), ("from", "by")], MOST_ROWS)),
};

/// All changes that the model knows, and where their numbers come from.
pub const EFFECTS: TableSpec = TableSpec {
    section: "plan",
    name: "effects",
    version: 1,
    row: "One change that the model knows, and the publications that its effect is taken from.",
    columns: &[Column::key("change"), Column::text("title"), Column::text("evidence")],
    shown: Some(Shown::of(
        "Sources of the effects",
        &[("change", "change"), ("title", "is"), ("evidence", "by")],
        MOST_ROWS,
    )),
};

fn ends(value: Option<Estimate>) -> [Cell; 3] {
    [value.map(|value| value.mid).into(), value.map(|value| value.low).into(), value.map(|value| value.high).into()]
}

/// Table [`PLAN`].
pub fn plan(rows: &[Predicted]) -> Table {
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
pub fn exits(inputs: &Inputs) -> Table {
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
pub fn assumptions(inputs: &Inputs) -> Table {
    let mut table = Table::new(&ASSUMPTIONS);
    for one in &inputs.assumptions {
        table.push(vec![one.what.as_str().into(), one.value.as_str().into(), one.from.into()]);
    }
    table
}

/// Table [`EFFECTS`].
pub fn effects_known(wanted: &predict::Wanted) -> Table {
    let mut table = Table::new(&EFFECTS);
    for effect in effects::EFFECTS.iter().filter(|effect| wanted.allows(effect)) {
        table.push(vec![effect.id.into(), effect.title.into(), effect.evidence.into()]);
    }
    table
}
