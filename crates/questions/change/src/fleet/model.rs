//! What is known of all recordings of a data set, added one by one or merged from parts.

use super::dataset::{EXIT_HISTOGRAMS, FAILURES, NUMBERS, RECORDINGS, VERDICTS};
use base::histogram::WireError;
use base::table::Row;
use base::table_file::FINDINGS;
use base::{Cell, Histogram, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A recording in a data set: the values of its two folders.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Id {
    pub host: String,
    /// The start of the recording's digest.
    pub recording: String,
}

/// All recordings. Equal parts give equal fleets, in whatever order they are merged.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    pub(super) recordings: BTreeMap<Id, One>,
    pub(super) costs: BTreeMap<Exits, Costs>,
    pub(super) examples: BTreeMap<String, Example>,
    pub(super) failures: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct One {
    pub title: String,
    pub created: Option<String>,
    pub class: Class,
    pub emulated: Option<String>,
    pub(crate) analysed_by: Option<String>,
    pub vcpus: u64,
    pub findings: Vec<Found>,
    /// By level and reason: exits with a cost, and the sum of their costs.
    pub exits: Vec<(String, String, u64, u64)>,
    /// By what it is: the number and its unit.
    pub numbers: Vec<(String, Bits, String)>,
    pub verdicts: Vec<Verdict>,
}

/// Hosts that are alike as far as their hardware and kernel go.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Class {
    pub(crate) cpu_model: Option<String>,
    pub kernel: Option<String>,
}

/// A double, exact also in JSON: by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bits(u64);

/// One finding of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    pub rule: String,
    pub severity: String,
    pub cost: Option<Bits>,
    pub cost_unit: String,
    pub cost_kind: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Verdict {
    pub budget: String,
    pub goal: String,
    pub metric: String,
    pub verdict: String,
    pub value_ns: Option<u64>,
    pub limit_ns: u64,
}

/// Exits whose costs are merged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Exits {
    pub class: Class,
    pub level: String,
    pub reason: String,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Costs {
    pub count: u64,
    pub recordings: u64,
    pub cost_ns: Histogram,
}

/// How a finding reads where it was found: of all hosts the first by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Example {
    pub of: Id,
    pub title: String,
    pub fix: String,
    pub section: String,
}

