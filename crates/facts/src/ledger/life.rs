//! What of a vCPU thread's time is its guest's, and what its VMM spent before the guest ran and after it ended.
//!
//! ```text
//! thread:  VMM sets up, waits, loads | exit entry exit entry .. exit | VMM ends
//!          outside                   | the guest's life              | outside, if the thread ended
//! ```
//! A guest that is still there at the end of a trace may be waiting, so what follows its last exit is its own. Snapshots of
//! the sums tell both: nothing is added up twice while a guest runs.

use super::model::Sums;
use base::number::duration;
use std::collections::BTreeMap;
use walk::events::host_interrupts::HostInterrupt;
use walk::state::{STATES, State};

/// Where the life of one thread's guest begins and, so far, ends.
#[derive(Debug, Clone)]
pub(super) struct Life {
    has_begun: bool,
    /// Not in its guest, and not at an exit of it.
    is_elsewhere: bool,
    /// Sums when it began.
    before_ns: [u64; STATES],
    /// Sums when the thread last turned from its guest to something else.
    left_ns: [u64; STATES],
    /// What interrupts took before it began and since the thread last left its guest.
    interrupts_before: BTreeMap<HostInterrupt, u64>,
    interrupts_since: BTreeMap<HostInterrupt, u64>,
}

impl Default for Life {
    fn default() -> Self {
        Self {
            has_begun: false,
            is_elsewhere: true,
            before_ns: [0; STATES],
            left_ns: [0; STATES],
            interrupts_before: BTreeMap::new(),
            interrupts_since: BTreeMap::new(),
        }
    }
}

impl Life {
    /// The thread is in `state` next, and its time so far is `states_ns`.
    #[inline(always)]
    pub(super) fn comes_to(&mut self, state: State, states_ns: &[u64; STATES]) {
        match state {
            State::Guest(_) | State::Handling(_) => {
                if self.is_elsewhere {
                    self.is_in_guest(matches!(state, State::Guest(_)), states_ns);
                }
            }
            _ if self.is_elsewhere => {}
            _ => self.leaves(states_ns),
        }
    }

    #[cold]
    fn is_in_guest(&mut self, runs: bool, states_ns: &[u64; STATES]) {
        if !self.has_begun {
            self.has_begun = true;
            (self.before_ns, self.left_ns) = (*states_ns, *states_ns);
        }
        // KVM goes on with an exit behind an interruption; only its entry is the guest's again.
        if runs {
            self.is_elsewhere = false;
            self.interrupts_since.clear();
        }
    }

    #[inline(never)]
    fn leaves(&mut self, states_ns: &[u64; STATES]) {
        self.is_elsewhere = true;
        self.left_ns = *states_ns;
    }

    pub(super) fn interrupted(&mut self, by: HostInterrupt, length_ns: u64) {
        let sums = if self.has_begun { &mut self.interrupts_since } else { &mut self.interrupts_before };
        *sums.entry(by).or_default() += length_ns;
    }

    /// What of `states_ns`, the thread's whole time, is not its guest's, and the same of its interrupts. A thread that was not seen
    /// to run a guest has nothing outside.
    pub(super) fn outside(self, has_ended: bool, states_ns: &[u64; STATES]) -> Outside {
        let mut outside = Outside::default();
        if !self.has_begun {
            return outside;
        }
        outside.states_ns = self.before_ns;
        outside.interrupts_ns = self.interrupts_before;
        if has_ended && self.is_elsewhere {
            for (sum, (all, left)) in outside.states_ns.iter_mut().zip(states_ns.iter().zip(self.left_ns)) {
                *sum += all - left;
            }
            self.interrupts_since.into_iter().for_each(|(by, ns)| *outside.interrupts_ns.entry(by).or_default() += ns);
        }
        outside
    }
}

/// What of a thread's sums lies before its guest first ran, and behind its last exit where the thread ended.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    pub states_ns: [u64; STATES],
    pub interrupts_ns: BTreeMap<HostInterrupt, u64>,
}

