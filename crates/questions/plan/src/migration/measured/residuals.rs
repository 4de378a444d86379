//! Was what was said before a run right?

use super::passes;
use base::method::Method;
use base::prediction::Said;
use base::{Cell, Table, TableSpec, shown, table};
use facts::migrations::{Migration, Migrations};

pub(super) const RESIDUALS: TableSpec = table! {
    migration.residuals version 1:
    "The prediction of one quantity before one run, or before one guest was saved (`run` is its number), and the outcome: ns, a count or bytes. \
     Null is never; `passes` counts those before the final one.";
    key_u64("") run, key what, f64("") predicted_low, f64("") predicted_high, f64("") actual, flag inside,
    f64("") naive, text unit;
    shown![
        "Predicted and measured", 40;
        what: "quantity", run, predicted_low: "at least", predicted_high: "at most", actual: "it was", inside,
        naive: "naive model", unit,
    ]
};

/// What a run was; `None` is never.
pub(in super::super) fn actual(migration: &Migration, what: &str) -> Option<f64> {
    let total_ns = migration.total_ns()?;
    match what {
        "total" => Some(total_ns as f64),
        "downtime" => migration.by_events().map(|ns| ns as f64),
        "passes" => Some(passes::before_final(migration).unwrap_or_default() as f64),
        "bytes" => migration.last(|poll| poll.transferred_bytes).map(|bytes| bytes as f64),
        _ => None,
    }
}

/// Whether the model may speak of it: it makes passes of pre-copy.
pub(super) fn is_of_model(migration: &Migration) -> bool {
    migration.method.is_none_or(|method| method == Method::Precopy)
}

/// The runs that a prediction is held against, with their numbers: one whose memory was shared, so that its heartbeat could be seen, is slower
/// for that.
pub(in super::super) fn timed(migrations: &Migrations) -> impl Iterator<Item = (usize, &Migration)> {
    migrations.list.iter().enumerate().filter(|(_, one)| one.heartbeat.is_none() && is_of_model(one))
}

/// What was said of one quantity of a run, or of a guest that was saved, and what it was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held<'s> {
    /// Which run, or which guest.
    pub number: usize,
    pub said: &'s Said,
    /// `None` where it is not known, or never came to be.
    pub was: Option<f64>,
}

/// All that a prediction is held against.
pub(super) fn held(migrations: &Migrations) -> Vec<Held<'_>> {
    let said = || migrations.said.iter().flat_map(|prediction| &prediction.said);
    let of_run =
        |(number, migration)| said().map(move |said| Held { number, said, was: actual(migration, &said.what) });
    timed(migrations).flat_map(of_run).collect()
}

pub(super) fn table(held: &[Held<'_>]) -> Table {
    let mut table = Table::new(&RESIDUALS);
    let cell = |value: Option<f64>| value.map_or(Cell::Missing, Cell::F64);
    for Held { number, said, was } in held {
        table.push(vec![
            (*number as u64).into(),
            said.what.as_str().into(),
            cell(said.low),
            cell(said.high),
            cell(*was),
            Cell::Bool(said.holds(*was)),
            cell(said.naive),
            said.unit.as_str().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::heartbeat::{Heartbeat, SCHEMA};
    use base::prediction::{self, Prediction};

    #[test]
    fn a_run_that_was_slowed_by_looking_at_it_or_went_another_way_is_held_against_no_prediction() {
        let said = Said {
            what: "total".into(),
            low: Some(1e9),
            likely: Some(1e9),
            high: Some(2e9),
            naive: None,
            unit: "ns".into(),
        };
        let said = Prediction {
            schema: prediction::SCHEMA.into(),
            about: "migration".into(),
            given: std::collections::BTreeMap::new(),
            said: vec![said],
        };
        let plain = Migration { resumed_ns: Some(3_000_000_000), ..Migration::default() };
        let heartbeat = Heartbeat {
            schema: SCHEMA.into(),
            last_on_source_ns: 1,
            first_on_target_ns: 2,
            poller_max_gap_ns: 0,
            period_ns: 1,
        };
        let observed = Migration { heartbeat: Some(heartbeat), ..plain.clone() };
        let compressed = Migration { method: Some(Method::Zstd), ..plain.clone() };
        let list = vec![observed, plain, compressed];
        let migrations = Migrations { list, said: Some(said), ..Migrations::default() };
        let table = table(&held(&migrations));
        let [row] = &table.rows[..] else { panic!("{:?}", table.rows) };
        assert_eq!((&row[0], &row[5]), (&Cell::U64(1), &Cell::Bool(false)));
    }
}
