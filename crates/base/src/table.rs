//! Named tables with units: what programs read.
//!
//! What a table is stands in a [`TableSpec`], const data beside the code that fills it: its address, what a row is, its
//! columns with names, units and types. Columns never depend on what was recorded; a missing value is missing, not 0. JSON,
//! CSV, Arrow, the JSON schema and docs/formats/tables.md are all made from it; [`Shown`] says which columns a person in a narrow
//! terminal wants to see.

mod cell;
mod column;

pub use cell::{Cell, hexadecimal};
pub use column::{Column, ColumnType};

/// What a table is, whatever it holds.
#[derive(Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// Id of the Section that has it; empty for a table over all Sections.
    pub section: &'static str,
    /// Stable name, a key of the JSON object `tables`.
    pub name: &'static str,
    /// Counts up whenever a column goes, moves or means another thing; new columns at the end leave it.
    pub version: u32,
    /// What a row is, as one sentence.
    pub row: &'static str,
    /// The columns, in the order of a row's cells.
    pub columns: &'static [Column],
    /// How a person sees it; `None`: only programs do (a figure shows the same numbers better).
    pub shown: Option<Shown>,
}

/// One table of a Section.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What it is.
    pub spec: &'static TableSpec,
    /// Rows, each as long as the columns of `spec`.
    pub rows: Vec<Vec<Cell>>,
    /// How a person sees this one; at first as `spec` says.
    pub shown: Option<Shown>,
}

/// One row, read by the names of its columns.
#[derive(Debug, Clone, Copy)]
pub struct Row<'t> {
    spec: &'static TableSpec,
    cells: &'t [Cell],
}

/// How a table is shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Heading in a few words.
    pub title: &'static str,
    /// Names of the columns to print, in this order, with the heading of each. Those without a value are left out.
    pub columns: &'static [(&'static str, &'static str)],
    /// Rows to print; the renderer says how many it left out.
    pub most_rows: usize,
    /// The column whose share of its own total is drawn as a bar, if any.
    pub bar: Option<&'static str>,
    /// The column whose largest value comes first for people; `None`: the order of the rows.
    pub largest_first: Option<&'static str>,
    /// Shown before the figures of its section: it gives the overview.
    pub leads: bool,
    /// The column whose equal values stay together, in the order of rows: what holds within each group, such as shares, does
    /// not hold across them.
    pub grouped_by: Option<&'static str>,
    /// What the rows have in common that `most_rows` leaves out, where they are not merely the last ones.
    pub rest: Option<&'static str>,
    /// Columns that are never left out, and whose text is never shortened: it takes several lines where the page is narrow.
    pub whole: &'static [&'static str],
    /// Rows that differ only in one column stand side by side.
    pub across: Option<Across>,
    /// Whether a terminal shows it unasked; pages show it in any case.
    pub in_terminals: bool,
}

/// Each value of one column becomes a column of its own for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Across {
    /// The column whose values head the new ones; rows without a value are left out.
    pub by: &'static str,
    /// The column that fills them.
    pub cell: &'static str,
    /// How many of [`Shown::columns`] stand before them.
    pub after: usize,
}

impl TableSpec {
    /// `<section>.<table>`: how a table is asked for, and the name of its file.
    pub fn address(&self) -> String {
        if self.section.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.section, self.name) }
    }

    /// Position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// The columns of a table in their order: of each the constructor of [`Column`], its unit where that takes one, and the name.
///
/// ```text
/// columns![key machine, ns total_ns, f64("x") ratio]
/// ```
#[macro_export]
macro_rules! columns {
    ($($kind:ident $(($unit:expr))? $name:ident),* $(,)?) => {
        &[$($crate::Column::$kind(stringify!($name) $(, $unit)?)),*]
    };
}

