//! What did the machine below, or the machine itself, do while a sample lasted?
//!
//! ```text
//! samples with times   --clocks, counters--> spans of a trace --+-- of a guest: what its vCPU lost meanwhile          (facts::losses)
//!                                                     +-- of the machine: what its thread waited for        (follow, threads)
//! samples without      --ranked--> the k longest with the k longest delays of the thread that measured, and of a guest the stops
//!                                  of its CPU by the machine below (below)
//!                                                     |
//!                                                     v
//!                                       sums: of each sample, causes + unexplained = its length
//! threads that poll, in windows --> pollers: of each window, the thread itself + causes + asleep + unknown = its length
//! ```
//! A sample of which nothing is known is unexplained as a whole. What is unexplained is printed with the causes.

mod below;
mod clock_error;
pub(super) mod clocks;
mod counters;
mod follow;
mod guests;
mod lacking;
mod narrowed;
pub mod pollers;
mod ranked;
pub mod sums;
mod threads;

pub use clock_error::ClockError;
pub(crate) use clocks::is_monotonic;
pub use clocks::on_axis;
pub use lacking::{Lacking, Unattributed};
pub use narrowed::narrowed;
pub use sums::{Part, Sums};

use crate::budget::Budget;
use crate::ledger::model::{Flow, PartFlow};
use crate::losses::PartLosses;
use crate::samples::{ResultFiles, SampleClock, SampleFile, Samples, Source};
use crate::{Given, Input};

/// The samples of one file that are over a limit, with their causes.
#[derive(Debug)]
pub struct Attributed {
    pub machine: String,
    pub path: String,
    pub source: Source,
    /// The trace that explains them: its place among the ledger's parts.
    pub part: usize,
    pub by: FoundBy,
    /// Which of its samples are counted.
    pub over: Over,
    /// Of all threads of the file.
    pub sums: Sums,
}

/// What the traces of a recording tell of its results.
#[derive(Debug, Default)]
pub struct Attribution {
    /// In the order of the files, for each of the limits.
    pub found: Vec<Attributed>,
    pub missing: Vec<Unattributed>,
}

/// By what samples were found in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// By when they ended, which is known up to so much.
    Time(ClockError),
    /// By their order: the file has no times.
    Rank,
}

impl FoundBy {
    /// How far a sample may lie from where it was looked for, where that is known.
    pub fn clock_error(self) -> Option<ClockError> {
        match self {
            FoundBy::Time(error) => Some(error),
            FoundBy::Rank => None,
        }
    }
}

/// Which samples are counted: those that are longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// The limit of the budget; `None` without one.
    pub limit_ns: Option<u64>,
    /// It, else 0 of a file that has times, and of others what is just below the unusual lengths.
    pub above_ns: u64,
}

/// The share of samples that are left out where no limit is judged and samples have no times: lengths that every cycle has.
const USUAL: f64 = 0.99;

/// Attributes the results of a recording to what its traces show: of each file the samples over each limit that `budget` sets to
/// samples of its kind.
pub fn build(
    (input, given, results): (&Input, &Given, &ResultFiles),
    (flow, losses): (&Flow, &[PartLosses]),
    budget: Option<&Budget>,
    progress: &mut dyn FnMut(u64, u64),
) -> Attribution {
    let mut all = Attribution::default();
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
        let Some(source) = file.samples.first().map(|samples| samples.source) else { continue };
        // What is below knows what it took from a guest; of an outermost machine its own trace tells.
        let part = below.as_deref().and_then(place).filter(|part| !flow.parts[*part].vcpus.is_empty());
        let over = over(file, budget);
        let found = match part {
            Some(part) => guests::attribute((input, given, flow, losses), part, file, &over),
            None => Err(Lacking::Trace),
        };
        // Where that one cannot tell, the guest's own trace may.
        let own = |lacking: Lacking| match place(&file.machine) {
            None => Err(lacking),
            Some(own) => threads::attribute((input, given, flow, losses), own, file, &over, &mut *progress)
                .ok_or(if lacking == Lacking::Trace { Lacking::Threads } else { lacking }),
        };
        let Found { part, by, sums } = match found.or_else(own) {
            Ok(found) => found,
            Err(lacking) => {
                let (machine, path) = (file.machine.clone(), file.path.clone());
                all.missing.push(Unattributed { machine, below, path, lacking });
                continue;
            }
        };
        all.found.extend(over.into_iter().zip(sums).map(|(over, sums)| {
            let (machine, path) = (file.machine.clone(), file.path.clone());
            Attributed { machine, path, source, part, by, over, sums }
        }));
    }
    all
}

/// Which samples of a file are counted: those over each limit, else all that have times, and of others the unusual ones.
fn over(file: &SampleFile, budget: Option<&Budget>) -> Vec<Over> {
    let measures = file.samples.first().map(Samples::measures);
    let limits = budget.zip(measures).map(|(budget, measures)| budget.limits_ns(measures)).unwrap_or_default();
    let usual = || file.samples.iter().filter_map(|samples| samples.quantile_ns(USUAL)).max().unwrap_or(0);
    if limits.is_empty() {
        let above_ns = if file.samples.iter().any(is_timed) { 0 } else { usual().saturating_sub(1) };
        return vec![Over { limit_ns: None, above_ns }];
    }
    limits.into_iter().map(|limit_ns| Over { limit_ns: Some(limit_ns), above_ns: limit_ns }).collect()
}

/// What was found of the samples of a file.
struct Found {
    /// The trace that explains them.
    part: usize,
    by: FoundBy,
    sums: Vec<Sums>,
}

fn is_timed(samples: &Samples) -> bool {
    samples.clock != SampleClock::None && !samples.timed.is_empty()
}
