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
use std::hash::{Hash, Hasher};

/// A level as far as it is known while the trace is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lv {
    /// Known: 1 for a guest of the recorded machine, 2 for a guest of that, ...
    At(u8),
    /// Before the thread's first sign of nesting; the end of the trace may settle it.
    Early,
    /// Entered on request before any `kvm_nested_vmexit`, and no event says whether the request was refused: 1 if that
    /// event turns out to be recorded, for then its silence tells, else 2.
    Asked,
    /// Lost with events that are missing; nothing can settle it.
    Lost,
}

/// Deepest level told apart; a guest still deeper is counted there.
pub const DEEPEST: u8 = 5;

impl Lv {
    /// A nested guest at `depth`.
    pub fn at(depth: u8) -> Self {
        Lv::At(depth.min(DEEPEST))
    }

    /// True if the trace has not told.
    #[inline]
    pub fn is_open(self) -> bool {
        !matches!(self, Lv::At(_))
    }

    /// True for a guest of a guest, at any depth.
    #[inline]
    pub fn is_nested(self) -> bool {
        matches!(self, Lv::At(depth) if depth > 1)
    }

    /// The level for people.
    pub fn level(self) -> Level {
        match self {
            Lv::At(depth) => Level::At(depth),
            Lv::Early | Lv::Asked | Lv::Lost => Level::Unknown,
        }
    }

    /// Position in arrays of [`LEVELS`] entries.
    #[inline]
    pub fn index(self) -> usize {
        match self {
            Lv::Early => 0,
            Lv::Asked => 1,
            Lv::Lost => 2,
            Lv::At(depth) => usize::from(depth.clamp(1, DEEPEST)) + 2,
        }
    }

    /// The inverse of [`Lv::index`].
    pub fn of_index(index: usize) -> Self {
        match index {
            0 => Lv::Early,
            1 => Lv::Asked,
            2 => Lv::Lost,
            depth => Lv::at((depth - 2) as u8),
        }
    }
}

impl Hash for Lv {
    /// One word instead of a field at a time: every exit looks its level up.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.index() as u64);
    }
}

/// Number of different [`Lv`]s.
pub const LEVELS: usize = DEEPEST as usize + 3;

/// The states of the ledger (CONTRACTS section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Guest code ran.
    Guest(Lv),
    /// KVM worked on an exit of a guest at that level.
    Handling(Lv),
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
const PLAIN: [State; 10] = [
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
            State::Guest(Lv::of_index(index))
        } else if index < 2 * LEVELS {
            State::Handling(Lv::of_index(index - LEVELS))
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
