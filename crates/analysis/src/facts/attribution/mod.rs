//! What did the machine below, or the machine itself, do while a sample lasted?
//!
//! ```text
//! samples with times   --clocks--> spans of a trace --+-- of a guest: what its vCPU lost meanwhile          (facts::losses)
//!                                                     +-- of the machine: what its thread waited for        (follow, threads)
//! samples without      --ranked--> the k longest with the k longest delays of the thread that measured
//!                                                     |
//!                                                     v
//!                                       sums: of each sample, causes + unexplained = its length
//! ```
//! A sample of which nothing is known is unexplained as a whole. What is unexplained is printed with the causes.

mod clocks;
mod follow;
mod guests;
mod narrowed;
mod ranked;
mod sums;
mod threads;

pub(crate) use narrowed::narrowed;
pub use sums::{Part, Sums};

use crate::facts::ledger::model::{Flow, PartFlow};
use crate::facts::losses::PartLosses;
use crate::facts::samples::{ResultFiles, SampleClock, SampleFile, Samples, Source};
use crate::{Given, Input};

/// The samples of one file, with their causes.
#[derive(Debug)]
pub struct Attributed {
    /// The machine that they were measured on.
    pub machine: String,
    /// The file.
    pub path: String,
    /// Who measured.
    pub source: Source,
    /// The trace that explains them: its place among the ledger's parts.
    pub part: usize,
    /// By what samples were found in it.
    pub by: FoundBy,
    /// Samples of at most this length are left out.
    pub above_ns: u64,
    /// Of all threads of the file.
    pub sums: Sums,
}

/// By what samples were found in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// By when they ended; the trace's clock shows that up to so much.
    Time {
        /// How far it may be off.
        error_ns: u64,
    },
    /// By their order: the file has no times.
    Rank,
}

impl FoundBy {
    /// How far a sample may lie from where it was looked for, where that is known.
    pub fn error_ns(self) -> Option<u64> {
        match self {
            FoundBy::Time { error_ns } => Some(error_ns),
            FoundBy::Rank => None,
        }
    }
}

/// The share of samples that are left out where no limit is judged and samples have no times: lengths that every cycle has.
const USUAL: f64 = 0.99;

/// Attributes the results of a recording to what its traces show; `limit_ns` is the length above which samples are bad.
pub(crate) fn build(
    (input, given, results): (&Input, &Given, &ResultFiles),
    (flow, losses): (&Flow, &[PartLosses]),
    limit_ns: Option<u64>,
    progress: &mut dyn FnMut(u64, u64),
) -> Vec<Attributed> {
    let mut all = Vec::new();
    for file in &results.list {
        let answers =
            |part: &PartFlow, machine: &str| part.machine == machine && part.twin_of.is_none() && part.events > 0;
        let place = |machine: &str| flow.parts.iter().position(|part| answers(part, machine));
        let below = input
            .recording
            .machines
            .iter()
            .find(|machine| machine.id == file.machine)
            .and_then(|own| own.parent.clone());
        // What is below knows what it took from a guest; of an outermost machine its own trace tells.
        let part = below.as_deref().and_then(place).filter(|part| !flow.parts[*part].vcpus.is_empty());
        let found = match part {
            Some(part) => guests::attribute((input, flow, losses), part, file, limit_ns),
            None => place(&file.machine)
                .and_then(|part| threads::attribute((input, given, flow), part, file, limit_ns, &mut *progress)),
        };
        all.extend(found);
    }
    all
}

/// Above which length samples of a file are looked at: the limit, else all that have times, and of others the unusual ones.
fn above_ns(file: &SampleFile, limit_ns: Option<u64>) -> u64 {
    let usual = file.samples.iter().filter_map(|samples| samples.quantile_ns(USUAL)).max();
    match limit_ns {
        Some(limit_ns) => limit_ns,
        None if file.samples.iter().any(is_timed) => 0,
        None => usual.unwrap_or(0),
    }
}

fn is_timed(samples: &Samples) -> bool {
    samples.clock != SampleClock::None && !samples.timed.is_empty()
}
