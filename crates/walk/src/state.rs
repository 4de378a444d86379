//! In which state was a vCPU thread?
//!
//! ```text
//! on a CPU    Guest(level) -> Handling(level) -> Userspace          Irq, Softirq, Nmi lie over the last two
//!             HaltPoll: KVM spins instead of sleeping
//! off a CPU   Halted, Blocked --waking--> WakeDelay --> on again    Preempted: ready to run, somebody else runs
//! neither     Unknown: before the first evidence, across lost events
//! ```
//! For each thread every nanosecond of the recording lies in exactly one of them.

use base::Level;

/// A level as far as it is known while the trace is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TracedLevel {
    /// Before the thread's first sign of nesting; the end of the trace may settle it.
    Early,
    /// Entered on request before any `kvm_nested_vmexit`, and no event says whether the request was refused: 1 if that
    /// event turns out to be recorded, for then its silence tells, else 2.
    Asked,
    /// Lost with events that are missing; nothing can settle it.
    Lost,
    /// A guest of the recorded machine.
    L1,
    L2,
    L3,
    L4,
    /// A guest of that, and whatever is deeper.
    L5,
}

/// Deepest level told apart; a guest still deeper is counted there.
pub const DEEPEST: u8 = 5;

/// All, in the order of their places in arrays of [`LEVELS`] entries.
const ALL: [TracedLevel; LEVELS] = [
    TracedLevel::Early,
    TracedLevel::Asked,
    TracedLevel::Lost,
    TracedLevel::L1,
    TracedLevel::L2,
    TracedLevel::L3,
    TracedLevel::L4,
    TracedLevel::L5,
];

impl TracedLevel {
    /// A guest at `depth`: 1 for a guest of the recorded machine, 2 for a guest of that, ...
    #[inline]
    pub fn at(depth: u8) -> Self {
        ALL[TracedLevel::Lost.index() + usize::from(depth.clamp(1, DEEPEST))]
    }

    /// The depth, if the trace has told.
    #[inline]
    pub fn depth(self) -> Option<u8> {
        (self > TracedLevel::Lost).then(|| self as u8 - TracedLevel::Lost as u8)
    }

    /// True if the trace has not told.
    #[inline]
    pub fn is_open(self) -> bool {
        self <= TracedLevel::Lost
    }

    /// True for a guest of a guest, at any depth.
    #[inline]
    pub fn is_nested(self) -> bool {
        self > TracedLevel::L1
    }

    pub fn level(self) -> Level {
        self.depth().map_or(Level::Unknown, Level::At)
    }

    /// Position in arrays of [`LEVELS`] entries.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The inverse of [`TracedLevel::index`].
    pub fn of_index(index: usize) -> Self {
        ALL[index.min(LEVELS - 1)]
    }
}

/// Number of different [`TracedLevel`]s.
pub const LEVELS: usize = DEEPEST as usize + 3;

/// The states of the ledger (CONTRACTS section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    Guest(TracedLevel),
    /// KVM worked on an exit of a guest at that level.
    Handling(TracedLevel),
    /// The VMM ran outside KVM_RUN.
    Userspace,
    /// The host served an interrupt on the thread's CPU.
    Irq,
    /// The host served a softirq there.
    Softirq,
    /// The host served an NMI there.
    Nmi,
    /// The guest halted and KVM spun in case it wakes soon.
    HaltPoll,
    /// The guest halted and the thread slept.
    Halted,
    /// Woken, not yet running.
    WakeDelay,
    /// Ready to run while another task had the CPU.
    Preempted,
    /// Asleep for another reason than a halted guest.
    Blocked,
    /// The trace does not tell.
    Unknown,
}

/// States without a level, in the order of their places behind those with one.
pub const PLAIN: [State; 10] = [
    State::Userspace,
    State::Irq,
    State::Softirq,
    State::Nmi,
    State::HaltPoll,
    State::Halted,
    State::WakeDelay,
    State::Preempted,
    State::Blocked,
    State::Unknown,
];

/// Number of different states.
pub const STATES: usize = 2 * LEVELS + PLAIN.len();

impl State {
    /// True if the thread could have run, and had no CPU.
    pub fn is_waiting(self) -> bool {
        matches!(self, State::Preempted | State::WakeDelay)
    }

    /// True if the thread wanted to run and no guest code ran: the host worked on its exits or interrupts, or it waited.
    /// Polling is not, because the guest had halted.
    pub fn is_overhead(self) -> bool {
        let on_cpu = matches!(self, State::Handling(_) | State::Userspace | State::Irq | State::Softirq | State::Nmi);
        on_cpu || self.is_waiting()
    }

    /// Position in arrays of [`STATES`] entries.
    #[inline]
    pub fn index(self) -> usize {
        let plain = match self {
            State::Guest(level) => return level.index(),
            State::Handling(level) => return LEVELS + level.index(),
            State::Userspace => 0,
            State::Irq => 1,
            State::Softirq => 2,
            State::Nmi => 3,
            State::HaltPoll => 4,
            State::Halted => 5,
            State::WakeDelay => 6,
            State::Preempted => 7,
            State::Blocked => 8,
            State::Unknown => 9,
        };
        2 * LEVELS + plain
    }

    /// The inverse of [`State::index`].
    pub fn of_index(index: usize) -> Self {
        if index < LEVELS {
            State::Guest(TracedLevel::of_index(index))
        } else if index < 2 * LEVELS {
            State::Handling(TracedLevel::of_index(index - LEVELS))
        } else {
            PLAIN[(index - 2 * LEVELS).min(PLAIN.len() - 1)]
        }
    }

    /// True for time that neither the guest nor KVM could use: it is left out of the cost of an exit or a chain.
    #[inline]
    pub fn is_off(self) -> bool {
        matches!(self, State::Preempted | State::WakeDelay | State::Blocked | State::Halted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_one_state_and_every_state_one_place() {
        for index in 0..STATES {
            assert_eq!(State::of_index(index).index(), index);
        }
    }
}
