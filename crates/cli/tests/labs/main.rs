//! Labs and benches: they boot emulated machines, make namespaces and switches, and leave nothing behind, however they end.
//!
//! Each test that uses the machine has it for itself, by [`testing::machine`]. Where it lacks something, it says so. Trials of minutes
//! are ignored by `cargo test`; `make torture` runs them.
#![cfg(feature = "labs")]

mod bed;
mod bench;
mod guests;
mod migrate;
mod nested;
mod netns;
mod netns_own;
mod ovs;
mod paths;
mod record_migration;
mod rt;
