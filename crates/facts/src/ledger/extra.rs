//! What is summed up beside the ledger on its walk: one reading of a trace serves whoever asks for both.

use super::stacks::Stacks;
use crate::chains::Ranking;
use crate::windows::Sliced;
use base::Span;
use trace::Event;
use walk::state::State;
use walk::thread::{Chain, Exit, Thread};
use walk::{Preemptor, Sink};

/// Sums beside the ledger's, as far as somebody asked for them.
#[derive(Default)]
pub(crate) struct Extra {
    pub(crate) ranking: Option<Ranking>,
    pub(crate) stacks: Option<Stacks>,
    pub(crate) sliced: Option<Sliced>,
}

impl Extra {
    /// The trace begins; what lies outside of `window` is not asked for.
    pub(super) fn begin(&mut self, window: Span) {
        if let Some(ranking) = &mut self.ranking {
            ranking.begin(window);
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.begin(window);
        }
        if let Some(sliced) = &mut self.sliced {
            sliced.begin(window);
        }
    }

    /// An event, after the walk has taken it in.
    #[inline(always)]
    pub(super) fn event(&mut self, event: &Event<'_>) {
        if let Some(sliced) = &mut self.sliced {
            sliced.event(event);
        }
    }

    /// The trace is over; sums know `threads` by their numbers.
    pub(super) fn end(&mut self, threads: &[Thread]) {
        if let Some(ranking) = &mut self.ranking {
            ranking.end(threads);
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.end(threads);
        }
        if let Some(sliced) = &mut self.sliced {
            sliced.end(threads);
        }
    }
}

impl Sink for Extra {
    #[inline(always)]
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        if let Some(sliced) = &mut self.sliced {
            sliced.interval(thread, state, from_ns, to_ns);
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.interval(thread, state, from_ns, to_ns);
        }
    }

    #[inline(always)]
    fn exit(&mut self, thread: usize, exit: &Exit) {
        if let Some(sliced) = &mut self.sliced {
            sliced.exit(thread, exit);
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.exit(thread, exit);
        }
    }

    fn chain(&mut self, thread: usize, chain: &Chain) {
        if let Some(sliced) = &mut self.sliced {
            sliced.chain(thread, chain);
        }
        if let Some(ranking) = &mut self.ranking {
            ranking.chain(thread, chain);
        }
    }

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}
}