impl Default for Outside {
    fn default() -> Self {
        Self { states_ns: [0; STATES], interrupts_ns: BTreeMap::new() }
    }
}

impl Sums {
    /// Time in `state` between the first and the last time that its guest ran.
    pub fn guests_ns(&self, state: State) -> u64 {
        // Levels are settled after `outside`, so a state of one may have moved.
        self.ns(state).saturating_sub(self.outside.states_ns[state.index()])
    }

    /// That time in all states.
    pub fn guests_wall_ns(&self) -> u64 {
        self.wall_ns() - self.outside_ns()
    }

    /// What the VMM spent before its guest ran and, if the thread ended, after.
    pub fn outside_ns(&self) -> u64 {
        self.outside.states_ns.iter().sum()
    }

    /// What shares of that time are of, in a sentence: less than the trace, where the VMM was there before its guest or after it.
    pub fn lived(&self) -> String {
        match self.outside_ns() {
            0 => "its time".to_owned(),
            _ => format!("its guest's life ({})", duration(self.guests_wall_ns() as f64)),
        }
    }

    /// What one interrupt of the host took between these times.
    pub fn guests_interrupt_ns(&self, by: HostInterrupt) -> u64 {
        let all = self.host_interrupts.get(&by).map_or(0, |sums| sums.total_ns);
        all - self.outside.interrupts_ns.get(&by).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::Tally;
    use super::*;
    use base::Span;
    use walk::state::TracedLevel;
    use walk::thread::Thread;
    use walk::{Interruption, Sink};

    const GUEST: State = State::Guest(TracedLevel::L1);
    const HANDLING: State = State::Handling(TracedLevel::L1);

    /// What is known of a thread that was in these states, a hundred nanoseconds each, with an interrupt in each `Irq`.
    fn lived(states: &[State], has_ended: bool) -> Sums {
        let mut tally = Tally { window: Span { from_ns: 0, to_ns: 1 << 40 }, ..Tally::default() };
        for (place, state) in states.iter().enumerate() {
            let (from_ns, to_ns) = (place as u64 * 100, place as u64 * 100 + 100);
            if *state == State::Irq {
                let by = Interruption { by: HostInterrupt::Irq(Some(7)), begins: true };
                tally.interrupted(0, &by, from_ns, to_ns);
            }
            tally.interval(0, *state, from_ns, to_ns);
        }
        let mut thread = Thread::new(1, 0, 0);
        thread.gone = has_ended;
        tally.end(&[thread]);
        tally.sums.remove(0)
    }

    #[test]
    fn what_a_vmm_waits_for_before_its_guest_runs_and_after_it_ended_is_not_the_guests() {
        let (waits, works) = (State::Preempted, State::Userspace);
        let states = [waits, State::Irq, GUEST, HANDLING, waits, GUEST, State::Irq, HANDLING, works, waits, waits];
        let (still_there, ended) = (lived(&states, false), lived(&states, true));
        assert_eq!((still_there.guests_ns(waits), still_there.guests_wall_ns()), (300, 900), "it may be waiting");
        assert_eq!((ended.guests_ns(waits), ended.guests_ns(works), ended.guests_wall_ns()), (100, 0, 400));
        let irq = HostInterrupt::Irq(Some(7));
        assert_eq!((still_there.guests_interrupt_ns(irq), ended.guests_interrupt_ns(irq)), (100, 0));
        assert_eq!((ended.ns(waits), ended.wall_ns()), (400, 1100), "the ledger's sums are whole");
    }

    #[test]
    fn of_a_thread_that_was_not_seen_to_run_a_guest_all_counts() {
        let sums = lived(&[State::Preempted, State::Blocked, State::Irq], true);
        assert_eq!((sums.guests_ns(State::Preempted), sums.guests_wall_ns()), (100, 300));
    }
}
