//! Where does the time of vCPUs go, right now? Folded while it passes, in the kernel, without a trace.
//!
//! ```text
//! rules (a table) --emit--> programs of BPF --bpf(2)--> records and rows in maps --mmap--> Reading, Reading, .. -> differences
//!               \--interpret--> the same of a ring of events, of a recording, of a test
//! ```
//! Each vCPU thread has a record in which every nanosecond since it was met is in one state, and a row for each reason of its exits. Events that
//! this kernel does not have, or does not let us have, are left out and named. Nothing stays in the kernel when the process ends, however it ends:
//! programs go with their descriptors.
//!
//! Needs x86-64 and Linux 5.12 (atomic operations with results), root or CAP_BPF and CAP_PERFMON, and the tracing file system, whose files say
//! where fields lie; no compiler and no BTF.

mod asm;
mod emit;
mod event;
mod format;
mod interpret;
mod layout;
mod rules;
mod session;
mod sys;
mod totals;

pub use event::{Event, Kind, leaves, leaves_by, over};
pub use interpret::{Fold, Taken};
pub use layout::{FAILED, RECORD_WORDS, ROW_WORDS, STATES, State, Word, off};
pub use session::{Bench, Cost, Error, Hook, Missing, Options, Session};
pub use sys::now_ns;
pub use totals::{Bins, Reading, Reason, Taker, ThreadReading, Totals};

/// How many programs of this name the kernel has, whoever loaded them.
///
/// # Errors
/// If the kernel refuses.
#[doc(hidden)]
pub fn loaded_programs() -> std::io::Result<usize> {
    sys::loaded_programs()
}
