//! Time and samples as stacks, from the VM down to a reason: what flame graphs are drawn from.

use super::State;
use std::collections::BTreeMap;

/// Frames, the outermost first, and what they weigh together.
pub type Stacks = BTreeMap<Vec<String>, u64>;

/// A vCPU's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VcpuStacks {
    /// VM.
    pub vm: String,
    /// Its vCPU.
    pub vcpu: u32,
    /// Sums by the state, as the timeline has it, and the reason of the exit that KVM or the VMM worked on; empty for all else.
    pub sums: BTreeMap<(State, String), StackSum>,
}

/// Time and stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackSum {
    /// Nanoseconds.
    pub time_ns: u64,
    /// Pieces.
    pub stays: u64,
}
