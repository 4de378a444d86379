//! What share of a table's bar column has each row?

use base::table::Shown;
use base::{Cell, Table};

/// Each row's share of the bar column's total over all rows, printed or not; a column of shares has them already. `None`
/// for a table without bars.
pub(crate) fn shares(table: &Table, shown: &Shown) -> Option<Vec<f64>> {
    let index = table.column(shown.bar.as_deref()?)?;
    let value = |row: &Vec<Cell>| row[index].size().max(0.0);
    let sum: f64 = table.rows.iter().map(value).sum();
    let whole = if table.columns[index].unit == "share" { 1.0 } else { sum };
    (sum > 0.0).then(|| table.rows.iter().map(|row| value(row) / whole).collect())
}

/// The heading of the shares: of what they are shares. Column `time_share` has shares of time.
pub(crate) fn share_of(table: &Table, shown: &Shown) -> String {
    let column = shown.bar.as_deref().and_then(|name| table.column(name)).map(|index| &table.columns[index]);
    match column.map(|column| (column.unit, column.name.strip_suffix("_share"))) {
        Some(("share", Some(of))) => format!("of {}", of.replace('_', " ")),
        Some(("ns", _)) => "of time".to_owned(),
        Some(("count", _)) => "of count".to_owned(),
        _ => "share".to_owned(),
    }
}
