//! Commands that touch this machine for a moment: they record it, sample it, change it and undo that.
//!
//! Each test that uses the machine has it for itself, by [`testing::machine`]. Where it lacks something, it says so.

#[cfg(feature = "full")]
mod agent;
mod apply;
mod beside;
mod check;
mod interrupt;
mod prometheus;
mod record;
mod samples;
mod serve;
mod snapshot;
mod top;
