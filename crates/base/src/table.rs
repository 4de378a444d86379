//! Named tables with units: what programs read.
//!
//! A table's columns have stable names, a type and a unit; a missing value is missing, not 0. JSON, CSV, Parquet and
//! Python all print these tables; [`Shown`] says which of the columns a person in a narrow terminal wants to see.

/// One table of a Section.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Stable name, a key of the JSON object `tables`.
    pub name: &'static str,
    /// The columns, in the order of a row's cells.
    pub columns: Vec<Column>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// How a person sees it; `None`: only programs do (a figure shows the same numbers better).
    pub shown: Option<Shown>,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Stable name; units stand in it.
    pub name: String,
    /// `ns`, `bytes`, `count`, `share`, or empty.
    pub unit: &'static str,
    /// Type of all its cells.
    pub kind: ColumnType,
    /// True if the column is part of what identifies a row.
    pub key: bool,
}

/// What the cells of a column hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8 text.
    Text,
    /// Unsigned 64-bit integer.
    U64,
    /// Signed 64-bit integer.
    I64,
    /// 64-bit floating point.
    F64,
    /// True or false.
    Bool,
}

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
}

/// How a table is shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Heading in a few words.
    pub title: String,
    /// Names of the columns to print, in this order, with the heading of each.
    pub columns: Vec<(String, String)>,
    /// Rows to print; the renderer says how many it left out.
    pub most_rows: usize,
    /// The column whose share of its own total is drawn as a bar, if any.
    pub bar: Option<String>,
}

impl Column {
    /// A key column of text.
    pub fn key(name: &str) -> Self {
        Self { name: name.to_owned(), unit: "", kind: ColumnType::Text, key: true }
    }

    /// A key column of another type.
    pub fn key_of(name: &str, kind: ColumnType) -> Self {
        Self { kind, ..Self::key(name) }
    }

    /// A value column.
    pub fn value(name: &str, unit: &'static str, kind: ColumnType) -> Self {
        Self { name: name.to_owned(), unit, kind, key: false }
    }
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

impl Table {
    /// An empty table with these columns.
    pub fn new(name: &'static str, columns: Vec<Column>) -> Self {
        Self { name, columns, rows: Vec::new(), shown: None }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the row is not as long as `columns`: that is a mistake in the program, not in its input.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "a row of table {}", self.name);
        self.rows.push(row);
    }

    /// Position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The cell at `row` in the column called `name`.
    pub fn cell(&self, row: usize, name: &str) -> Option<&Cell> {
        self.rows.get(row)?.get(self.column(name)?)
    }
}
