//! Who may have kept each starved thread from running, with what speaks for and against each: all of what findings name one of.

use super::model::Model;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};

/// The rivals as a table.
pub const RIVALS: TableSpec = TableSpec {
    section: "placement",
    name: "rivals",
    version: 1,
    row: "One who may have kept one starved thread from running: what it took, and what speaks for and against it; the finding's title \
          names the one that is `named`.",
    columns: &[
        Column::key("machine"),
        Column::key("vm"),
        Column::key("thread"),
        Column::key_of("tid", ColumnType::I64),
        Column::key_of("rank", ColumnType::U64),
        Column::text("rival"),
        Column::value("named", "", ColumnType::Bool),
        Column::share("waited"),
        Column::share("took"),
        Column::value("at_most", "", ColumnType::Bool),
        Column::text("cpus"),
        Column::text("speaks_for"),
        Column::text("speaks_against"),
    ],
    shown: Some(Shown::of(
        "What may have kept threads from running",
        &[
            ("vm", "VM"),
            ("thread", "thread"),
            ("rival", "rival"),
            ("took", "took"),
            ("speaks_for", "for"),
            ("speaks_against", "against"),
        ],
        12,
    )),
};

/// Of all machines, who waited longest first.
pub fn table(models: &[Model]) -> Table {
    let mut table = Table::new(&RIVALS);
    for model in models {
        let mut verdicts: Vec<_> = model.verdicts.all().iter().collect();
        verdicts.sort_by(|a, b| b.waited.total_cmp(&a.waited).then(a.victim.cmp(&b.victim)));
        for verdict in verdicts {
            let thread = &model.machine.threads[verdict.victim];
            let named = verdict.winner();
            for (rank, rival) in (1..).zip(&verdict.rivals) {
                table.push(vec![
                    model.id.as_str().into(),
                    thread.vm.clone().into(),
                    thread.role.to_string().into(),
                    thread.tid.map_or(Cell::Missing, |tid| Cell::I64(tid.into())),
                    Cell::U64(rank),
                    rival.kind.noun().into(),
                    named.is_some_and(|named| std::ptr::eq(named, rival)).into(),
                    verdict.waited.into(),
                    rival.took.into(),
                    rival.at_most.into(),
                    verdict.cpus.to_string().into(),
                    verdict.speaks_for(rival).into(),
                    verdict.speaks_against(rival).into(),
                ]);
            }
        }
    }
    table
}