/// A table's [`TableSpec`]: its address and version, what a row is, its columns as [`columns!`](crate::columns) has them, and how
/// people see it, where they do.
///
/// ```text
/// const EXITS: TableSpec = table! {
///     flow.exits version 2: "The exits of one vCPU for one reason.";
///     key machine, key reason, count count, ns total_ns;
///     shown!["Exits", 30; reason, count, total_ns: "in all"]
/// };
/// ```
#[macro_export]
macro_rules! table {
    ($section:ident.$name:ident version $version:literal: $row:literal; $($kind:ident $(($unit:expr))? $column:ident),+; $($shown:expr)?) => {
        $crate::TableSpec {
            section: stringify!($section),
            name: stringify!($name),
            version: $version,
            row: $row,
            columns: $crate::columns![$($kind $(($unit))? $column),+],
            shown: $crate::table!(@shown $($shown)?),
        }
    };
    (@shown) => { None };
    (@shown $shown:expr) => { Some($shown) };
}

/// The columns of [`Shown::columns`](crate::table::Shown::columns): names, and headings where those are others.
///
/// ```text
/// headings![machine, total_ns: "in all"]
/// ```
#[macro_export]
macro_rules! headings {
    ($($name:ident $(: $heading:literal)?),* $(,)?) => { &[$($crate::headings!(@one $name $($heading)?)),*] };
    (@one $name:ident) => { (stringify!($name), stringify!($name)) };
    (@one $name:ident $heading:literal) => { (stringify!($name), $heading) };
}

/// [`Shown::of`](crate::table::Shown::of): the heading, the rows to print, and the columns as [`headings!`](crate::headings) has them.
///
/// ```text
/// shown!["Time of each vCPU", 30; machine, total_ns: "in all"]
/// ```
#[macro_export]
macro_rules! shown {
    ($title:expr, $most_rows:expr; $($columns:tt)*) => {
        $crate::table::Shown::of($title, $crate::headings![$($columns)*], $most_rows)
    };
}

impl Shown {
    /// These columns in this order, and the first rows.
    pub const fn of(title: &'static str, columns: &'static [(&'static str, &'static str)], most_rows: usize) -> Self {
        Self {
            title,
            columns,
            most_rows,
            bar: None,
            largest_first: None,
            leads: false,
            grouped_by: None,
            rest: None,
            whole: &[],
            across: None,
            in_terminals: true,
        }
    }
}

impl<'t> Row<'t> {
    /// The cell in the column called `name`; `None` if there is no such column.
    pub fn cell(&self, name: &str) -> Option<&'t Cell> {
        self.cells.get(self.spec.column(name)?)
    }

    /// The text in a column; `None` where it is missing.
    pub fn text(&self, name: &str) -> Option<&'t str> {
        match self.cell(name)? {
            Cell::Text(text) => Some(text),
            Cell::Missing | Cell::U64(_) | Cell::I64(_) | Cell::F64(_) | Cell::Bool(_) | Cell::Bytes(_) => None,
        }
    }

    /// The number in a column, of whatever type; `None` where it is missing.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.cell(name)? {
            Cell::U64(value) => Some(*value as f64),
            Cell::I64(value) => Some(*value as f64),
            Cell::F64(value) => Some(*value),
            Cell::Missing | Cell::Text(_) | Cell::Bool(_) | Cell::Bytes(_) => None,
        }
    }
}

impl Table {
    /// An empty table.
    pub fn new(spec: &'static TableSpec) -> Self {
        Self { spec, rows: Vec::new(), shown: spec.shown }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the row is not as long as the columns, or (in debug builds) a cell is of another type than its column: that is a
    /// mistake in the program, not in its input.
    pub fn push(&mut self, mut row: Vec<Cell>) {
        assert_eq!(row.len(), self.spec.columns.len(), "a row of table {}", self.spec.address());
        if cfg!(debug_assertions) {
            for (cell, column) in row.iter().zip(self.spec.columns) {
                assert!(column.kind.takes(cell), "{cell:?} in column {} of {}", column.name, self.spec.address());
            }
        }
        // Rows stay, and are as many as a large host has vCPUs.
        row.shrink_to_fit();
        self.rows.push(row);
    }

    /// Adds a row of these cells, by the names of their columns; all other cells are missing.
    ///
    /// # Panics
    /// As [`Table::push`], or if there is no such column.
    pub fn push_named(&mut self, cells: impl IntoIterator<Item = (&'static str, Cell)>) {
        let mut row = vec![Cell::Missing; self.spec.columns.len()];
        for (name, cell) in cells {
            let column = self.column(name);
            assert!(column.is_some(), "no column {name} in table {}", self.spec.address());
            row[column.unwrap_or_default()] = cell;
        }
        self.push(row);
    }

    /// Every row, to be read by the names of its columns.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|cells| Row { spec: self.spec, cells })
    }

    /// Position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.spec.column(name)
    }

