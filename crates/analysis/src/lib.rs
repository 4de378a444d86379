//! What happened on a KVM host, and why: facts become answers.
//!
//! One folder per question, each a function of a [`Case`]; [`QUESTIONS`] is the only list of them. Questions never import each
//! other, nor read what another prints; what several need is a [fact](facts). Everything here is pure: it reads a
//! [`Recording`](base::recording::Recording) and nothing else, and needs no root.

pub mod ablation;
pub mod answers;
mod case;
pub mod channel;
pub mod compare;
pub mod contention;
pub mod datapath;
pub mod facts;
mod fields;
pub mod fleet;
pub mod flow;
mod given;
pub mod input;
pub mod latency;
pub mod migration;
pub mod nesting;
pub mod placement;
pub mod realtime;
pub mod rule;
pub mod statistics;
pub mod validation;

pub use answers::Answers;
pub use case::{Case, WINDOWS};
pub use given::{Given, Listing, LossOptions, TraceHints};
pub use input::{Input, Part};

use base::rule::Words;
use base::table::TableSpec;
use base::{Problem, Section};

/// One question that kvmscope answers.
pub struct Question {
    /// Stable id, the Section's id.
    pub id: &'static str,
    /// The question, as a person would ask it.
    pub question: &'static str,
    /// What it is about.
    pub about: About,
    /// Its tables, in reading order.
    pub tables: &'static [&'static TableSpec],
    /// What its rules say of themselves, in the order in which equal findings are shown.
    pub rules: fn() -> Vec<Words>,
    /// Finds the answer; `None` if the case holds nothing the question could use.
    pub answer: fn(&Case) -> Result<Option<Answer>, Error>,
}

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// What happened while something was recorded.
    Happened,
    /// How machines are set up: what `kvmscope check` asks.
    Setup,
    /// What a change would do, by a model.
    Plan,
    /// What changed between two recordings.
    Change,
    /// What an experiment measured.
    Trial,
    /// What many recordings of many hosts have in common, and which differ.
    Fleet,
}

/// An answer, and what was wrong beyond what opening the input noted.
pub struct Answer {
    /// The answer.
    pub section: Section,
    /// Damage met on the way, beyond what opening the input already noted.
    pub problems: Vec<Problem>,
}

/// All questions, in the order in which they are shown.
pub const QUESTIONS: &[Question] = &[
    Question {
        id: "flow",
        question: flow::QUESTION,
        about: About::Happened,
        tables: flow::tables::TABLES,
        rules: flow::rules::words,
        answer: flow::answer,
    },
    Question {
        id: "latency",
        question: latency::QUESTION,
        about: About::Happened,
        tables: latency::tables::TABLES,
        rules: latency::rules::words,
        answer: latency::answer,
    },
    Question {
        id: "datapath",
        question: datapath::measured::QUESTION,
        about: About::Happened,
        tables: datapath::measured::TABLES,
        rules: Vec::new,
        answer: datapath::measured::answer,
    },
    Question {
        id: channel::ID,
        question: channel::QUESTION,
        about: About::Happened,
        tables: channel::TABLES,
        rules: channel::words,
        answer: channel::answer,
    },
    Question {
        id: "migration",
        question: migration::measured::QUESTION,
        about: About::Happened,
        tables: migration::measured::TABLES,
        rules: migration::measured::words,
        answer: migration::memory::answer,
    },
    Question {
        id: "nesting",
        question: nesting::QUESTION,
        about: About::Setup,
        tables: nesting::tables::TABLES,
        rules: nesting::rules::words,
        answer: nesting::answer,
    },
    Question {
        id: "placement",
        question: placement::QUESTION,
        about: About::Setup,
        tables: placement::tables::TABLES,
        rules: placement::rules::words,
        answer: placement::answer,
    },
    Question {
        id: "migration",
        question: migration::blocked::QUESTION,
        about: About::Setup,
        tables: &[],
        rules: migration::blocked::words,
        answer: migration::blocked::answer,
    },
    Question {
        id: "realtime",
        question: realtime::QUESTION,
        about: About::Setup,
        tables: realtime::TABLES,
        rules: realtime::words,
        answer: realtime::answer,
    },
    Question {
        id: "plan",
        question: nesting::plan::QUESTION,
        about: About::Plan,
        tables: nesting::plan::TABLES,
        rules: Vec::new,
        answer: nesting::plan::answer,
    },
    Question {
        id: "datapath",
        question: datapath::QUESTION,
        about: About::Plan,
        tables: datapath::TABLES,
        rules: datapath::words,
        answer: datapath::answer,
    },
    Question {
        id: "migration",
        question: migration::QUESTION,
        about: About::Plan,
        tables: migration::TABLES,
        rules: migration::rules::words,
        answer: migration::answer,
    },
    Question {
        id: compare::ID,
        question: compare::QUESTION,
        about: About::Change,
        tables: compare::TABLES,
        rules: compare::words,
        answer: compare::answer,
    },
    Question {
        id: compare::history::ID,
        question: compare::history::QUESTION,
        about: About::Change,
        tables: compare::history::TABLES,
        rules: Vec::new,
        answer: compare::history::answer,
    },
    Question {
        id: contention::ID,
        question: contention::QUESTION,
        about: About::Trial,
        tables: contention::tables::TABLES,
        rules: Vec::new,
        answer: contention::answer,
    },
    Question {
        id: ablation::ID,
        question: ablation::QUESTION,
        about: About::Trial,
        tables: ablation::tables::TABLES,
        rules: Vec::new,
        answer: ablation::answer,
    },
    Question {
        id: fleet::ID,
        question: fleet::QUESTION,
        about: About::Fleet,
        tables: fleet::TABLES,
        rules: fleet::words,
        answer: fleet::answer,
    },
];

/// What every table is that any answer of this program may have, by section and in reading order: docs/tables.md, the JSON
/// schema, Arrow's schemas and the dashboard's types are made from it.
pub fn tables() -> impl Iterator<Item = &'static TableSpec> {
    QUESTIONS.iter().flat_map(|question| question.tables).copied()
}

/// What every rule of every question says of itself, in the order in which equal findings are shown.
pub fn rules() -> impl Iterator<Item = Words> {
    QUESTIONS.iter().flat_map(|question| (question.rules)())
}

/// Why no answer could be given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No trace could be opened: why not the first one, whose file is named as the user did.
    #[error("{0}")]
    Unopened(String),
    /// A recording's manifest could not be read.
    #[error(transparent)]
    Recording(#[from] base::recording::Error),
    /// The traces were opened, and hold nothing.
    #[error("{0}")]
    NoEvents(String),
    /// The user asked by name for something that the recording does not hold.
    #[error("{0}")]
    NoSuch(String),
    /// The user narrowed the question to a stretch of time in which nothing was recorded.
    #[error("{0}")]
    Outside(String),
}
