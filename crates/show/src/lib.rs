//! Answers become text, JSON and CSV.
//!
//! ```text
//! [Section] + [Problem]  --text::render-->    for people: paragraphs, findings, bars, tables that fit the page
//!                        --json::write-->     for programs: everything, numbers exact
//!                        --csv::write_csv-->  for spreadsheets: a file per table
//! ```
//! Renderers know no question by name and add no words of their own to findings.

pub mod csv;
pub mod json;
pub mod text;
