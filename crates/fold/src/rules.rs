//! What an event does to a record: the state machine of a vCPU thread, as data.
//!
//! Rules of an event's kind are looked at in their order; each whose conditions hold, at that moment, is carried out. `interpret` does that with
//! Rust, `emit` with BPF. Rules R3, T4 to T7, T12 to T17 and T21 of docs/flow.md are here; they equal `walk::thread`, and a test holds that over
//! all recordings.

use crate::event::{Kind, leaves, over};
use crate::layout::Word::{self, *};
use crate::layout::{State, irq, mode, off};

/// A condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// A word has this value.
    Is(Word, u64),
    /// The event's argument is this of several.
    Argument(u64),
    /// A `kvm_exit` has fired on this host.
    ExitsFire,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Set(Word, u64),
    SetBit(Word, u64),
    ClearBit(Word, u64),
    /// The first word becomes the second.
    Copy(Word, Word),
    /// One more.
    Count(Word),
    /// The word becomes the event's time.
    Stamp(Word),
    /// The thread is on a CPU; if its record says that it is not, and an event came before, it was missed.
    Arrive,
    /// Its story has a hole: up to its last event it did what it did, from then on nothing is known.
    Miss,
    /// The piece that is not over ends now, as what the record says.
    Close,
    /// It ends when the last event was.
    CloseAtLast,
    /// It ends now, as that.
    CloseAs(State),
    /// It ends when the NMI began that the argument tells the length of; the rest is that NMI.
    CloseNmi,
    /// The thread got a CPU: a sleep is split where it was woken; one that nobody ended is unknown.
    Wake,
    /// An exit begins, for the reason that the argument says.
    OpenExit,
    /// The exit that is open, if any, is over, at an entry that was seen,
    FinishExit,
    /// or not.
    DropExit,
    /// The VMM was returned to, for the reason that the argument says.
    CountVmm,
    /// The argument is the number of the vCPU.
    Number,
    /// An exit has been seen on this host.
    SeeExit,
    /// It waits for the CPU that the argument says.
    Wait,
    /// One vCPU more of its VM has a CPU,
    Come,
    /// or one less.
    Leave,
    /// Its wait is over: how long another vCPU of its VM had a CPU meanwhile.
    Tear,
}

/// What one kind of event does under some conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) on: Kind,
    pub(crate) when: &'static [Guard],
    pub(crate) then: &'static [Action],
}

use Action::*;
use Guard::{Argument, ExitsFire, Is};

const fn rule(on: Kind, when: &'static [Guard], then: &'static [Action]) -> Rule {
    Rule { on, when, then }
}

/// R3: the host works on the thread's CPU, so its guest had stopped.
const STOP_GUEST: &[Action] = &[Close, Set(Mode, mode::KVM), Set(Pending, 1)];

