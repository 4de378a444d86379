//! The live side on this machine: guests, recorders, snapshots.
//!
//! Each test that uses the machine has it for itself, by [`testing::machine`]. Where it lacks something, it says so.

#[cfg(target_arch = "x86_64")]
mod bench;
mod drive;
mod guest;
mod snapshot;
