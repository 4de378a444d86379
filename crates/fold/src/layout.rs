//! What lies where: the record of one vCPU thread, the row of one reason, and what all of them share.
//!
//! ```text
//! record   words of 64 bits: identity, state machine, counts | ns of each state | bins of wake-ups | queue of 16 events
//! row      words of 64 bits: whose, which reason, sums       | bins of costs
//! ```
//! The kernel's programs, the interpreter and whoever reads the maps use the same words, so that two of them can be compared bit for bit.

/// A word of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Word {
    /// Odd while a program changes the record.
    Seq,
    /// A program is at work on it, and others have to queue.
    Busy,
    /// The thread.
    Tid,
    /// Its process.
    Tgid,
    /// When the record began, on CLOCK_MONOTONIC; what the thread did before is in no state.
    Met,
    /// Number of its vCPU and 1, or 0 while no event told.
    Vcpu,
    /// What it does when it has a CPU: [`mode`].
    Mode,
    /// Why it has none: [`off`].
    Off,
    /// What of the host lies over it: [`irq`].
    Irq,
    /// The guest has stopped and its `kvm_exit` has not come yet.
    Pending,
    /// It came back from KVM_RUN, and nothing had told what it did there.
    Blind,
    /// Its last exit says that the guest halted.
    Halt,
    /// Its story has a hole.
    Lost,
    /// An exit is being handled.
    ExitOpen,
    /// For which reason: see [`exit_key`].
    ExitKey,
    /// Since when.
    ExitAt,
    /// What [`Word::OffNs`] was then.
    OffBefore,
    /// The VMM takes part in it.
    ToVmm,
    /// When the piece of time began that is not over.
    Since,
    /// When its last event was.
    Last,
    /// When it was woken last. Another CPU writes it.
    Woken,
    /// When its last event before the sleep was: a waking since then ends that sleep.
    SleptFrom,
    /// How long it was pre-empted, asleep or woken so far.
    OffNs,
    /// When it began to wait for a CPU, pre-empted: a wait is known by it.
    WaitFrom,
    /// When it got one again.
    WaitTo,
    /// Number of its VM; 0 is none.
    Vm,
    /// What [`busy`] said of the VM when the thread left its CPU,
    BusyFrom,
    /// and when it was woken last. Another CPU writes it.
    BusyWoken,
    /// Ready while another vCPU of its VM had a CPU.
    TornNs,
    /// Events it took.
    Events,
    /// How often it was found somewhere else than its events said.
    Missed,
    /// How often its clock stepped back.
    Skew,
    /// `kvm_exit` without a `kvm_entry` before it.
    UnseenEntries,
    /// Two `kvm_entry` in a row.
    DoubleEntries,
    /// Events that found the queue full,
    QueueLost,
    /// and as many of them as it knows of.
    QueueSeen,
    /// Exits that no row was left for.
    RowsLost,
    /// Wake-ups that ended with a CPU.
    Wakeups,
    /// The longest of them.
    WakeMax,
    /// Events of its queue that were taken out,
    QueueHead,
    /// and put in.
    QueueTail,
}

/// Words before the states.
const HEAD: usize = 48;

/// States of the ledger, in the order of their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// In its guest.
    Guest,
    /// KVM works on an exit.
    Handling,
    /// The VMM, outside KVM_RUN.
    Userspace,
    /// An interrupt of the host.
    Irq,
    /// A softirq of the host.
    Softirq,
    /// An NMI of the host.
    Nmi,
    /// Ready, and another task has the CPU. It and what follows are in the order of [`off`].
    Preempted,
    /// Asleep after the guest halted.
    Halted,
    /// Asleep for another reason.
    Blocked,
    /// Woken, and not yet on a CPU.
    WakeDelay,
    /// Nothing tells.
    Unknown,
}

/// All states.
pub const STATES: [State; 11] = [
    State::Guest,
    State::Handling,
    State::Userspace,
    State::Irq,
    State::Softirq,
    State::Nmi,
    State::Preempted,
    State::Halted,
    State::Blocked,
    State::WakeDelay,
    State::Unknown,
];

/// Values of [`Word::Mode`].
pub(crate) mod mode {
    pub(crate) const UNKNOWN: u64 = 0;
    pub(crate) const GUEST: u64 = 1;
    pub(crate) const KVM: u64 = 2;
    pub(crate) const USER: u64 = 3;
}

/// Values of [`Word::Off`]. Up to [`WAKING`](off::WAKING) no cost of an exit contains that time.
pub mod off {
    /// It has a CPU.
    pub const ON: u64 = 0;
    pub const PREEMPTED: u64 = 1;
    pub const HALTED: u64 = 2;
    pub const BLOCKED: u64 = 3;
    pub const WAKING: u64 = 4;
    /// Asleep, and the event that would tell why is lost.
    pub const ASLEEP: u64 = 5;
    /// No event has come yet.
    pub const UNSEEN: u64 = 6;
    pub const ENDED: u64 = 7;
}

/// Bits of [`Word::Irq`].
pub(crate) mod irq {
    pub(crate) const IRQ: u64 = 1;
    pub(crate) const SOFTIRQ: u64 = 2;
}

/// Room for states, a power of two, so that the verifier sees that a place lies inside.
pub(crate) const STATE_ROOM: usize = 16;

/// Counters of 32 bits, two for each doubling, as [`bin`] numbers them.
pub(crate) const BINS: usize = 84;

/// Events that wait while a program is at work on the record they are for.
pub(crate) const QUEUE: usize = 16;

pub(crate) const NS_AT: usize = HEAD;
pub(crate) const WAKE_BINS_AT: usize = NS_AT + STATE_ROOM;
pub(crate) const QUEUE_AT: usize = WAKE_BINS_AT + BINS / 2;

