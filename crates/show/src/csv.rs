//! Tables for spreadsheets: a file per table, its header the column names, and one file of all findings.
//!
//! A missing value is an empty field. Each file is written under another name and renamed, so that a reader sees it
//! whole or not at all.
//!
//! Names of threads and VMs are chosen by whoever runs on the traced machines, and a spreadsheet calculates what begins like
//! a formula: such text gets an apostrophe in front, as OWASP advises ("CSV Injection"). What misleads a reader or commands
//! a terminal is replaced as in every output ([`base::plain`]), but for tabs and line ends. Numbers stay as they are.

use base::plain::misleads;
use base::section::named_tables;
use base::{Cell, Finding, Section, Table};
use csv::Writer;
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// The refusal.
    pub source: std::io::Error,
}

/// Writes `<table>.csv` for every table, and `findings.csv`, into `directory`, which is made if need be. A table whose
/// name an earlier section has used is called `<section>.<table>.csv`.
///
/// # Errors
/// If the operating system refuses; files written before then stay.
pub fn write_csv(sections: &[Section], directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory).map_err(|source| Error { path: directory.to_owned(), source })?;
    for (name, _, table) in named_tables(sections) {
        let path = directory.join(format!("{name}.csv"));
        whole_file(&path, |out| write_table(table, out))?;
    }
    whole_file(&directory.join("findings.csv"), |out| write_findings(sections, out))
}

type Out = Writer<BufWriter<File>>;

/// Fills a file beside its place, then renames it.
fn whole_file(path: &Path, fill: impl FnOnce(&mut Out) -> csv::Result<()>) -> Result<(), Error> {
    let refused = |source| Error { path: path.to_owned(), source };
    let beside = path.with_extension("csv.new");
    let file = File::create(&beside).map_err(refused)?;
    let mut out = Writer::from_writer(BufWriter::new(file));
    fill(&mut out).map_err(|error| refused(error.into()))?;
    out.into_inner().map_err(|error| refused(error.into_error())).and_then(|mut file| file.flush().map_err(refused))?;
    std::fs::rename(&beside, path).map_err(refused)
}

fn write_table(table: &Table, out: &mut Out) -> csv::Result<()> {
    out.write_record(table.columns.iter().map(|column| &column.name))?;
    for row in &table.rows {
        for cell in row {
            match cell {
                Cell::Missing => out.write_field("")?,
                Cell::Text(text) => out.write_field(&*harmless(text))?,
                Cell::U64(value) => out.write_field(value.to_string())?,
                Cell::I64(value) => out.write_field(value.to_string())?,
                // The shortest text that reads back as the same double.
                Cell::F64(value) => out.write_field(value.to_string())?,
                Cell::Bool(value) => out.write_field(value.to_string())?,
            }
        }
        out.write_record(None::<&[u8]>)?;
    }
    Ok(())
}

/// `text`, which neither commands a terminal nor is taken for a formula by a spreadsheet.
fn harmless(text: &str) -> Cow<'_, str> {
    let harms = |character| misleads(character) && !matches!(character, '\t' | '\n' | '\r');
    let text = if text.contains(harms) { Cow::Owned(text.replace(harms, "\u{fffd}")) } else { Cow::Borrowed(text) };
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { Cow::Owned(format!("'{text}")) } else { text }
}

fn write_findings(sections: &[Section], out: &mut Out) -> csv::Result<()> {
    out.write_record([
        "section",
        "id",
        "rule",
        "subject",
        "severity",
        "level",
        "title",
        "evidence",
        "cost",
        "cost_unit",
        "cost_kind",
        "cost_low",
        "cost_high",
        "why",
        "fix",
        "undo",
        "needs",
        "source",
    ])?;
    for section in sections {
        for finding in &section.findings {
            out.write_record(finding_fields(section.id, finding))?;
        }
    }
    Ok(())
}

fn finding_fields(section: &str, finding: &Finding) -> [String; 18] {
    let amount = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let text = |text: &str| harmless(text).into_owned();
    let seen: Vec<String> = finding.evidence.iter().map(|seen| format!("{} ({})", seen.what, seen.place)).collect();
    [
        section.to_owned(),
        text(&finding.id()),
        finding.rule.to_owned(),
        text(&finding.subject),
        finding.severity.name().to_owned(),
        finding.level.to_string(),
        text(&finding.title),
        text(&seen.join("\n")),
        amount(finding.cost.value),
        text(&finding.cost.unit),
        finding.cost.kind.name().to_owned(),
        amount(finding.cost.low),
        amount(finding.cost.high),
        text(&finding.why),
        text(&finding.fix.join("\n")),
        text(&finding.undo.join("\n")),
        finding.needs.name().to_owned(),
        finding.source.to_owned(),
    ]
}
