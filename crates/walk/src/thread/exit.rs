//! One exit of a guest, from its `kvm_exit` to the next `kvm_entry`.

use crate::events::details::Detail;
use crate::events::reasons::{Class, Reason};
use crate::state::TracedLevel;

#[derive(Debug, Clone, Copy)]
pub struct Exit {
    /// When the guest stopped.
    pub at_ns: u64,
    pub reason: Reason,
    pub level: TracedLevel,
    /// Where it stopped, where the trace tells.
    pub rip: Option<u64>,
    pub detail: Detail,
    /// Until the next entry, without time off the CPU; `None` if that entry was not seen.
    pub cost_ns: Option<u64>,
    pub handled: Handled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Handled {
    /// KVM alone.
    Kernel,
    /// The VMM, after KVM.
    Userspace,
    Reflected,
}

/// An exit that is being handled.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenExit {
    pub exit: Exit,
    pub class: Class,
    /// Time off the CPU before it.
    pub(crate) off_before_ns: u64,
    /// No positional event has followed yet.
    pub(crate) unresolved: bool,
}

/// Positional events: those that resolve an open exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// `kvm_entry`, `kvm_exit`, `kvm_userspace_exit`, `kvm_nested_vmenter`.
    Other,
    /// `kvm_nested_vmexit`.
    NestedVmexit,
    /// `kvm_nested_vmexit_inject`.
    Inject,
}
