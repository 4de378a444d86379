//! The live side: recorders, guests, laboratories, and the journal that leaves a host as it was.
//!
//! ```text
//! journal   what is about to be changed, written first ---------------------> undo, after a kill -9 as well
//! recorder  tracefs, perf, LTTng: start -> stop -> parts of a recording
//! nested    a host, its guest and the guest's guest, emulated -> a recording
//! ```
//! Nothing here explains anything: what was recorded is read back by `trace` and `host` and answered by `analysis`.

pub mod error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod nested;
pub mod recorder;

pub use error::Error;
pub use recorder::Recorder;
