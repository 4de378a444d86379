//! What is wrong, how do we know, what does it cost, and what does one type to change it?
//!
//! A finding without evidence does not exist; a cost says whether it was measured, modelled or published.

mod order;

pub use order::in_order;

use crate::table::TableSpec;
use crate::{Cell, Change, Level, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

crate::named! {
    /// How much it matters, ordered.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        /// Worth knowing.
        Info = "info",
        /// Costs a little.
        Low = "low",
        /// Costs noticeably.
        Medium = "medium",
        /// The first thing to change.
        High = "high",
    }
}

crate::named! {
    /// What a change demands before it works.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Needs {
        /// It works at once.
        Nothing = "nothing",
        /// A kernel module must be reloaded, with its VMs stopped, or a VM restarted.
        Reload = "reload",
        /// The machine must be rebooted.
        Reboot = "reboot",
        /// Only whoever owns the level below can do it.
        #[serde(rename = "outer level")]
        OuterLevel = "outer level",
    }
}

crate::named! {
    /// How a cost came about. Never mixed in one number.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum CostKind {
        /// Counted or timed in this recording.
        Measured = "measured",
        /// Computed by a model from measured inputs.
        Modelled = "modelled",
        /// Taken from a publication.
        Published = "published",
        /// No cost is known.
        None = "none",
    }
}

/// What a finding costs, or what its change would save.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// The amount, in `unit`.
    pub value: Option<f64>,
    /// Such as `share of all exits`, `exits per chain`, `ns per second`.
    pub unit: String,
    /// Where the amount comes from.
    pub kind: CostKind,
    /// Lower end of its uncertainty.
    pub low: Option<f64>,
    /// Upper end of its uncertainty.
    pub high: Option<f64>,
}

/// Time that vCPUs would get back if what a finding is about were gone. Where nothing predicts it, it is at most what was measured
/// of it, and at least nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GivesBack {
    /// The state in which they spend it now, by its name in timelines: `preempted`.
    pub state: String,
    /// What share of all vCPU time of the trace that is, most likely.
    pub share: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// As a cost has it, with the mark of emulated time: `share of vCPU time`.
    pub unit: String,
    /// The same for each vCPU, in ns: VM, number, time.
    #[serde(skip)]
    pub of_vcpus: Vec<(String, u32, u64)>,
}

impl GivesBack {
    /// `up to 46.2 %`, or `13.8 % (6.0 to 21.6 %)`.
    pub fn words(&self) -> String {
        interval(self.share, (self.low, self.high))
    }

    /// No more than `most`, a share of all vCPU time: what is left after others have given back theirs.
    pub fn at_most(&mut self, most: f64) {
        let kept = if self.share > most { most / self.share } else { 1.0 };
        self.share = self.share.min(most);
        (self.low, self.high) = (self.low.min(most), self.high.min(most));
        self.of_vcpus.iter_mut().for_each(|(.., ns)| *ns = (*ns as f64 * kept) as u64);
    }
}

/// A share of which `low` to `high` may come back, in words.
pub(crate) fn interval(share: f64, (low, high): (f64, f64)) -> String {
    use crate::number::percent;
    if low > 0.0 {
        let ends = format!("{} to {}", percent(low).trim_end_matches(" %"), percent(high));
        format!("{} ({ends})", percent(share))
    } else {
        format!("up to {}", percent(high))
    }
}

/// Something seen, and where it was seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// The observation with its number, as a person would say it.
    #[serde(rename = "what")]
    pub what: String,
    /// The table row, file or time that shows it.
    #[serde(rename = "where")]
    pub place: String,
    /// What it is about, by the names under which tables and timelines have it: what a program goes by, and no sentence.
    pub about: Vec<About>,
}

/// Something that evidence is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum About {
    /// Rows of a table: those with these cells in their key columns.
    Rows {
        /// `<section>.<table>`.
        table: &'static str,
        /// Cells by the columns' names; of none, all rows.
        keys: BTreeMap<&'static str, Cell>,
    },
    /// Exits of a reason.
    Reason {
        /// Its name, as in table `flow.exits`.
        reason: String,
    },
    /// Time in a state.
    State {
        /// Its name, as timelines have it: that of the ledger's column without its unit.
        state: String,
    },
    /// A thread of the recorded machine.
    Thread {
        /// Its id.
        tid: i32,
    },
    /// A stretch of time, in ns since the recording's first event.
    Span(Span),
}

