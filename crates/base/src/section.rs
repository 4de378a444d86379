//! What a question answers with.
//!
//! Every output (text, HTML, JSON, dashboard, Python, Parquet) renders Sections and knows no question by name.

use crate::{Control, Figure, Finding, Table};
use serde::Serialize;

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Stable id: `flow`, `nesting`, `placement`, ...
    pub id: &'static str,
    /// The question, as a person would ask it.
    pub question: &'static str,
    /// Facts about what was read, a line each: where it was recorded, how many events, how long, what mark it carries.
    pub about: Vec<String>,
    /// The answer that a person would say aloud.
    pub summary: String,
    /// What is wrong and what to change, worst first.
    pub findings: Vec<Finding>,
    /// Figures, in reading order.
    pub figures: Vec<Figure>,
    /// Tables, in reading order.
    pub tables: Vec<Table>,
    /// What a reader may set, to be answered anew.
    pub controls: Vec<Control>,
    /// What is not known or was lost, as amounts.
    pub unknown: Vec<Unknown>,
    /// What to do or type next, a command or a sentence each.
    pub next: Vec<String>,
}

/// Something the answer cannot tell, and how much of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unknown {
    /// Short stable name: `lost_events`, `unknown_level`, `clock_uncalibrated`.
    pub what: String,
    /// How much, in `unit`.
    pub amount: Option<f64>,
    /// `ns`, `events`, `share`, or empty.
    pub unit: String,
    /// The same as one sentence: what it means and what would bring the answer.
    pub text: String,
}

impl Section {
    /// An answer without content yet.
    pub fn new(id: &'static str, question: &'static str) -> Self {
        Self {
            id,
            question,
            about: Vec::new(),
            summary: String::new(),
            findings: Vec::new(),
            figures: Vec::new(),
            tables: Vec::new(),
            controls: Vec::new(),
            unknown: Vec::new(),
            next: Vec::new(),
        }
    }

    /// The table called `name`.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.spec.name == name)
    }
}
