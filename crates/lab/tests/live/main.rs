//! The live side on this machine: guests, recorders, snapshots.
//!
//! Each test that uses the machine has it for itself, by [`testing::machine`]. Where it lacks something, it says so.

mod drive;
mod guest;
mod snapshot;
