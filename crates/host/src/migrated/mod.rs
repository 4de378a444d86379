//! What people have of a live migration: text that QEMU and libvirt print, and the command line that says what stands in its way.
//!
//! ```text
//! account        virsh domjobinfo [--completed], or `info migrate` of QEMU's monitor    sums of the whole migration
//! forms          query-migrate as JSON or by Python; logs of KubeVirt, Cloud Hypervisor, Proxmox          the same sums
//! downtime_log   -trace 'vmstate_downtime*' of QEMU 8.2 or later, on either side        each device, to the microsecond
//! obstacles      /proc/PID/cmdline                                                      what keeps that guest from being moved
//! ```
//! In: text, as it was printed, saved or pasted: lines of other things in between are passed over. Out: numbers; what was not
//! printed is missing and not 0.

pub mod account;
pub mod downtime_log;
pub mod forms;
mod kubevirt;
pub mod obstacles;
mod proxmox;

pub use account::Account;
pub use downtime_log::Side;
