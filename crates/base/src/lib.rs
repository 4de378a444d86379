//! The words every part of kvmscope speaks.
//!
//! This crate reads no trace and no host. It holds what the readers, the answers and the renderers must agree on:
//! time and levels, problems found in input, findings and the changes they propose, tables, figures, the [`Section`]
//! that every question answers with, and the [`recording`] directory in which the live and the reading half meet.

// Everybody builds on it: what it offers is documented, item by item.
#![deny(missing_docs)]

pub mod bench;
mod change;
pub mod channel;
mod control;
mod counters;
pub mod cpus;
pub mod datapath;
pub mod fact_kind;
pub mod figure;
pub mod files;
mod finding;
pub mod gaps;
pub mod gauges;
pub mod heartbeat;
pub mod hibernation;
pub mod histogram;
pub mod interrupts;
mod json_line;
mod level;
pub mod method;
pub mod moved_memory;
pub mod named;
mod narrow;
pub mod nearest;
pub mod network;
pub mod number;
pub mod parallel;
pub mod plain;
pub mod prediction;
mod problem;
pub mod processes;
pub mod qmp;
pub mod quantity;
pub mod recording;
pub mod rule;
pub mod scalars;
mod section;
pub mod setting;
pub mod shell;
pub mod table;
pub mod table_file;
mod time;
pub mod timeline;
pub mod utc;

pub use bench::{Bench, Measured, Params};
pub use change::Change;
pub use control::Control;
pub use cpus::{CpuSet, MOST_CPUS};
pub use fact_kind::FactKind;
pub use figure::Figure;
pub use finding::{About, Cost, CostKind, Evidence, Finding, GivesBack, Needs, Severity, in_order};
pub use histogram::Histogram;
pub use level::Level;
pub use narrow::Narrow;
pub use problem::{Problem, Problems};
pub use section::{Section, Unknown};
pub use setting::Setting;
pub use table::{Cell, Column, ColumnType, Shown, Table, TableSpec};
pub use time::{Clock, ClockSource, Span};
pub use utc::Utc;
