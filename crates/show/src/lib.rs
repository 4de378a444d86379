//! Answers become text, JSON, CSV and a page; drawn flows become files for other viewers.
//!
//! ```text
//! [Section] + [Problem]  --text::render-->    for people: paragraphs, findings, bars, tables that fit the page
//!                        --json::write-->     for programs: everything, numbers exact
//!                        --csv::write_csv-->  for spreadsheets: a file per table
//! verdicts of goals      --junit::write-->   for build servers
//! Drawn -> Picture       --perfetto::write-->  for ui.perfetto.dev
//!                        --folded::write-->    stacks for flame graphs
//!                        --speedscope::write-> for speedscope
//!                        --aggregates-->       sums of all chains, for pages that hold only some
//!                        --html::render-->    for colleagues: one file with words, drawings and data
//! ```
//! Renderers know no question by name, read no trace, and add no words of their own to findings.

pub mod aggregates;
pub mod csv;
pub mod folded;
pub mod html;
pub mod json;
pub mod junit;
pub mod perfetto;
pub mod picture;
pub mod schema;
pub mod speedscope;
pub mod text;
mod view;
#[cfg(test)]
mod witness;
