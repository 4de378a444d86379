//! What happened on a KVM host, and why: facts become answers.
//!
//! One folder per question, all of the same shape (`mod model build measure advise section`); [`QUESTIONS`] is the only
//! list of them. Questions never import each other; what several need is a [fact](facts). Everything here is pure: it
//! reads a [`Recording`](base::recording::Recording) and nothing else, and needs no root.

pub mod answers;
pub mod compare;
pub mod contention;
pub mod facts;
pub mod flow;
pub mod input;
pub mod nesting;
pub mod placement;
pub mod rule;
pub mod statistics;

pub use answers::Answers;
pub use input::{Input, Options, Part};

use base::{Problem, Section};

/// One question that kvmscope answers.
pub struct Question {
    /// Stable id, the Section's id.
    pub id: &'static str,
    /// The question, as a person would ask it.
    pub question: &'static str,
    /// True if it is about how machines are set up rather than about what happened: what `kvmscope check` asks.
    pub setup: bool,
    /// Finds the answer; `None` if the recording holds nothing the question could use.
    pub answer: fn(&mut Ask<'_>) -> Result<Option<Answer>, Error>,
}

/// What a question is given.
pub struct Ask<'a> {
    /// The opened recording.
    pub input: &'a Input,
    /// How the user narrowed the question.
    pub options: &'a Options,
    /// Hears of bytes of the input that are done, and bytes in all, as often as it changes.
    pub progress: &'a mut dyn FnMut(u64, u64),
}

/// An answer, and what was wrong with the input.
pub struct Answer {
    /// The answer.
    pub section: Section,
    /// Damage met on the way, beyond what opening the input already noted.
    pub problems: Vec<Problem>,
}

/// All questions, in the order in which they are shown.
pub const QUESTIONS: &[Question] = &[
    Question { id: "flow", question: flow::QUESTION, setup: false, answer: flow::answer },
    Question { id: "nesting", question: nesting::QUESTION, setup: true, answer: nesting::answer },
    Question { id: "placement", question: placement::QUESTION, setup: true, answer: placement::answer },
];

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
