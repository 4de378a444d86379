//! What the columns of a table are: names, units and types.

use super::Cell;

/// One column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Column {
    /// Stable name; units stand in it.
    pub name: &'static str,
    /// `ns`, `bytes`, `count`, `share`, or empty.
    pub unit: &'static str,
    /// Type of all its cells.
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// True if the column is part of what identifies a row.
    pub key: bool,
}

crate::named! {
    /// What the cells of a column hold.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ColumnType {
        /// UTF-8 text.
        Text = "text",
        /// Unsigned 64-bit integer.
        U64 = "u64",
        /// Signed 64-bit integer.
        I64 = "i64",
        /// 64-bit floating point.
        F64 = "f64",
        /// True or false.
        Bool = "bool",
        /// Bytes that a program decodes, such as a distribution.
        Bytes = "bytes",
    }
}

impl Column {
    /// A key column of text.
    pub const fn key(name: &'static str) -> Self {
        Self { name, unit: "", kind: ColumnType::Text, key: true }
    }

    /// A key column of whole numbers.
    pub const fn key_u64(name: &'static str, unit: &'static str) -> Self {
        Self { key: true, ..Self::u64(name, unit) }
    }

    /// A key column of whole numbers with a sign.
    pub const fn key_i64(name: &'static str, unit: &'static str) -> Self {
        Self { key: true, ..Self::i64(name, unit) }
    }

    /// A key column of numbers.
    pub const fn key_f64(name: &'static str, unit: &'static str) -> Self {
        Self { key: true, ..Self::f64(name, unit) }
    }

    const fn value(name: &'static str, unit: &'static str, kind: ColumnType) -> Self {
        Self { name, unit, kind, key: false }
    }

    /// A value column of text.
    pub const fn text(name: &'static str) -> Self {
        Self::value(name, "", ColumnType::Text)
    }

    /// A value column that is true or false.
    pub const fn flag(name: &'static str) -> Self {
        Self::value(name, "", ColumnType::Bool)
    }

    /// A distribution in HdrHistogram's V2 form ([`Histogram::wire`](crate::Histogram::wire)).
    pub const fn distribution(name: &'static str) -> Self {
        Self::value(name, "", ColumnType::Bytes)
    }

    /// A number of things.
    pub const fn count(name: &'static str) -> Self {
        Self::u64(name, "count")
    }

    /// A time in whole ns.
    pub const fn ns(name: &'static str) -> Self {
        Self::u64(name, "ns")
    }

    /// A share, 0 to 1.
    pub const fn share(name: &'static str) -> Self {
        Self::f64(name, "share")
    }

    /// Whole numbers of a unit.
    pub const fn u64(name: &'static str, unit: &'static str) -> Self {
        Self::value(name, unit, ColumnType::U64)
    }

    /// Whole numbers of a unit, with a sign.
    pub const fn i64(name: &'static str, unit: &'static str) -> Self {
        Self::value(name, unit, ColumnType::I64)
    }

    /// Numbers of a unit.
    pub const fn f64(name: &'static str, unit: &'static str) -> Self {
        Self::value(name, unit, ColumnType::F64)
    }
}

impl ColumnType {
    /// True if a cell may stand in such a column; a missing one may in any.
    pub fn takes(self, cell: &Cell) -> bool {
        match cell {
            Cell::Missing => true,
            Cell::Text(_) => self == ColumnType::Text,
            Cell::U64(_) => self == ColumnType::U64,
            Cell::I64(_) => self == ColumnType::I64,
            Cell::F64(_) => self == ColumnType::F64,
            Cell::Bool(_) => self == ColumnType::Bool,
            Cell::Bytes(_) => self == ColumnType::Bytes,
        }
    }
}
