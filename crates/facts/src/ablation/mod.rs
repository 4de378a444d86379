//! Which of several changes takes away what vCPUs lose? Each is made alone, again and again, with runs without it in between.
//!
//! ```text
//! runs  without, with, without, with ..  --recorded--> Run: the numbers that the budget judges
//! Tried: the runs of one change, both ways --permutation test--> Change of each number, and how likely chance does as much
//! all Tried --all tests together--> Effect of each, ranked by what it took away
//! ```
//! In: recordings of the same load. Out: what each change did; that no effect was found is a result as well. All numbers of all
//! changes are tested together, so that trying more of them does not find more by chance.

mod effect;
mod run;

pub use effect::{Change, Effect, Ranked, Tried, least_runs, ranked};
pub use run::{Measure, Run, measures};
