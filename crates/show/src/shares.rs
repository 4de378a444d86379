//! What share of a table's bar column has each row?

use base::table::Shown;
use base::{Cell, Table};

/// Each row's share of the bar column's total over all rows, printed or not; `None` for a table without bars.
pub(crate) fn shares(table: &Table, shown: &Shown) -> Option<Vec<f64>> {
    let index = table.column(shown.bar.as_deref()?)?;
    let value = |row: &Vec<Cell>| match row[index] {
        Cell::U64(value) => value as f64,
        Cell::I64(value) => value as f64,
        Cell::F64(value) if value.is_finite() => value,
        _ => 0.0,
    };
    let whole: f64 = table.rows.iter().map(value).sum();
    (whole > 0.0).then(|| table.rows.iter().map(|row| value(row) / whole).collect())
}
