//! Experiments: machines, switches, load and faults of our own, made to be measured, and benches.
//!
//! ```text
//! machine   boots things: a kernel, this program as the first process, an emulator ---> what it left on its disk
//! nested    a host, its guest and the guest's guest, emulated -> a recording
//! rt        a real-time guest, emulated, disturbed on purpose -> a recording of both, and the truth
//! netns     client, forwarder and server in namespaces, with a fault ------------> bytes that arrived
//! ovs       Open vSwitch with DPDK and VNFs, private -------> packets that arrived, and where the others are
//! migrate   live migrations between two QEMUs, predicted before ------------> sessions, and what packets saw
//! bench     exits, clocks, interrupts, timers, whole programs --------------> base::Bench, a file
//! search    trials at rates, until bounds are close ---> lower and upper bounds of NDR and PDR
//! vmx       what hypervisors of ours that use VMX share      machine_code  code of ours that runs in guests
//! ```
//! What they do to a host goes through the journal of `lab`, which never knows them. Nothing here explains anything: what was recorded is
//! answered by `analysis`.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

pub mod bench;
pub mod child;
mod interference;
pub mod machine;
mod machine_code;
pub mod migrate;
pub mod nested;
pub mod netns;
pub mod ovs;
pub mod packet_memory;
pub mod rt;
pub mod search;
pub mod testpmd;
mod vmx;

use machine::inside::Work;

/// What the first process of a machine can do, a line for each lab that boots one.
pub const WORKS: [Work; 3] = [nested::inside::LEVEL, netns::router::ROUTE, rt::measurement::MEASURE];
