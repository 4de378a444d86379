//! Answers become text, JSON, CSV and a page.
//!
//! ```text
//! [Section] + [Problem]  --text::render-->    for people: paragraphs, findings, bars, tables that fit the page
//!                        --json::write-->     for programs: everything, numbers exact
//!                        --csv::write_csv-->  for spreadsheets: a file per table
//!                        --html::write-->     for colleagues: one file with words, drawings and data
//! ```
//! Renderers know no question by name and add no words of their own to findings.

pub mod csv;
pub mod html;
pub mod json;
pub mod text;
