//! What touches a user's host: recorders, test guests, and the journal that leaves a host as it was.
//!
//! ```text
//! journal   what is about to be changed, written first ---------------------> undo, after a kill -9 as well
//! setting   each kind of setting: read, set, compared, taken back -----> a value, and whom it concerns
//! apply     typed changes, read, noted, made, read back ------------------> a host that undo puts back
//! drive     perf and LTTng, as recorders
//! guest     guests of a few bytes, to see which events fire ------------------> what userspace saw
//! clocks    all clocks of this machine at one instant --------------------------> pairs in the manifest
//! recorder  tracefs, perf, LTTng: start -> stop -> parts of a recording
//! trigger   a named pipe: a line written into it ends a flight recorder
//! flight    flight recorders beside something else, one after the other ---> what was frozen
//! snapshot  copies of /proc and /sys, CPUID, domains --------------------------> host/0, host/1 of a recording
//! environment  what the machine was, in a few words by name -------------------> beside what was measured on it
//! memory    what is in a guest's memory, looked at from outside --> shares, and what is dirtied
//! disk      how fast a file system writes and reads
//! moving    a migration that somebody else makes, watched -----------------> sessions of QEMU's machine protocol
//! zero      whether memory is zeros -------------------------------------------> as fast as memory
//! ```
//! Experiments, which make machines, switches and load of their own, are in `labs`: it uses this crate, and nothing here knows it. Nothing
//! here explains anything: what was recorded is read back by `trace` and `host` and answered by `analysis`.

pub mod apply;
pub mod clocks;
pub mod disk;
pub mod drive;
pub mod environment;
mod error;
pub mod flight;
#[cfg(target_arch = "x86_64")]
pub mod guest;
pub mod journal;
#[cfg(target_arch = "x86_64")]
pub mod memory;
pub mod moving;
pub mod program;
pub mod qmp;
pub mod random;
mod recorder;
pub mod setting;
pub mod snapshot;
pub mod tracefs;
pub mod trigger;
pub mod watch;
#[cfg(target_arch = "x86_64")]
pub mod zero;

pub use error::Error;
pub use recorder::Recorder;