/// One finding. Text, HTML, JSON, the dashboard and Python print this and add no words of their own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The rule, such as `FLW-SHADOW`.
    pub rule: &'static str,
    /// What it is about: a VM, a vCPU, a level, a file.
    pub subject: String,
    /// What has at most one such finding: `VM`, `interrupt`. Lists count by it: `and 15 more VMs`.
    #[serde(skip)]
    pub per: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Where the change has to be made.
    pub level: Level,
    /// One line with the number that matters.
    pub title: String,
    /// What was seen; never empty.
    pub evidence: Vec<Evidence>,
    /// What it costs.
    pub cost: Cost,
    /// What of the vCPUs' time its change would give back, where a trace tells.
    pub gives_back: Option<GivesBack>,
    /// Ids of the findings that this one is the cause of: lists show it in their place.
    pub explains: Vec<String>,
    /// Why this happens, in a sentence or two.
    pub why: String,
    /// Typed changes, where the program can make them.
    pub changes: Vec<Change>,
    /// The commands to type; printed changes, or commands for what only a person can do.
    pub fix: Vec<String>,
    /// The commands that take it back.
    pub undo: Vec<String>,
    /// What the change demands.
    pub needs: Needs,
    /// Where the rule's claim comes from: kernel file and version, manual, paper.
    pub source: &'static str,
}

impl Needs {
    /// The demand in words for people.
    pub fn words(self) -> &'static str {
        match self {
            Needs::Nothing => "nothing: effective at once",
            Needs::Reload => "a reload: of the kernel module with its VMs stopped, or a restart of the VM",
            Needs::Reboot => "a reboot of the machine",
            Needs::OuterLevel => "the outer level: only the owner of the host below can do it",
        }
    }
}

impl Evidence {
    /// Something seen at a place that is no table.
    pub fn new(what: impl Into<String>, place: impl Into<String>) -> Self {
        Self { what: what.into(), place: place.into(), about: Vec::new() }
    }

    /// Something seen in a table, `<section>.<table>`; people read it beside the section, so its own name is the place.
    pub fn in_table(what: impl Into<String>, table: &'static str) -> Self {
        let name = table.split_once('.').map_or(table, |(_, name)| name);
        Self::new(what, format!("table {name}")).about([About::rows(table)])
    }

    /// The same, seen in the rows of its tables whose cell of this key is `cell`.
    #[must_use]
    pub fn key(mut self, column: &'static str, cell: impl Into<Cell>) -> Self {
        let cell = cell.into();
        for about in &mut self.about {
            if let About::Rows { keys, .. } = about {
                keys.insert(column, cell.clone());
            }
        }
        self
    }

    /// The same with more that it is about.
    #[must_use]
    pub fn about(mut self, about: impl IntoIterator<Item = About>) -> Self {
        self.about.extend(about);
        self
    }
}

impl About {
    /// All rows of a table, `<section>.<table>`.
    pub fn rows(table: &'static str) -> Self {
        Self::Rows { table, keys: BTreeMap::new() }
    }

    /// Whether it is about this row of a table.
    pub fn is_row(&self, spec: &TableSpec, row: &[Cell]) -> bool {
        let Self::Rows { table, keys } = self else { return false };
        let is_there = |(key, cell): (&&str, &Cell)| spec.column(key).and_then(|at| row.get(at)) == Some(cell);
        *table == spec.address() && keys.iter().all(is_there)
    }

    /// Exits of a reason.
    pub fn reason(name: impl Into<String>) -> Self {
        Self::Reason { reason: name.into() }
    }

    /// Time in a state.
    pub fn state(name: impl Into<String>) -> Self {
        Self::State { state: name.into() }
    }
}

impl Finding {
    /// `RULE@subject`, unique in one answer.
    pub fn id(&self) -> String {
        format!("{}@{}", self.rule, self.subject)
    }
}

impl Cost {
    /// True if the amount is only its upper bound: the change may also save nothing.
    pub fn is_bound(&self) -> bool {
        self.low == Some(0.0) && self.high == self.value && self.value.is_some_and(|value| value > 0.0)
    }

    /// No cost is known.
    pub fn none() -> Self {
        Self { value: None, unit: String::new(), kind: CostKind::None, low: None, high: None }
    }

    /// An amount of the given kind without a stated spread.
    pub fn of(kind: CostKind, value: f64, unit: impl Into<String>) -> Self {
        Self { value: Some(value), unit: unit.into(), kind, low: None, high: None }
    }

    /// The same with its uncertainty.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Self {
        Self { low: Some(low), high: Some(high), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;

    #[test]
    fn evidence_is_about_the_rows_of_its_table_that_have_all_its_keys() {
        const EXITS: TableSpec = TableSpec {
            section: "flow",
            name: "exits",
            version: 1,
            row: "",
            columns: &[Column::key("vm"), Column::key("reason")],
            shown: None,
        };
        let row: [Cell; 2] = ["web".into(), "MSR".into()];
        let about = |table, keys: &[(&'static str, &str)]| {
            let seen = keys.iter().fold(Evidence::in_table("", table), |seen, (key, cell)| seen.key(key, *cell));
            seen.about.iter().any(|about| about.is_row(&EXITS, &row))
        };
        assert!(about("flow.exits", &[]) && about("flow.exits", &[("vm", "web"), ("reason", "MSR")]));
        assert!(!about("flow.exits", &[("vm", "web"), ("reason", "IO")]) && !about("flow.exits", &[("cpu", "web")]));
        assert!(!about("nesting.exits", &[]) && !About::reason("MSR").is_row(&EXITS, &row));
    }
}
