//! What a machine is: topology, memory, KVM's features, tasks and their pins, interrupts, NICs, domains.
//!
//! Everything is read from a snapshot, a directory that holds copies of `/proc` and `/sys` files. The live machine is a
//! snapshot taken a moment ago.
//!
//! ```text
//! FILES: which and why --> lab copies them --> <machine>/host/0/ --> Snapshot: what was there, what not, when
//! ```

pub mod cpuid;
pub mod error;
pub mod fired;
pub mod hypervisor;
pub mod parameters;
pub mod processor;
pub mod release;
pub mod sched;
pub mod snapshot;
pub mod virtualization;

pub use cpuid::Cpuid;
pub use error::Error;
pub use snapshot::Snapshot;
pub use virtualization::Virtualization;
