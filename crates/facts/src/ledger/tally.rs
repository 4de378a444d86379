//! Pieces of time, exits and chains become sums per thread.
//!
//! The walk tells of pieces of time, exits and chains; here they are added up inside the window that the user chose.
//! Nothing is kept per event: memory grows with the number of vCPUs, reasons and details.

use super::life::Life;
use super::model::{ExitSums, Sums};
use base::Span;
use walk::events::details::Detail;
use walk::stages::Told;
use walk::stages::sums::Vector;
use walk::state::State;
use walk::thread::{Chain, Exit, KEPT, Thread};
use walk::{Interruption, Preemptor, Sink, Waker};

/// Different details kept per reason, and different sequences per chain reason; the rest is counted without them.
const MOST_KINDS: usize = 4096;

/// Adds up what the walk tells, per thread.
#[derive(Default)]
pub(super) struct Tally {
    /// Sums by thread number.
    pub sums: Vec<Sums>,
    pub lives: Vec<Life>,
    /// Absolute times outside are left out.
    pub window: Span,
}

impl Tally {
    #[inline]
    fn of(&mut self, thread: usize) -> &mut Sums {
        if thread >= self.sums.len() {
            self.meet(thread);
        }
        &mut self.sums[thread]
    }

    #[cold]
    fn meet(&mut self, thread: usize) {
        self.sums.resize_with(thread + 1, Sums::default);
        self.lives.resize_with(thread + 1, Life::default);
    }

    /// The trace is over.
    pub(super) fn end(&mut self, threads: &[Thread]) {
        if let Some(last) = threads.len().checked_sub(1).filter(|last| *last >= self.sums.len()) {
            self.meet(last);
        }
        let lives = std::mem::take(&mut self.lives).into_iter();
        for ((thread, sums), life) in threads.iter().zip(&mut self.sums).zip(lives) {
            sums.outside = life.outside(thread.gone, &sums.states_ns);
        }
    }

    #[inline]
    fn inside(&self, time_ns: u64) -> bool {
        (self.window.from_ns..self.window.to_ns).contains(&time_ns)
    }
}

