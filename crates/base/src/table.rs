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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// Heading in a few words.
    pub title: String,
    /// Names of the columns to print, in this order, with the heading of each.
    pub columns: Vec<(String, String)>,
    /// Rows to print; the renderer says how many it left out.
    pub most_rows: usize,
    /// The column whose share of its own total is drawn as a bar, if any.
    pub bar: Option<String>,
    /// The column whose largest value comes first for people; `None`: the order of the rows.
    pub largest_first: Option<String>,
    /// Shown before the figures of its section: it gives the overview.
    pub leads: bool,
    /// The column whose equal values stay together, in the order of rows: what holds within each group, such as shares, does
    /// not hold across them.
    pub grouped_by: Option<String>,
    /// What the rows have in common that `most_rows` leaves out, where they are not merely the last ones.
    pub rest: Option<&'static str>,
    /// Columns that are never left out, and whose text is never shortened: it takes several lines where the page is narrow.
    pub whole: Vec<String>,
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

impl Cell {
    /// A number to rank and compare by; what is no number, or missing, is the smallest.
    pub fn size(&self) -> f64 {
        match self {
            Cell::U64(value) => *value as f64,
            Cell::I64(value) => *value as f64,
            Cell::F64(value) if value.is_finite() => *value,
            Cell::F64(_) | Cell::Missing | Cell::Text(_) | Cell::Bool(_) => f64::NEG_INFINITY,
        }
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

    /// Rows in the order in which people see them. Programs get them in the order of `rows`, whatever people see first.
    pub fn shown_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        let largest_first = self.shown.as_ref().and_then(|shown| shown.largest_first.as_deref());
        if let Some(column) = largest_first.and_then(|name| self.column(name)) {
            order.sort_by(|a, b| self.rows[*b][column].size().total_cmp(&self.rows[*a][column].size()));
        }
        let groups = self.groups();
        if groups.len() > 1 {
            order.sort_by_key(|row| groups.iter().position(|group| group.contains(row)));
        }
        order
    }

    /// The rows of each group, in the order of rows; one group where none are wanted.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let grouped_by = self.shown.as_ref().and_then(|shown| shown.grouped_by.as_deref());
        let Some(column) = grouped_by.and_then(|name| self.column(name)) else {
            return vec![(0..self.rows.len()).collect()];
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for row in 0..self.rows.len() {
            let same = |group: &&mut Vec<usize>| self.rows[group[0]][column] == self.rows[row][column];
            match groups.iter_mut().find(same) {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
        groups
    }

    /// The cell at `row` in the column called `name`.
    pub fn cell(&self, row: usize, name: &str) -> Option<&Cell> {
        self.rows.get(row)?.get(self.column(name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_the_largest_first_and_equals_in_the_order_of_rows() {
        let mut table = Table::new("any", vec![Column::key("name"), Column::value("total_ns", "ns", ColumnType::U64)]);
        let rows = [("a", Some(5)), ("b", None), ("c", Some(9)), ("d", Some(5))];
        rows.into_iter().for_each(|(name, total)| table.push(vec![name.into(), total.map(Cell::U64).into()]));
        assert_eq!(table.shown_order(), [0, 1, 2, 3]);
        table.shown = Some(Shown { largest_first: Some("total_ns".into()), ..Shown::default() });
        assert_eq!(table.shown_order(), [2, 0, 3, 1]);
    }

    #[test]
    fn groups_stay_together_and_each_has_its_largest_first() {
        let mut table =
            Table::new("any", vec![Column::key("machine"), Column::value("total_ns", "ns", ColumnType::U64)]);
        let rows = [("L0", 5), ("L1", 9), ("L0", 7), ("L1", 1)];
        rows.into_iter().for_each(|(name, total)| table.push(vec![name.into(), total.into()]));
        let shown = Shown { largest_first: Some("total_ns".into()), ..Shown::default() };
        table.shown = Some(Shown { grouped_by: Some("machine".into()), ..shown.clone() });
        assert_eq!((table.shown_order(), table.groups()), (vec![2, 0, 1, 3], vec![vec![0, 2], vec![1, 3]]));
        table.shown = Some(shown);
        assert_eq!((table.shown_order(), table.groups().len()), (vec![1, 2, 0, 3], 1));
    }
}
