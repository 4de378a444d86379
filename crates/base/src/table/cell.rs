//! One value of a table, and what it is made from.

use serde::ser::{Serialize, Serializer};

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Not known; `null` in JSON, empty in CSV.
    Missing,
    /// UTF-8 text.
    Text(String),
    /// Unsigned integer.
    U64(u64),
    /// Signed integer.
    I64(i64),
    /// Floating point.
    F64(f64),
    /// True or false.
    Bool(bool),
    /// Bytes that a program decodes; hexadecimal digits in JSON and CSV.
    Bytes(Vec<u8>),
}

/// As JSON has it: integers are exact, and what is not known, or is no number, is `null`.
impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Missing => serializer.serialize_none(),
            Cell::Text(text) => serializer.serialize_str(text),
            Cell::U64(value) => serializer.serialize_u64(*value),
            Cell::I64(value) => serializer.serialize_i64(*value),
            Cell::F64(value) => serializer.serialize_f64(*value),
            Cell::Bool(value) => serializer.serialize_bool(*value),
            Cell::Bytes(bytes) => serializer.serialize_str(&hexadecimal(bytes)),
        }
    }
}

impl Cell {
    /// A number to rank and compare by; what is no number, or missing, is the smallest.
    pub fn size(&self) -> f64 {
        match self {
            Cell::U64(value) => *value as f64,
            Cell::I64(value) => *value as f64,
            Cell::F64(value) if value.is_finite() => *value,
            Cell::F64(_) | Cell::Missing | Cell::Text(_) | Cell::Bool(_) | Cell::Bytes(_) => f64::NEG_INFINITY,
        }
    }
}

/// Two digits for each byte.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // A string takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Cell::U64(value)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::F64(value)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Cell::Bool(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Cell::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Cell::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Missing, Into::into)
    }
}