/// Words of a record.
pub const RECORD_WORDS: usize = QUEUE_AT + 2 * QUEUE;

/// A word of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RowWord {
    /// Number of the record; 0 is nobody's.
    Owner,
    /// [`exit_key`] or [`vmm_key`].
    Key,
    Count,
    /// Those whose next entry was not seen.
    Clipped,
    /// Those in which the VMM took part.
    ToVmm,
    /// What those that are not clipped cost,
    Sum,
    /// and the longest of them.
    Max,
}

pub(crate) const ROW_BINS_AT: usize = 8;

/// Words of a row.
pub const ROW_WORDS: usize = ROW_BINS_AT + BINS / 2;

/// A word of the row of a taker: who had a CPU while a vCPU was ready for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TakerWord {
    /// Number of the record of the vCPU; 0 is nobody's.
    Owner,
    /// The task.
    Tid,
    /// Its name when it was met, 16 bytes.
    Comm,
    CommEnd,
    /// Waits that began when it took the CPU.
    Count,
    Sum,
    /// The longest piece.
    Max,
}

/// Words of the row of a taker.
pub(crate) const TAKER_WORDS: usize = 8;

pub(crate) const MOST_TAKERS: usize = 16384;

/// Threads that may wait on one CPU at a time; what others wait for is nobody's.
pub(crate) const WAITERS: usize = 8;

/// A word of the slot of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SlotWord {
    /// Number of the record of the thread that was seen there last.
    Current,
    /// When the task came that is there, as far as somebody waits.
    Since,
    /// How many wait.
    Waiting,
    /// The task that is there, as far as somebody waits.
    Task,
    /// For each that waits, the number of its record with [`FIRST`], and when it began to.
    Waiters,
}

pub(crate) const SLOT_WORDS: usize = 32;

/// Nobody has been charged yet for this wait.
pub(crate) const FIRST: u64 = 1 << 32;

/// Words that all programs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Shared {
    /// Records that were given out, the first one to nobody.
    Records,
    /// Threads that found none left.
    RecordsLost,
    /// Rows that were given out, the first one to nobody.
    Rows,
    /// A `kvm_exit` has fired.
    SeenExit,
    /// Rows of takers that were given out, the first one to nobody.
    Takers,
    /// Charges that no row was left for.
    TakersLost,
    /// VMs that were given numbers, the first one to nobody.
    Vms,
}

pub(crate) const SHARED_WORDS: usize = 8;

/// Most VMs, which are processes.
pub(crate) const MOST_VMS: usize = 1024;

/// One word of a VM says how many of its vCPUs have a CPU, and below these bits for how long at least one has had: all times at which the last
/// one lost it, less those at which the first one got it, modulo 208 days.
pub(crate) const BUSY_BITS: u32 = 54;
pub(crate) const BUSY_MASK: u64 = (1 << BUSY_BITS) - 1;

/// For how long at least one vCPU of a VM has had a CPU, up to `now_ns`, since some moment: differences count, modulo 208 days.
pub(crate) fn busy(word: u64, now_ns: u64) -> u64 {
    let since = if word >> BUSY_BITS > 0 { now_ns } else { 0 };
    word.wrapping_add(since) & BUSY_MASK
}

/// Most vCPU threads, most rows of reasons. KVM itself allows 1,024 vCPUs a VM (KVM_MAX_VCPUS, Linux 6.12).
pub(crate) const MOST_RECORDS: usize = 1024;
pub(crate) const MOST_ROWS: usize = 16384;

/// Thread ids end below (PID_MAX_LIMIT of 64-bit kernels, include/linux/threads.h, Linux 6.12).
pub(crate) const MOST_TIDS: usize = 1 << 22;

/// The reason of a `kvm_exit`: instruction set, code.
pub(crate) const fn exit_key(isa: u8, code: u32) -> u64 {
    (isa as u64) << 32 | code as u64
}

/// What distinguishes keys of exits to the VMM from those of exits of the guest.
pub(crate) const VMM_CLASS: u64 = 0x100;

/// The reason of a `kvm_userspace_exit`: KVM_EXIT_*, or [`FAILED`] and the number of the error that KVM_RUN ended with.
pub(crate) const fn vmm_key(code: u32) -> u64 {
    VMM_CLASS << 32 | code as u64
}

/// Set in the code of a [`vmm_key`] where KVM_RUN failed: the reason beside the error is an old one.
pub const FAILED: u32 = 1 << 31;

/// The counter of a length: each doubling in two halves, as [`bin_from`] says.
pub(crate) fn bin(ns: u64) -> usize {
    let digits = ns.checked_ilog2().unwrap_or(0);
    let half = if digits == 0 { ns } else { ns >> (digits - 1) & 1 };
    ((2 * digits) as usize + half as usize).min(BINS - 1)
}

/// The least length that a counter counts. Those of the last one have no upper bound.
pub(crate) fn bin_from(bin: usize) -> u64 {
    let (digits, half) = (bin / 2, bin as u64 % 2);
    match digits {
        0 => half,
        _ => (2 | half) << (digits - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_lies_in_its_bin() {
        for ns in (0..5000).chain([1 << 40, (1 << 41) - 1, 1 << 41]) {
            let bin = bin(ns);
            assert!(bin_from(bin) <= ns && (bin + 1 == BINS || ns < bin_from(bin + 1)), "{ns} in {bin}");
        }
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn the_words_of_a_record_do_not_overlap() {
        assert!((Word::QueueTail as usize) < HEAD && STATES.len() <= STATE_ROOM);
        assert_eq!(STATES.map(|state| state as usize), std::array::from_fn(|place| place));
        assert_eq!(State::Preempted as u64 + off::WAKING - off::PREEMPTED, State::WakeDelay as u64);
    }
}
