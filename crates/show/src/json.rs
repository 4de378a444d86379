//! Sections for programs: one object of schema `kvmscope/1`, written as it goes.
//!
//! Integers are exact to 64 bits, a missing value or one that is no number is `null`, rows stand in column order.
//! Beyond the contract's keys a section carries `about` and `next`, as the text does, and a finding its `rank` among those of
//! all sections of its recording.

pub(crate) mod safe;
mod section;
pub mod timeline;

use base::recording::{Part, Recording};
use base::rule::Words;
use base::{Finding, Problem, Section, Table, in_order};
use section::Shown;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

/// The schema of everything that `--json` prints.
pub const SCHEMA: &str = "kvmscope/1";

/// A recording and the answers it gave.
#[derive(Clone, Copy)]
pub struct Answered<'a> {
    pub recording: &'a Recording,
    /// All recordings of a comparison, those from before the change first; none where nothing is compared.
    pub compared: &'a [Recording],
    pub sections: &'a [Section],
    pub problems: &'a [Problem],
}

/// Writes what `command` found, as one object and a line end.
///
/// With one recording, `recording` is an object. With several it is a list of them, and each section and problem
/// carries the path of its recording as a key of that name. Where some are compared, `recordings` is all of them, those before first.
///
/// # Errors
/// If `out` refuses.
pub fn write(out: impl Write, command: &str, answers: &[Answered<'_>]) -> io::Result<()> {
    let mut out = out;
    safe::to_writer(&mut out, &Document { command, answers })?;
    out.write_all(b"\n")
}

/// Writes what `rules` say of themselves, as the answer of `command` about no recording.
///
/// # Errors
/// If `out` refuses.
pub fn write_rules(out: impl Write, command: &str, rules: &[Words]) -> io::Result<()> {
    let mut out = out;
    let (nothing, sections): (Option<&str>, [&str; 0]) = (None, []);
    let document = serde_json::json!({
        "schema": SCHEMA, "command": command, "recording": nothing, "sections": sections, "problems": sections, "rules": rules,
    });
    safe::to_writer(&mut out, &document)?;
    out.write_all(b"\n")
}

/// Writes one section as it stands in `--json`.
///
/// # Errors
/// If `out` refuses.
pub fn write_section(out: impl Write, section: &Section) -> io::Result<()> {
    let ranks = ranks(std::slice::from_ref(section));
    safe::to_writer(out, &Shown { section, of: None, ranks: &ranks })
}

/// Writes one table as it stands in `--json`: `{version, columns, rows}`.
///
/// # Errors
/// If `out` refuses.
pub fn write_table(out: impl Write, table: &Table) -> io::Result<()> {
    safe::to_writer(out, &section::TableShown(table))
}

/// All of the section at `place` of an answer but its tables, as it stands in `--json`.
///
/// # Errors
/// If something in it cannot be written as JSON: a mistake in the program.
pub fn words(sections: &[Section], place: usize) -> Result<Value, serde_json::Error> {
    let words = section::Words { section: &sections[place], ranks: &ranks(sections) };
    serde_json::to_value(words)
}

struct Document<'a> {
    command: &'a str,
    answers: &'a [Answered<'a>],
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let several = self.answers.len() > 1;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema", SCHEMA)?;
        map.serialize_entry("command", self.command)?;
        match self.answers {
            [one] => map.serialize_entry("recording", &RecordingShown(one.recording))?,
            many => {
                let shown: Vec<_> = many.iter().map(|answered| RecordingShown(answered.recording)).collect();
                map.serialize_entry("recording", &shown)?;
            }
        }
        if let [Answered { compared: all @ [_, ..], .. }] = self.answers {
            map.serialize_entry("recordings", &all.iter().map(RecordingShown).collect::<Vec<_>>())?;
        }
        let mut sections = Vec::new();
        let mut problems = Vec::new();
        let ranks: Vec<_> = self.answers.iter().map(|answered| ranks(answered.sections)).collect();
        for (answered, ranks) in self.answers.iter().zip(&ranks) {
            let of = several.then(|| path_of(answered.recording));
            sections.extend(answered.sections.iter().map(|section| Shown { section, of: of.clone(), ranks }));
            problems.extend(answered.problems.iter().map(|problem| ProblemShown { of: of.clone(), problem }));
        }
        map.serialize_entry("sections", &sections)?;
        map.serialize_entry("problems", &problems)?;
        map.end()
    }
}

/// The rank of each finding by its id: 1 is the one to act on first, whichever section has it.
fn ranks(sections: &[Section]) -> HashMap<String, usize> {
    let findings: Vec<&Finding> = sections.iter().flat_map(|section| &section.findings).collect();
    in_order(findings).into_iter().map(Finding::id).zip(1..).collect()
}

#[derive(serde::Serialize)]
struct ProblemShown<'a> {
    #[serde(rename = "recording", skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    #[serde(flatten)]
    problem: &'a Problem,
}

struct RecordingShown<'a>(&'a Recording);

impl Serialize for RecordingShown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("path", &path_of(self.0))?;
        map.serialize_entry("created", &self.0.created)?;
        map.serialize_entry("tool", &self.0.tool)?;
        map.serialize_entry("emulated", &self.0.emulated)?;
        map.serialize_entry("machines", &self.0.machines)?;
        map.serialize_entry("parts", &parts_of(self.0))?;
        map.end()
    }
}

/// The directory, or the file where the recording is a bare one. Bytes that are no UTF-8 become U+FFFD.
pub fn path_of(recording: &Recording) -> String {
    let path = match recording.parts.first() {
        Some(part) if recording.root.as_os_str().is_empty() => part.path.to_string_lossy(),
        _ => recording.root.to_string_lossy(),
    };
    recording.as_named(&path).into_owned()
}

/// The parts, with the paths that the user knows.
fn parts_of(recording: &Recording) -> Vec<Part> {
    let named = |part: &Part| match recording.as_named(&part.path.to_string_lossy()) {
        Cow::Owned(path) => Part { path: path.into(), ..part.clone() },
        Cow::Borrowed(_) => part.clone(),
    };
    recording.parts.iter().map(named).collect()
}
