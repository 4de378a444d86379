//! Tables as files: one for each table, called `<section>.<table>`, and `findings` with all findings.
//!
//! CSV, Parquet and Arrow all write these; a name and its columns do not depend on what else a recording holds.

use crate::table::TableSpec;
use crate::{Cell, Column, Finding, Section, Table, columns};
use std::borrow::Cow;

/// One file.
pub struct TableFile<'a> {
    table: Cow<'a, Table>,
    recording: Option<Cell>,
}

/// Which recording a row is of: the last column of files that stand beside those of other recordings.
pub const RECORDING: Column = Column::key("recording");

/// All findings of all Sections.
pub const FINDINGS: TableSpec = TableSpec {
    section: "",
    name: "findings",
    version: 1,
    row: "One finding: what is wrong, what shows it, what it costs, and what to type.",
    columns: columns![
        key section, key id, text rule, text subject, text severity, text level, text title, text evidence, f64("") cost,
        text cost_unit, text cost_kind, f64("") cost_low, f64("") cost_high, text why, text fix, text undo, text needs,
        text source, text explains,
    ],
    shown: None,
};

impl<'a> TableFile<'a> {
    /// The files of an answer; with the name of its recording where rows of several will be read together.
    pub fn all(sections: &'a [Section], recording: Option<&str>) -> Vec<Self> {
        let tables = sections.iter().flat_map(|section| &section.tables).map(Cow::Borrowed);
        let all = tables.chain([Cow::Owned(findings(sections))]);
        all.map(|table| Self { table, recording: recording.map(Cell::from) }).collect()
    }

    /// The file of one table.
    pub fn of(table: &'a Table) -> Self {
        Self { table: Cow::Borrowed(table), recording: None }
    }

    /// What the table is; its address is the file's name.
    pub fn spec(&self) -> &'static TableSpec {
        self.table.spec
    }

    /// The columns of each row.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        self.spec().columns.iter().copied().chain(self.recording.as_ref().map(|_| RECORDING))
    }

    /// The rows, their cells in the order of [`TableFile::columns`].
    pub fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = &Cell>> {
        self.table.rows.iter().map(|row| row.iter().chain(&self.recording))
    }

    /// The cells of the column at that place.
    pub fn cells(&self, column: usize) -> impl Iterator<Item = &Cell> {
        self.table.rows.iter().filter_map(move |row| row.get(column).or(self.recording.as_ref()))
    }
}

fn findings(sections: &[Section]) -> Table {
    let mut table = Table::new(&FINDINGS);
    for section in sections {
        section.findings.iter().for_each(|finding| table.push(row(section.id, finding)));
    }
    table
}

fn row(section: &str, finding: &Finding) -> Vec<Cell> {
    let seen: Vec<String> = finding.evidence.iter().map(|seen| format!("{} ({})", seen.what, seen.place)).collect();
    vec![
        section.into(),
        finding.id().into(),
        finding.rule.into(),
        finding.subject.as_str().into(),
        finding.severity.name().into(),
        finding.level.to_string().into(),
        finding.title.as_str().into(),
        seen.join("\n").into(),
        finding.cost.value.into(),
        finding.cost.unit.as_str().into(),
        finding.cost.kind.name().into(),
        finding.cost.low.into(),
        finding.cost.high.into(),
        finding.why.as_str().into(),
        finding.fix.join("\n").into(),
        finding.undo.join("\n").into(),
        finding.needs.name().into(),
        finding.source.into(),
        finding.explains.join("\n").into(),
    ]
}
