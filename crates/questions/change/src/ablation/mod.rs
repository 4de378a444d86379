//! Which of several changes takes away what vCPUs lose, and which has no effect that could be found?
//!
//! ```text
//! Trial: runs of each change, without it and with it --facts::ablation--> Ranked --> tables, picture, the answer in words
//! ```
//! In: what `apply --trial` measured by a budget. Out: a section that says of each change what it did; that no effect was found
//! is an answer too.

mod figure;
mod section;
pub mod tables;

pub use section::{QUESTION, answer};

use base::number::many;
use facts::ablation::{Ranked, Tried, ranked};
use facts::budget::Budget;

/// Id of the Section.
pub const ID: &str = "ablation";

/// What a trial by a budget measured.
#[derive(Debug, Clone)]
pub struct Trial {
    /// By whose goals the runs were judged.
    pub budget: Budget,
    /// How long a run was, in seconds.
    pub run_s: f64,
    /// The changes that were made, each with its runs.
    pub tried: Vec<Tried>,
    /// Those that were not, and why.
    pub not_tried: Vec<(String, String)>,
    /// The name of the change that stays.
    pub kept: Option<String>,
}

impl Trial {
    /// What each change did, first what took away most.
    pub fn ranked(&self) -> Vec<Ranked> {
        ranked(&self.budget, &self.tried)
    }

    /// How often each was measured, both ways.
    pub fn runs(&self) -> usize {
        self.tried.iter().map(|one| one.before.len().min(one.after.len())).max().unwrap_or(0)
    }

    /// The same in words: `6 runs of 0.7 s`.
    pub(crate) fn runs_in_words(&self) -> String {
        format!("{} of {:.1} s", many(self.runs() as u64, "run"), self.run_s)
    }
}