    /// Rows in the order in which people see them. Programs get them in the order of `rows`, whatever people see first.
    pub fn shown_order(&self) -> Vec<usize> {
        self.groups().concat()
    }

    /// The rows of each group as people see them, groups in the order of rows; one group where none are wanted.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let column = |name: Option<&str>| self.column(name?);
        let grouped_by = column(self.shown.and_then(|shown| shown.grouped_by));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for row in 0..self.rows.len() {
            let same = |group: &&mut Vec<usize>| match grouped_by {
                Some(column) => self.rows[group[0]][column] == self.rows[row][column],
                None => true,
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
        if let Some(column) = column(self.shown.and_then(|shown| shown.largest_first)) {
            let size = |row: usize| self.rows[row][column].size();
            groups.iter_mut().for_each(|group| group.sort_by(|a, b| size(*b).total_cmp(&size(*a))));
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

    const ANY: TableSpec = TableSpec {
        section: "flow",
        name: "any",
        version: 1,
        row: "One of them.",
        columns: &[Column::key("name"), Column::ns("total_ns")],
        shown: Some(Shown::of("Any", &[("name", "name")], 9)),
    };
    const LARGEST_FIRST: Shown = Shown { largest_first: Some("total_ns"), ..Shown::of("Any", &[("name", "name")], 9) };

    fn filled(rows: &[(&str, Option<u64>)]) -> Table {
        let mut table = Table::new(&ANY);
        rows.iter().for_each(|(name, total)| table.push(vec![(*name).into(), total.map(Cell::U64).into()]));
        table
    }

    #[test]
    fn people_see_the_largest_first_and_equals_in_the_order_of_rows() {
        let mut table = filled(&[("a", Some(5)), ("b", None), ("c", Some(9)), ("d", Some(5))]);
        assert_eq!(table.shown_order(), [0, 1, 2, 3]);
        table.shown = Some(LARGEST_FIRST);
        assert_eq!(table.shown_order(), [2, 0, 3, 1]);
    }

    #[test]
    fn groups_stay_together_and_each_has_its_largest_first() {
        let mut table = filled(&[("L0", Some(5)), ("L1", Some(9)), ("L0", Some(7)), ("L1", Some(1))]);
        table.shown = Some(Shown { grouped_by: Some("name"), ..LARGEST_FIRST });
        assert_eq!((table.shown_order(), table.groups()), (vec![2, 0, 1, 3], vec![vec![2, 0], vec![1, 3]]));
        table.shown = Some(LARGEST_FIRST);
        assert_eq!((table.shown_order(), table.groups().len()), (vec![1, 2, 0, 3], 1));
    }

    #[test]
    fn rows_are_read_by_name_and_a_cell_of_another_type_is_refused() {
        let mut table = filled(&[("a", Some(5)), ("b", None)]);
        let read: Vec<_> = table.rows().map(|row| (row.text("name"), row.number("total_ns"))).collect();
        assert_eq!(read, [(Some("a"), Some(5.0)), (Some("b"), None)]);
        assert_eq!((ANY.address(), table.rows().next().unwrap().cell("none")), ("flow.any".to_owned(), None));
        table.push_named([("total_ns", 7_u64.into())]);
        let row = table.rows().last().unwrap();
        assert_eq!((row.text("name"), row.number("total_ns")), (None, Some(7.0)));
        let mut other = filled(&[]);
        assert!(std::panic::catch_unwind(move || other.push_named([("none", 7_u64.into())])).is_err());
        let wrong = std::panic::catch_unwind(move || table.push(vec!["c".into(), 1.5.into()]));
        assert!(wrong.is_err());
    }
}