impl Sink for Tally {
    #[inline(always)]
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        let clipped = to_ns.min(self.window.to_ns).saturating_sub(from_ns.max(self.window.from_ns));
        if thread >= self.sums.len() {
            self.meet(thread);
        }
        let states_ns = &mut self.sums[thread].states_ns;
        self.lives[thread].comes_to(state, states_ns);
        states_ns[state.index()] += clipped;
    }

    fn exit(&mut self, thread: usize, exit: &Exit) {
        if !self.inside(exit.at_ns) {
            return;
        }
        let sums = self.of(thread).exits.at((exit.level, exit.reason));
        sums.count += 1;
        if exit.reason.is_pause() {
            sums.bursts.add(exit.at_ns);
        }
        sums.handled[ExitSums::handler(exit.handled)] += 1;
        if let Some(cost_ns) = exit.cost_ns {
            sums.cost_ns.record(cost_ns);
        }
        if exit.detail == Detail::None {
            return;
        }
        if let Some((count, total_ns)) = sums.details.at_most(exit.detail, MOST_KINDS) {
            *count += 1;
            *total_ns += exit.cost_ns.unwrap_or(0);
        }
    }

    fn chain(&mut self, thread: usize, chain: &Chain) {
        if !self.inside(chain.start_ns) {
            return;
        }
        let sums = self.of(thread).chains.at(chain.reason);
        sums.count += 1;
        let Some(cost_ns) = chain.cost_ns else {
            sums.censored += 1;
            return;
        };
        if !chain.is_undisturbed() {
            sums.disturbed += 1;
            sums.interrupted += u64::from(chain.interrupted);
            return;
        }
        sums.exits.record(chain.exits);
        sums.cost_ns.record(cost_ns);
        sums.guest_ns += chain.guest_ns;
        sums.userspace_ns += chain.userspace_ns;
        if chain.exits <= KEPT as u64 {
            if let Some(count) = sums.sequences.get_mut(chain.sequence.as_slice()) {
                *count += 1;
                return;
            } else if sums.sequences.len() < MOST_KINDS {
                sums.sequences.insert(chain.sequence.to_vec(), 1);
                return;
            }
        }
        chain.by_reason().for_each(|(reason, count)| *sums.beside_sequences.at(reason) += count);
    }

    fn preempted(&mut self, thread: usize, by: &Preemptor, from_ns: u64, to_ns: u64) {
        let took = by.took && self.inside(from_ns);
        let (from_ns, to_ns) = (from_ns.max(self.window.from_ns), to_ns.min(self.window.to_ns));
        let length_ns = to_ns.saturating_sub(from_ns);
        if length_ns == 0 && !took {
            return;
        }
        let sums = self.of(thread).preemptors.entry(by.tid).or_default();
        sums.count += u64::from(took);
        sums.total_ns += length_ns;
        sums.max_ns = sums.max_ns.max(length_ns);
        sums.cpu = by.cpu;
    }

    fn interrupted(&mut self, thread: usize, by: &Interruption, from_ns: u64, to_ns: u64) {
        let begins = by.begins && self.inside(from_ns);
        let length_ns = to_ns.min(self.window.to_ns).saturating_sub(from_ns.max(self.window.from_ns));
        if length_ns == 0 && !begins {
            return;
        }
        let known = &mut self.of(thread).host_interrupts;
        // All of it is charged to something, or the sums would not be the states'.
        let by = if known.len() < MOST_KINDS || known.contains_key(&by.by) { by.by } else { by.by.unnamed() };
        self.lives[thread].interrupted(by, length_ns);
        let known = &mut self.of(thread).host_interrupts;
        known.entry(by).or_default().add(length_ns, begins);
    }

    fn nested_entry(&mut self, thread: usize, vmcb: u64, at_ns: u64) {
        if self.inside(at_ns) {
            *self.of(thread).nested_entries.entry(vmcb).or_default() += 1;
        }
    }

    fn interrupt(&mut self, thread: usize, vector: u8, told: Told) {
        if self.inside(told.at_ns()) {
            self.of(thread).interrupts.at(Vector(vector)).add(told);
        }
    }

    fn ran_after_waking(&mut self, thread: usize, by: Waker, _: Option<usize>, woken_ns: u64, ran_ns: u64) {
        if self.inside(woken_ns) {
            let sums = self.of(thread);
            sums.wake_to_run.record(ran_ns - woken_ns);
            let known = sums.wakers.len() < MOST_KINDS || sums.wakers.contains_key(&by);
            let by = if known { by } else { Waker::Unknown };
            sums.wakers.entry(by).or_default().add(ran_ns - woken_ns, true);
        }
    }

    fn entered_after_waking(&mut self, thread: usize, woken_ns: u64, entered_ns: u64) {
        if self.inside(woken_ns) {
            self.of(thread).wake_to_entry.record(entered_ns - woken_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use walk::events::reasons::{Isa, Reason};

    fn reason(code: u32) -> Reason {
        Reason { isa: Isa::Vmx, code }
    }

    /// A closed chain of VMREAD (23) exits and one VMRESUME (24), of which those from the 97th on are not kept in order.
    fn chain(reads: u64) -> Chain {
        let kept = (reads as usize).min(KEPT);
        let resume = (reason(24), 1);
        let (sequence, beyond) = match reads as usize - kept {
            0 if kept < KEPT => (vec![reason(23); kept].into_iter().chain([reason(24)]).collect(), Vec::new()),
            0 => (vec![reason(23); kept].into(), vec![resume]),
            more => (vec![reason(23); kept].into(), vec![(reason(23), more as u64), resume]),
        };
        Chain {
            reason: reason(10),
            start_ns: 100,
            exits: reads + 1,
            sequence,
            beyond,
            closed_ns: Some(200),
            cost_ns: Some(100),
            interrupted: false,
            migrated: false,
            guest_ns: 0,
            userspace_ns: 0,
        }
    }

    #[test]
    fn exits_of_chains_are_counted_once_whether_or_not_their_sequence_is_kept() {
        let mut tally = Tally { window: Span { from_ns: 0, to_ns: 1_000 }, ..Tally::default() };
        let lengths = [3, 3, 14, 95, 96, 200];
        lengths.iter().for_each(|reads| tally.chain(0, &chain(*reads)));
        let sums = tally.sums[0].chains.at(reason(10));
        assert_eq!(sums.sequences.len(), 3, "those of up to 96 exits");
        let mut counted: BTreeMap<u32, u64> = BTreeMap::new();
        sums.by_reason().for_each(|(reason, count)| *counted.entry(reason.code).or_default() += count);
        assert_eq!(counted, BTreeMap::from([(23, lengths.iter().sum()), (24, lengths.len() as u64)]));
    }
}
