//! Guests whose every exit is known beforehand: a hypervisor L1 of some hundred bytes and an L2 of some ten.
//!
//! ```text
//! 0x02000  page tables: the first 4 MiB, each address at itself        0x10000  L1's code
//! 0x08000 + 8 v  rounds left of vCPU v                                 0x30000  L2's code
//! 0x20000 ..  per vCPU: VMCB and host save area, or VMCS, VMXON area and a table of fields
//! 0x60000 - 0x1000 v  end of L1's stack; L2's lies 0x10000 lower
//! ```
//! Each round L2 does one thing that L1 handles, and L1 does the same for it. An exit with a guest RIP inside
//! `L2_CODE` is L2's, any other L1's: that is the truth against which levels are scored. The code is assembled by the
//! compiler, see `svm.rs` and `vmx.rs`.

mod memory;
mod svm;
mod vmm;
mod vmx;

use super::settings::{Arch, Settings, Workload};
use lab::Error;
use serde::{Deserialize, Serialize};
use std::ops::Range;

const PAGE_TABLES: u64 = 0x2000;
const ROUNDS: u64 = 0x8000;
const L1_CODE: u64 = 0x10000;
const CONTROL_BLOCKS: u64 = 0x20000;
/// Where L2's code lies.
pub(crate) const L2_CODE: Range<u64> = 0x30000..0x31000;
const L1_STACK: u64 = 0x60000;
const L2_STACK: u64 = 0x50000;
const PORT: u8 = 0x11;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// First and last-plus-one address of L1's code.
    pub l1_code: (u64, u64),
    /// The same of L2's.
    pub l2_code: (u64, u64),
    pub rounds: u32,
    pub vcpus: u32,
    /// The reason with which L1 gets L2's exit, once a round.
    pub reflected: String,
    /// L1's exits from there to L2's re-entry, in order.
    pub chain: Vec<String>,
    /// The exit that L2 makes once a round and that L0 keeps from L1, if any.
    pub kept: Option<String>,
}

/// Code of L2: one thing, again and again.
fn l2_code(workload: Workload) -> Vec<u8> {
    match workload {
        // xor eax,eax; cpuid; out PORT,al; jmp -8
        Workload::Cpuid => vec![0x31, 0xc0, 0x0f, 0xa2, 0xe6, PORT, 0xeb, 0xf8],
        // out PORT,al; jmp -4
        _ => vec![0xe6, PORT, 0xeb, 0xfc],
    }
}

/// Runs the guests on `/dev/kvm` until each vCPU has done its rounds.
///
/// # Errors
/// If KVM is not there or refuses, or if a guest does anything but what it is made for.
pub fn run(settings: &Settings) -> Result<Truth, Error> {
    match settings.arch {
        Arch::Svm => vmm::run::<svm::Svm>(settings),
        Arch::Vmx => vmm::run::<vmx::Vmx>(settings),
    }
}
