//! The tables of section `ablation`.

use super::Trial;
use base::{Cell, Table, TableSpec, shown, table};
use facts::ablation::{Ranked, Tried, measures};

/// All tables, in reading order.
pub const TABLES: &[&TableSpec] = &[&EFFECTS, &RUNS];

pub const EFFECTS: TableSpec = table! {
    ablation.effects version 1:
    "One number that the budget judges, as a mean over the runs without one change and over those with it. `chance` is how \
          likely a difference as large is if the change did nothing (permutation of the runs, two-sided); `certain` is 1 where that is too \
          little to believe, for all rows together (Holm, 5 %). `effect` is of the change as a whole: helped, harmed, none found, \
          too few runs.";
    key change, key measure, text unit, f64("") before, f64("") after, share chance, u64("") certain, text effect,
    count runs;
    shown![
        "What each change did to what the budget judges, what took away most first", 30;
        change, measure, before: "without", after: "with", unit, chance: "by chance", effect,
    ]
};

pub const RUNS: TableSpec = table! {
    ablation.runs version 1:
    "One number that the budget judges, in one run. Runs without the change (`state` is `before`) and with it (`after`) took turns.";
    key change, key state, key_u64("") run, key measure, text unit, f64("") value;
};

/// Table [`EFFECTS`].
pub fn effects(trial: &Trial, ranked: &[Ranked]) -> Table {
    let mut table = Table::new(&EFFECTS);
    for one in ranked {
        for change in &one.changes {
            table.push(vec![
                one.name.clone().into(),
                change.measure.name().into(),
                change.measure.unit().into(),
                rounded(change.before).into(),
                rounded(change.after).into(),
                change.chance.into(),
                u64::from(change.is_certain).into(),
                one.effect.name().into(),
                (trial.runs() as u64).into(),
            ]);
        }
    }
    table
}

/// Means of many nanoseconds are not known to a part of one.
fn rounded(mean: f64) -> f64 {
    if mean >= 1_000.0 { mean.round() } else { mean }
}

/// Table [`RUNS`].
pub fn runs(trial: &Trial) -> Table {
    let mut table = Table::new(&RUNS);
    let measures = measures(&trial.budget);
    for Tried { name, before, after } in &trial.tried {
        for (state, runs) in [("before", before), ("after", after)] {
            for (number, run) in runs.iter().enumerate() {
                for (measure, value) in measures.iter().zip(run.values()) {
                    let cells: [Cell; 6] = [
                        name.clone().into(),
                        state.into(),
                        (number as u64).into(),
                        measure.name().into(),
                        measure.unit().into(),
                        (*value).into(),
                    ];
                    table.push(cells.into());
                }
            }
        }
    }
    table
}
