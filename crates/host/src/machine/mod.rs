//! Who runs where on a machine: CPUs, threads and their pins, domains, NICs, interrupts.
//!
//! In: a snapshot ([`Machine::of_snapshots`]) or text that people paste ([`crate::paste`]). Out: a `Machine`, in which a
//! fact that nobody told is missing and never a default, and each fact knows the file or line that told it.
//! ```text
//! proc, sys, domain XML ---\
//!                           >--> Machine: topology, threads, domains, nics, irqs, screens, settings
//! pasted text, any mix  ---/
//! ```

pub(crate) mod command_line;
mod complaint;
mod containers;
mod devices;
mod domain;
mod domain_xml;
mod files;
mod gauge;
mod groups;
mod guest_counters;
mod manager;
mod model;
pub(crate) mod ovsdb;
mod processes;
mod roles;
mod switch;
mod topology;
pub(crate) mod xml_bounds;

pub use command_line::NAMED_OR_HOST_MODEL;
pub(crate) use command_line::domain_of;
pub use complaint::{COMPLAINTS, Complaint, ComplaintKind};
pub use containers::Container;
pub use devices::{Cgroup, Channel, Irq, Nic, NicKind, Quota, Steering, Throttled, Throughput};
pub use domain::{Balloon, Disk, Domain, GuestCell, GuestTopology, Interface, Nova};
pub use domain_xml::{Element, domains_of};
pub(crate) use gauge::LISTED;
pub use gauge::{DiskLimit, DiskLimitKind, DiskMove, Gauge, GaugeKind, Quoted};
pub use groups::{Parting, QUOTA_PERIOD_US, is_within_group, own_unit, parted, quota_line, unit_of};
pub use guest_counters::guest_counters;
pub use manager::Manager;
pub use model::{CpuUse, Fact, Holder, Machine, Node, ProcessMemory, Role, Screen, Thread, TopRow, TotalUse};
pub use processes::vm_processes;
pub(crate) use roles::{ALL_VCPUS, small_monitor};
pub use roles::{role_of, vm_named_in};
pub use switch::{Bridge, Pmd, PmdQueue, PortCounters, Switch, SwitchPort};
pub(crate) use topology::booted_cpus;
pub use topology::{Cpu, Topology};
