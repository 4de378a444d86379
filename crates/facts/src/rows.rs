//! Tables of data in TOML beside the code that reads them.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table<T> {
    rows: Vec<T>,
}

/// The rows of such a table.
///
/// # Panics
/// If they are not of that type: the text is part of this program.
#[track_caller]
pub fn rows<T: Deserialize<'static>>(text: &'static str) -> Vec<T> {
    match toml::from_str(text) {
        Ok(Table { rows }) => rows,
        Err(error) => panic!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_in_their_order_and_nothing_stands_beside_them() {
        assert_eq!(rows::<&str>("rows = ['two', \"one\"]"), ["two", "one"]);
        for wrong in ["rows = [1]", "row = ['one']", "rows = ['one']\nmore = 1"] {
            assert!(std::panic::catch_unwind(|| rows::<&str>(wrong)).is_err(), "{wrong}");
        }
    }
}
