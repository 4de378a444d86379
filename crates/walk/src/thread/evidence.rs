//! What the recording has shown so far, and what in it was doubtful.

/// What the whole recording has shown so far; it decides which witness can be heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// A `kvm_nested_vmexit`: W2 can be heard.
    pub nested_vmexit: bool,
    /// An injection: W1 can be heard.
    pub inject: bool,
    /// A nested entry event: an entry without one is not nested.
    pub nested_entry: bool,
    /// A `kvm_vcpu_wakeup`, or that the trace describes it: polling can be told from handling.
    pub wakeup: bool,
    /// A `sched_switch`, or that the trace describes it: who leaves a CPU is told.
    pub switches: bool,
    /// A `kvm_exit`, or that one fires later in the trace: what a thread does in KVM_RUN can be told.
    pub exit: bool,
    /// A `sched_waking`: a sleep that ends without one is not all sleep.
    pub waking: bool,
    /// An exit by an instruction that only hypervisors execute.
    pub virtualization: bool,
}

impl Seen {
    /// True if nothing nested was seen at all.
    pub fn nothing_nested(&self) -> bool {
        !(self.nested_vmexit || self.inject || self.nested_entry || self.virtualization)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Doubts {
    /// The two witnesses disagreed.
    pub level_conflicts: u64,
    pub(crate) refused_entries: u64,
    /// Two `kvm_entry` in a row.
    pub(crate) entry_entry: u64,
    /// `kvm_exit` without a `kvm_entry` before it.
    pub unseen_entries: u64,
    /// A thread's clock stepped back.
    pub clock_skew: u64,
    /// A nested entry without VMRUN or VMRESUME: state was restored.
    pub restored: u64,
    /// An event of a thread that was not on a CPU.
    pub unseen_switches: u64,
    /// KVM events of threads beyond [`MOST_THREADS`](super::MOST_THREADS).
    pub crowded: u64,
}
