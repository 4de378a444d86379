//! What a machine is: topology, memory, KVM's features, tasks and their pins, interrupts, NICs, domains.
//!
//! Everything is read from a snapshot, a directory that holds copies of `/proc` and `/sys` files, or from text that people
//! paste. The live machine is a snapshot taken a moment ago.
//!
//! ```text
//! FILES: which and why --> lab copies them --> <machine>/host/0/ --> Snapshot: what was there, what not, when
//!                                                                      |--> Virtualization: KVM's features
//! tickets, terminals --> paste --------------------------------------->|--> Machine: who runs where
//! ```

pub mod budget;
pub mod configuration;
pub mod cpuid;
mod error;
pub mod fired;
pub mod hypervisor;
mod identity;
pub mod kernel_log;
pub mod machine;
pub mod migrated;
pub mod parameters;
pub mod paste;
pub mod pci;
pub mod polled;
pub mod processor;
pub mod release;
pub mod sched;
pub mod smi;
pub mod snapshot;
pub mod timing;
pub mod usage;
mod virtualization;

pub use cpuid::Cpuid;
pub use error::Error;
pub use identity::identity;
pub use kernel_log::KernelLog;
pub use machine::Machine;
pub use snapshot::Snapshot;
pub use timing::Timing;
pub use virtualization::Virtualization;
