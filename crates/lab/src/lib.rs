//! The live side: recorders, guests, laboratories, and the journal that leaves a host as it was.
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
//! snapshot  copies of /proc and /sys, CPUID, domains --------------------------> host/0, host/1 of a recording
//! memory    what is in a guest's memory, looked at from outside --> shares, and what is dirtied
//! moving    a migration that somebody else makes, watched -----------------> sessions of QEMU's machine protocol
//! netns     client, forwarder and server in namespaces, with a fault ------------> bytes that arrived
//! search    trials at rates, until bounds are close ---> lower and upper bounds of NDR and PDR
//! ovs       Open vSwitch with DPDK and VNFs, private -------> packets that arrived, and where the others are
//! rt        a real-time guest, emulated, disturbed on purpose -> a recording of both, and the truth
//! vmx       what hypervisors of ours that use VMX share
//! zero      whether memory is zeros -------> about as fast as memory
//! nested    a host, its guest and the guest's guest, emulated -> a recording
//! ```
//! Nothing here explains anything: what was recorded is read back by `trace` and `host` and answered by `analysis`.

pub mod apply;
#[cfg(target_arch = "x86_64")]
pub mod bench;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod child;
pub mod clocks;
pub mod drive;
mod error;
#[cfg(target_arch = "x86_64")]
pub mod guest;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod interference;
pub mod journal;
#[cfg(target_arch = "x86_64")]
pub mod memory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod migrate;
pub mod moving;
pub mod nested;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod netns;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod ovs;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod packet_memory;
pub mod program;
pub mod qmp;
#[cfg(target_arch = "x86_64")]
mod random;
mod recorder;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod rt;
pub mod search;
pub mod setting;
pub mod snapshot;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod testpmd;
pub mod tracefs;
pub mod trigger;
#[cfg(target_arch = "x86_64")]
mod vmx;
mod watch;
#[cfg(target_arch = "x86_64")]
pub mod zero;

pub use error::Error;
pub use recorder::Recorder;
