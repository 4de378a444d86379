//! Any bytes as a part of a data set, which comes from other hosts.

use crate::room::Room;

/// Panics where a promise is broken by these bytes.
pub fn parquet(_: &Room, bytes: &[u8]) {
    for spec in analysis::fleet::STORED {
        let Ok(table) = columnar::read(bytes.to_vec(), spec) else { continue };
        assert!(table.rows.iter().all(|row| row.len() == spec.columns.len()), "a row of other columns");
    }
}
