//! Who may have kept each starved thread from running, with what speaks for and against each: all of what findings name one of.

use super::model::Model;
use base::{Cell, Table, TableSpec, shown, table};

pub(super) const RIVALS: TableSpec = table! {
    placement.rivals version 1:
    "One who may have kept one starved thread from running: what it took, and what speaks for and against it; the finding's title \
          names the one that is `named`.";
    key machine, key vm, key thread, key_i64("") tid, key_u64("") rank, text rival, flag named, share waited,
    share took, flag at_most, text cpus, text speaks_for, text speaks_against;
    shown![
        "What may have kept threads from running", 12;
        vm: "VM", thread, rival, took, speaks_for: "for", speaks_against: "against",
    ]
};

/// Of all machines, who waited longest first.
pub(super) fn table(models: &[Model]) -> Table {
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
                    rival.kind.name().into(),
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
