//! What a record hears of.

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// `kvm_entry`; the number of its vCPU.
    Entry = 1,
    /// `kvm_exit`; its reason.
    Exit,
    /// `kvm_userspace_exit`; the code of its reason.
    UserspaceExit,
    /// `kvm_fpu` that loads: KVM_RUN begins.
    RunBegins,
    /// `sched_switch`, the thread leaves; one of [`leaves`], and above it the CPU.
    SwitchOut,
    /// `sched_switch`, the thread comes.
    SwitchIn,
    /// The host does something on the thread's CPU, so that its guest does not run; one of [`over`].
    Host,
    /// `nmi_handler`; how long it took.
    Nmi,
    /// Events were lost because the queue was full.
    Gap,
    /// `sched_waking` of the thread, on any CPU. Only [`Word::Woken`](crate::layout::Word::Woken) changes.
    Woken,
    /// The record begins; the thread.
    Met,
    /// A task leaves a CPU, which stands in place of a record, while somebody waits there; the task.
    Leaves,
}

/// How a thread leaves its CPU.
pub mod leaves {
    pub const READY: u64 = 0;
    pub const ASLEEP: u64 = 1;
    /// By a signal or a debugger.
    pub const STOPPED: u64 = 2;
    pub const ENDED: u64 = 3;
}

/// All kinds.
const KINDS: [Kind; 12] = [
    Kind::Entry,
    Kind::Exit,
    Kind::UserspaceExit,
    Kind::RunBegins,
    Kind::SwitchOut,
    Kind::SwitchIn,
    Kind::Host,
    Kind::Nmi,
    Kind::Gap,
    Kind::Woken,
    Kind::Met,
    Kind::Leaves,
];

/// Bits of an argument that say which of several it is.
pub(crate) const CASE_BITS: u32 = 8;

/// What the host does on the CPU of a thread.
pub mod over {
    /// It wakes somebody, in the thread's own time or over it.
    pub const WAKES: u64 = 0;
    pub const IRQ_BEGINS: u64 = 1;
    pub const IRQ_ENDS: u64 = 2;
    pub const SOFTIRQ_BEGINS: u64 = 3;
    pub const SOFTIRQ_ENDS: u64 = 4;
}

/// Bits of an event's argument.
pub(crate) const ARGUMENT_BITS: u32 = 40;

/// One event, as it lies in a queue or a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// What, for which record, and what about it.
    pub word: u64,
}

impl Event {
    /// An event for record number `index`. Of `argument` [`ARGUMENT_BITS`] count.
    pub fn new(time_ns: u64, kind: Kind, index: u16, argument: u64) -> Self {
        let argument = argument & ((1 << ARGUMENT_BITS) - 1);
        Self { time_ns, word: (kind as u64) << 56 | u64::from(index) << ARGUMENT_BITS | argument }
    }

    /// Its kind; `None` for a word that is none.
    pub fn kind(self) -> Option<Kind> {
        let number = self.word >> 56;
        KINDS.into_iter().find(|kind| *kind as u64 == number)
    }

    /// Number of the record.
    pub fn index(self) -> u16 {
        (self.word >> ARGUMENT_BITS) as u16
    }

    /// What about it.
    pub fn argument(self) -> u64 {
        self.word & ((1 << ARGUMENT_BITS) - 1)
    }
}

/// States of a task in the field `prev_state` of `sched_switch` (include/linux/sched.h, Linux 4.14 to 6.18): bits of TASK_REPORT, and those that
/// stop or end it.
pub(crate) mod task {
    pub(crate) const REPORT: u64 = 0xff;
    pub(crate) const STOPS: u64 = 0x0c;
    pub(crate) const ENDS: u64 = 0x30;
}

/// How a thread leaves whose `prev_state` is this.
pub fn leaves_by(prev_state: u64) -> u64 {
    match prev_state {
        state if state & task::REPORT == 0 => leaves::READY,
        state if state & task::ENDS != 0 => leaves::ENDED,
        state if state & task::STOPS != 0 => leaves::STOPPED,
        _ => leaves::ASLEEP,
    }
}

/// Longest NMI that is told, and most vCPU numbers: what an argument has room for.
pub(crate) const MOST_ARGUMENT: u64 = (1 << ARGUMENT_BITS) - 1;
