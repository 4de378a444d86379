//! Benches on this machine.
//!
//! Each test that uses the machine has it for itself, by [`testing::machine`]. Where it lacks something, it says so.
#![cfg(target_arch = "x86_64")]

mod bench;
