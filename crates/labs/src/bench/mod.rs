//! What does an exit cost here, what does a clock read cost, and what does a whole program take?
//!
//! ```text
//! exits   guests of a few bytes on /dev/kvm, and the same instructions in this process --\
//! clock   every clock of the kernel, through the vDSO and through the system call ---------+--> base::Bench, a file
//! zeropages  whether pages are zeros, beside reading them --------------------------------+
//! gaps    a loop that reads the counter: when it did not run, in a guest or here -> pairs of readings
//! macro   any command, with KVM's counters around it --------------------------------------/
//! ```
//! Each launch is a process of its own ([`launch`]), because what one process measures again and again agrees with itself
//! better than with the next one. Nothing is computed here beyond the samples: `analysis::nesting` does that.

mod audit;
pub mod clock;
pub mod clocksource;
pub mod exits;
pub mod gaps;
pub mod irq;
pub mod launch;
pub mod priority;
pub mod probe;
pub mod sizing;
mod stats;
pub mod whole;
pub mod zeropages;

use launch::Launch;

/// Benches that measure in launches.
pub const LAUNCHES: [Launch; 3] = [exits::LAUNCH, clock::LAUNCH, zeropages::LAUNCH];