/// Why a part of a data set could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unread {
    /// A distribution is damaged.
    #[error("a histogram of {host}, recording {recording}: {source}")]
    Histogram { host: String, recording: String, source: WireError },
    /// A partial answer is of another version of the program.
    #[error("a partial answer is of {found}, not of {expected}: let all workers run the same version")]
    Version { found: String, expected: &'static str },
    /// A distribution of a partial answer is damaged.
    #[error("a histogram of a partial answer: {0}")]
    Damaged(WireError),
    /// A partial answer is none of ours.
    #[error("a partial answer cannot be read: {0}")]
    Partial(#[from] serde_json::Error),
}

impl Bits {
    pub(super) fn of(value: f64) -> Self {
        Self(value.to_bits())
    }

    pub(super) fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl Fleet {
    /// Names a recording that cannot be taken in, and why.
    pub fn leave_out(&mut self, source: String, why: String) {
        self.failures.insert(source, why);
    }

    /// Adds one recording by its tables; what a fleet has already is left as it is.
    ///
    /// # Errors
    /// If a distribution is damaged.
    pub fn add(&mut self, id: &Id, tables: &[Table]) -> Result<(), Unread> {
        let of = |name: &str, section: &str| {
            let is_it = move |table: &&Table| table.spec.name == name && table.spec.section == section;
            tables.iter().filter(is_it).flat_map(Table::rows).collect::<Vec<_>>()
        };
        for row in of(FAILURES.name, FAILURES.section) {
            self.failures.insert(text(row, "source"), text(row, "error"));
        }
        let own = of(RECORDINGS.name, RECORDINGS.section);
        let Some(row) = own.first().filter(|_| !self.recordings.contains_key(id)) else { return Ok(()) };
        let maybe = |name: &str| row.text(name).map(str::to_owned);
        let mut one = One {
            title: text(*row, "title"),
            created: maybe("created"),
            class: Class { cpu_model: maybe("cpu_model"), kernel: maybe("kernel") },
            emulated: maybe("emulated"),
            analysed_by: maybe("analysed_by"),
            vcpus: whole(*row, "vcpus"),
            ..One::default()
        };
        for row in of(FINDINGS.name, FINDINGS.section) {
            self.finding(id, &mut one, row);
        }
        for row in of(NUMBERS.name, NUMBERS.section) {
            let value = row.number("value").unwrap_or_default();
            one.numbers.push((text(row, "what"), Bits::of(value), text(row, "unit")));
        }
        for row in of(VERDICTS.name, VERDICTS.section) {
            one.verdicts.push(Verdict {
                budget: text(row, "budget"),
                goal: text(row, "goal"),
                metric: text(row, "metric"),
                verdict: text(row, "verdict"),
                value_ns: row.number("value_ns").map(|_| whole(row, "value_ns")),
                limit_ns: whole(row, "limit_ns"),
            });
        }
        // The outermost machine saw all exits; what an inner one recorded is of the same ones. Its guests are one level further up.
        let exits = of(EXIT_HISTOGRAMS.name, EXIT_HISTOGRAMS.section);
        let mut lowest: BTreeMap<String, String> = BTreeMap::new();
        for row in &exits {
            let least = lowest.entry(text(*row, "machine")).or_insert_with(|| text(*row, "level"));
            *least = std::mem::take(least).min(text(*row, "level"));
        }
        let outermost = lowest.values().min();
        for row in exits.iter().filter(|row| lowest.get(&text(**row, "machine")) == outermost) {
            self.exits(id, &mut one, *row)?;
        }
        self.recordings.insert(id.clone(), one);
        Ok(())
    }

    fn finding(&mut self, id: &Id, one: &mut One, row: Row<'_>) {
        one.findings.push(Found {
            rule: text(row, "rule"),
            severity: text(row, "severity"),
            cost: row.number("cost").map(Bits::of),
            cost_unit: text(row, "cost_unit"),
            cost_kind: text(row, "cost_kind"),
        });
        let (title, fix, section) = (text(row, "title"), text(row, "fix"), text(row, "section"));
        self.example(text(row, "rule"), Example { of: id.clone(), title, fix, section });
    }

    fn exits(&mut self, id: &Id, one: &mut One, row: Row<'_>) -> Result<(), Unread> {
        let Some(Cell::Bytes(bytes)) = row.cell("cost") else { return Ok(()) };
        let cost_ns = Histogram::of_wire(bytes, whole(row, "total_ns"), whole(row, "max_ns"))
            .map_err(|source| Unread::Histogram { host: id.host.clone(), recording: id.recording.clone(), source })?;
        let (level, reason) = (text(row, "level"), text(row, "reason"));
        one.exits.push((level.clone(), reason.clone(), cost_ns.count(), cost_ns.sum()));
        let costs = self.costs.entry(Exits { class: one.class.clone(), level, reason }).or_default();
        costs.merge(&Costs { count: whole(row, "count"), recordings: 1, cost_ns });
        Ok(())
    }

    fn example(&mut self, rule: String, example: Example) {
        match self.examples.get_mut(&rule) {
            Some(first) if *first <= example => {}
            Some(first) => *first = example,
            None => drop(self.examples.insert(rule, example)),
        }
    }

    /// Adds all recordings of another part.
    pub fn merge(&mut self, other: Fleet) {
        self.recordings.extend(other.recordings);
        self.failures.extend(other.failures);
        for (exits, costs) in other.costs {
            self.costs.entry(exits).or_default().merge(&costs);
        }
        other.examples.into_iter().for_each(|(rule, example)| self.example(rule, example));
    }

    /// Recordings that could not be read or added: where each is, and why.
    pub fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.failures.iter().map(|(source, why)| (source.as_str(), why.as_str()))
    }

    /// How many recordings there are.
    pub fn len(&self) -> usize {
        self.recordings.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.recordings.is_empty()
    }
}

impl Costs {
    pub(super) fn merge(&mut self, other: &Costs) {
        self.count += other.count;
        self.recordings += other.recordings;
        self.cost_ns.merge(&other.cost_ns);
    }
}

fn text(row: Row<'_>, name: &str) -> String {
    row.text(name).unwrap_or_default().to_owned()
}

fn whole(row: Row<'_>, name: &str) -> u64 {
    match row.cell(name) {
        Some(Cell::U64(value)) => *value,
        _ => 0,
    }
}
