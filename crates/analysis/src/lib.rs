//! All questions, and what they answer about one recording.
//!
//! [`QUESTIONS`] is the only list of them; each is a function of a [`Case`], in a crate of its kind that knows no other question.
//! Everything here is pure: it reads a [`Recording`] and nothing else, and needs no root.

pub mod answers;
pub mod validation;

pub use answers::Answers;
pub use change::{ablation, compare, contention, fleet};
pub use channel_question as channel;
pub use facts::{
    About, Answer, Case, Error, Given, Input, Listing, LossOptions, MOST_PLAN_BYTES, Question, TraceHints, WINDOWS,
    rule, statistics,
};
pub use nesting;
pub use plan::{datapath, migration};
pub use setup::{placement, realtime, signs};
pub use time::{counts, flow, latency};
pub use walk::Part;

/// What happened, typed: what every question stands on.
pub mod facts {
    pub use ::facts::*;
    pub use ::walk::{
        self, Axis, Isa, Preemptor, Reason, Role, Sink, State, TracedLevel, Walk, events, stages, state, thread,
    };
}

use base::TableSpec;
use base::recording::Recording;
use base::rule::Words;

/// Opens all parts of `recording`.
///
/// # Errors
/// If no part can be opened: the first part's error.
pub fn open(recording: Recording) -> Result<Input, Error> {
    Input::open(recording, datapath::carried)
}

/// What `input` measured that a plan of service chains can use, a ring `used` as it says. `from` is its name.
///
/// # Errors
/// A sentence for the user: what the recording lacks, and how to measure it.
pub fn calibration(
    input: &Input,
    pattern: base::datapath::Traffic,
    used: &datapath::ChannelUse,
    from: &str,
) -> Result<datapath::Calibration, String> {
    datapath::calibration(input, pattern, used, from, channel::ring_cost)
}

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
        id: counts::ID,
        question: counts::QUESTION,
        about: About::Happened,
        tables: counts::TABLES,
        rules: Vec::new,
        answer: counts::answer,
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
        id: "signs",
        question: signs::QUESTION,
        about: About::Setup,
        tables: &[],
        rules: signs::words,
        answer: signs::answer,
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

/// What every table is that any answer of this program may have, by section and in reading order: docs/formats/tables.md, the JSON
/// schema, Arrow's schemas and the dashboard's types are made from it.
pub fn tables() -> impl Iterator<Item = &'static TableSpec> {
    let of_questions = QUESTIONS.iter().flat_map(|question| question.tables);
    of_questions.chain(flow::live::TABLES).copied()
}

/// What every rule of every question says of itself, in the order in which equal findings are shown.
pub fn rules() -> impl Iterator<Item = Words> {
    QUESTIONS.iter().flat_map(|question| (question.rules)())
}
