//! A Section's parts as JSON, each borrowed and written in place.

use base::{Finding, Section, Table};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::HashMap;

/// A section, with the recording it is of where there are several.
pub(super) struct Shown<'a> {
    pub section: &'a Section,
    pub of: Option<String>,
    /// The rank of each finding of the recording, by its id.
    pub ranks: &'a HashMap<String, usize>,
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let section = self.section;
        let mut map = serializer.serialize_map(None)?;
        if let Some(of) = &self.of {
            map.serialize_entry("recording", of)?;
        }
        map.serialize_entry("id", section.id)?;
        map.serialize_entry("question", section.question)?;
        map.serialize_entry("about", &section.about)?;
        map.serialize_entry("summary", &section.summary)?;
        map.serialize_entry("findings", &findings(section, self.ranks))?;
        map.serialize_entry("tables", &Tables(&section.tables))?;
        map.serialize_entry("figures", &section.figures)?;
        map.serialize_entry("controls", &section.controls)?;
        map.serialize_entry("unknown", &section.unknown)?;
        map.serialize_entry("next", &section.next)?;
        map.end()
    }
}

/// A section without its tables: what is small.
pub(super) struct Words<'a> {
    pub section: &'a Section,
    /// The rank of each finding of the recording, by its id.
    pub ranks: &'a HashMap<String, usize>,
}

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let section = self.section;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("findings", &findings(section, self.ranks))?;
        map.serialize_entry("figures", &section.figures)?;
        map.serialize_entry("controls", &section.controls)?;
        map.serialize_entry("unknown", &section.unknown)?;
        map.end()
    }
}

#[derive(Serialize)]
struct FindingShown<'a> {
    id: String,
    rank: Option<&'a usize>,
    #[serde(flatten)]
    finding: &'a Finding,
}

fn findings<'a>(section: &'a Section, ranks: &'a HashMap<String, usize>) -> Vec<FindingShown<'a>> {
    let shown = |finding: &'a Finding| FindingShown { id: finding.id(), rank: ranks.get(&finding.id()), finding };
    section.findings.iter().map(shown).collect()
}

struct Tables<'a>(&'a [Table]);

impl Serialize for Tables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|table| (table.spec.name, TableShown(table))))
    }
}

/// A table, as an object of its columns and rows.
pub(super) struct TableShown<'a>(pub &'a Table);

impl Serialize for TableShown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("version", &self.0.spec.version)?;
        map.serialize_entry("columns", self.0.spec.columns)?;
        map.serialize_entry("rows", &self.0.rows)?;
        map.end()
    }
}
