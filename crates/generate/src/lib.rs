//! Traces whose truth is known by construction.
//!
//! ```text
//! Scenario --seed--> Host: vCPU threads act ---> Story { records, losses, truth } ---write(Target)---> a file to open
//! ```
//! A small simulator of a host and its guests acts out what nested KVM does, in the emission order of the kernel that
//! the scenario names, and keeps books while it acts. The same records are then written in every format, so that each
//! reader and every analysis can be held against one truth: the ledger of each vCPU to the nanosecond, exits by level
//! and reason, chains with their lengths. What the numbers mean exactly, also where the contract leaves a choice, stands
//! in [`truth`].
//!
//! [`guest::pair`] derives a guest's own trace from a story, on a clock of known offset, drift and steps.
//!
//! The program `generate` does the same from a command line: `--list`, `SCENARIO --format F --seed N -o DIR`, `--truth`,
//! `--all` for fuzzing seeds, `--huge 10GB -o FILE` for the bar on memory, `--vcpus 256` for wide hosts.
//!
//! [`fleet`] writes recordings of many hosts, of which some are set up worse than the others.
//!
//! [`tree`] writes `/proc` and `/sys` of hosts that do not exist, for what reads machines.
//!
//! In: a scenario of [`scenario::ALL`] or [`scenario::random`], and a seed. Out: a [`Story`]. Equal seeds give equal
//! stories on every machine.

pub mod fleet;
pub mod guest;
pub mod host;
pub mod huge;
pub mod kernel;
mod lttng;
pub mod printed;
pub mod random;
pub mod reason;
pub mod scenario;
pub mod story;
pub mod tree;
pub mod truth;
pub mod vcpu;

pub use guest::{GuestClock, Pair};
pub use host::Host;
pub use kernel::{Generation, Vendor};
pub use random::Random;
pub use scenario::Scenario;
pub use story::{Story, Target};
pub use truth::Truth;
