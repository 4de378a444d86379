//! What a question is, and what it answers with.

use crate::Case;
use base::rule::Words;
use base::{Problem, Section, TableSpec};

/// One question that kvmscope answers.
pub struct Question {
    /// Stable id, the Section's id.
    pub id: &'static str,
    /// The question, as a person would ask it.
    pub question: &'static str,
    pub about: About,
    /// Its tables, in reading order.
    pub tables: &'static [&'static TableSpec],
    /// What its rules say of themselves, in the order in which equal findings are shown.
    pub rules: fn() -> Vec<Words>,
    /// Finds the answer; `None` if the case holds nothing the question could use.
    pub answer: fn(&Case) -> Result<Option<Answer>, Error>,
}

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
    pub section: Section,
    /// Damage met on the way, beyond what opening the input already noted.
    pub problems: Vec<Problem>,
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

impl Error {
    /// True if the user asked for what the recording does not hold: then no other question answers what was asked either.
    pub fn is_of_what_was_asked(&self) -> bool {
        matches!(self, Error::NoSuch(_) | Error::Outside(_))
    }
}