/// All rules.
pub(crate) const RULES: &[Rule] = &[
    // T4, T5.
    rule(Kind::Entry, &[], &[Number, Arrive, Close]),
    rule(Kind::Entry, &[Is(Mode, mode::GUEST)], &[Count(DoubleEntries)]),
    rule(Kind::Entry, &[], &[FinishExit, Set(Mode, mode::GUEST), Set(Pending, 0)]),
    // T7: an entry was not seen, so nothing tells when the guest began to run.
    rule(
        Kind::Exit,
        &[Is(Off, off::ON), Is(Mode, mode::USER)],
        &[Count(UnseenEntries), CloseAtLast, CloseAs(State::Unknown)],
    ),
    rule(
        Kind::Exit,
        &[Is(Off, off::ON), Is(Mode, mode::KVM), Is(Pending, 0)],
        &[Count(UnseenEntries), CloseAtLast, CloseAs(State::Unknown)],
    ),
    // T6.
    rule(Kind::Exit, &[], &[Arrive, Close, DropExit, OpenExit, SeeExit, Set(Mode, mode::KVM), Set(Pending, 0)]),
    // T12. A reason is told once KVM_RUN is over; what it did is not, where nothing else was seen.
    rule(Kind::UserspaceExit, &[], &[Arrive, Close, CountVmm, Set(Blind, 0)]),
    rule(Kind::UserspaceExit, &[Is(ExitOpen, 1)], &[Set(ToVmm, 1)]),
    rule(Kind::UserspaceExit, &[Is(Mode, mode::UNKNOWN)], &[Set(Blind, 1)]),
    rule(Kind::UserspaceExit, &[], &[Set(Mode, mode::USER), Set(Pending, 0)]),
    // T21: where entries and exits are silent, KVM_RUN is unknown.
    rule(Kind::RunBegins, &[Is(Blind, 1), Is(Mode, mode::USER)], &[Arrive, Close, Set(Mode, mode::UNKNOWN)]),
    // T13 to T15.
    rule(Kind::SwitchOut, &[], &[Arrive, Copy(SleptFrom, Last)]),
    rule(Kind::SwitchOut, &[Is(Mode, mode::GUEST)], STOP_GUEST),
    rule(Kind::SwitchOut, &[], &[Close, Set(Irq, 0), Leave]),
    rule(Kind::SwitchOut, &[Argument(leaves::READY)], &[Set(Off, off::PREEMPTED), Wait]),
    rule(Kind::SwitchOut, &[Argument(leaves::ENDED)], &[Set(Off, off::ENDED)]),
    rule(Kind::SwitchOut, &[Argument(leaves::STOPPED)], &[Set(Off, off::BLOCKED)]),
    rule(Kind::SwitchOut, &[Argument(leaves::ASLEEP)], &[Set(Off, off::BLOCKED)]),
    rule(
        Kind::SwitchOut,
        &[Argument(leaves::ASLEEP), Is(Mode, mode::KVM), Is(Pending, 0), Is(Halt, 1)],
        &[Set(Off, off::HALTED)],
    ),
    rule(
        Kind::SwitchOut,
        &[Argument(leaves::ASLEEP), Is(Mode, mode::UNKNOWN), Is(Lost, 1), ExitsFire],
        &[Set(Off, off::ASLEEP)],
    ),
    // T16, T17.
    rule(Kind::SwitchIn, &[Is(Off, off::ON)], &[Miss, Leave]),
    rule(Kind::SwitchIn, &[Is(Off, off::PREEMPTED)], &[Stamp(WaitTo), Tear]),
    rule(Kind::SwitchIn, &[], &[Wake]),
    rule(Kind::SwitchIn, &[Is(Off, off::WAKING)], &[Tear]),
    rule(Kind::SwitchIn, &[], &[Close, Set(Off, off::ON), Come]),
    // R3, and what lies over a thread.
    rule(Kind::Host, &[Is(Off, off::ON), Is(Mode, mode::GUEST)], STOP_GUEST),
    rule(Kind::Host, &[Is(Off, off::ON)], &[Close]),
    rule(Kind::Host, &[Is(Off, off::ON), Argument(over::IRQ_BEGINS)], &[SetBit(Irq, irq::IRQ)]),
    rule(Kind::Host, &[Is(Off, off::ON), Argument(over::IRQ_ENDS)], &[ClearBit(Irq, irq::IRQ)]),
    rule(Kind::Host, &[Is(Off, off::ON), Argument(over::SOFTIRQ_BEGINS)], &[SetBit(Irq, irq::SOFTIRQ)]),
    rule(Kind::Host, &[Is(Off, off::ON), Argument(over::SOFTIRQ_ENDS)], &[ClearBit(Irq, irq::SOFTIRQ)]),
    rule(Kind::Nmi, &[Is(Off, off::ON)], &[CloseNmi]),
    rule(Kind::Nmi, &[Is(Off, off::ON), Is(Mode, mode::GUEST)], &[Set(Mode, mode::KVM), Set(Pending, 1)]),
    rule(Kind::Gap, &[Is(Off, off::ON)], &[Miss]),
    rule(Kind::Gap, &[], &[Set(Lost, 1)]),
];

/// Reasons that say that the guest has nothing to do: HLT, MWAIT and their like, by instruction set (VMX is 1, SVM 2 in the field `isa`) and code:
/// Intel SDM vol. 3 appendix C, AMD APM vol. 2 appendix C.
pub(crate) const HALTS: &[(u8, u32)] = &[(1, 12), (1, 36), (2, 0x78), (2, 0x8b), (2, 0x8c), (2, 0xa6)];

/// The instruction set of which only 16 bits are the reason, the rest flags (Intel SDM vol. 3, 25.9.1).
pub(crate) const VMX: u8 = 1;
