//! What did the guest hypervisor do with an exit of its guest?
//!
//! ```text
//! inject ---> exits of L1, counted ---> entry of L2: seems closed ---> L2 leaves: closed
//!                     ^------------- it was refused: goes on ---'
//! ```
//! On kernels that do not say so an entry that was refused looks like one that was made, until the next exit comes from
//! L1 (docs/read/flow.md, "Chains").

use super::ledger::Sums;
use crate::events::reasons::{Class, Reason};
use base::Span;
use smallvec::SmallVec;

/// What became of one reflected exit of a nested guest.
#[derive(Debug, Clone)]
pub struct Chain {
    /// Why the nested guest stopped, as its hypervisor is told.
    pub reason: Reason,
    pub start_ns: u64,
    /// Exits of the guest hypervisor until the nested guest ran again, the last entry request included.
    pub exits: u64,
    /// The first of them in order, up to [`KEPT`].
    pub sequence: SmallVec<[Reason; 16]>,
    /// How many of the others had which reason.
    pub beyond: Vec<(Reason, u64)>,
    /// When the nested guest ran again; `None` for a censored chain.
    pub closed_ns: Option<u64>,
    /// Until then, without time off the CPU; `None` for a censored chain.
    pub cost_ns: Option<u64>,
    /// The guest hypervisor halted inside.
    pub interrupted: bool,
    /// Another nested guest ran next, or the same one on another thread first.
    pub migrated: bool,
    /// Time the guest hypervisor's own code ran.
    pub guest_ns: u64,
    /// Time L0's VMM ran.
    pub userspace_ns: u64,
}

impl Chain {
    /// Whether its cost is that of one exit alone ([`base::timeline::Chain::is_undisturbed`]).
    pub fn is_undisturbed(&self) -> bool {
        base::timeline::is_undisturbed(self.cost_ns, (self.interrupted, self.migrated))
    }

    /// From the stop of the nested guest until it ran again; to its start for a censored chain.
    pub fn span(&self) -> Span {
        Span { from_ns: self.start_ns, to_ns: self.closed_ns.unwrap_or(self.start_ns) }
    }

    /// Every exit by its reason, in groups.
    pub fn by_reason(&self) -> impl Iterator<Item = (Reason, u64)> {
        self.sequence.iter().map(|reason| (*reason, 1)).chain(self.beyond.iter().copied())
    }
}

/// How many exits of a chain are kept by name.
pub const KEPT: usize = 96;

#[derive(Debug, Clone)]
pub(super) struct OpenChain {
    chain: Chain,
    /// The thread's sums when the nested guest stopped.
    before: Sums,
    /// The nested guest that stopped.
    vmcb: Option<u64>,
    entered_other: bool,
    /// Nothing but the next exit will tell that the entry was not refused.
    guessed: bool,
}

impl OpenChain {
    /// A chain that begins with the stop of `vmcb` at `start_ns`, when the thread's sums were `before`.
    #[inline]
    pub(super) fn begin(reason: Reason, start_ns: u64, before: Sums, vmcb: Option<u64>) -> Self {
        let chain = Chain {
            reason,
            start_ns,
            exits: 0,
            sequence: SmallVec::new(),
            beyond: Vec::new(),
            closed_ns: None,
            cost_ns: None,
            interrupted: false,
            migrated: false,
            guest_ns: 0,
            userspace_ns: 0,
        };
        Self { chain, before, vmcb, entered_other: false, guessed: false }
    }

    /// Counts an exit of the guest hypervisor; what seemed to be the end was none.
    pub(super) fn count(&mut self, reason: Reason) {
        self.reopen();
        self.chain.exits += 1;
        self.chain.interrupted |= reason.class() == Class::Halt;
        if self.chain.sequence.len() < KEPT {
            self.chain.sequence.push(reason);
            return;
        }
        match self.chain.beyond.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => self.chain.beyond.push((reason, 1)),
        }
    }

    /// The nested guest `entered` seems to run again; `guessed` if no event says that it was not refused.
    pub(super) fn close(&mut self, now_ns: u64, now: &Sums, entered: Option<u64>, guessed: bool) {
        self.guessed = guessed;
        let off_ns = now.off_ns - self.before.off_ns;
        self.chain.closed_ns = Some(now_ns);
        self.chain.cost_ns = Some(now_ns.saturating_sub(self.chain.start_ns).saturating_sub(off_ns));
        self.chain.guest_ns = now.guest1_ns - self.before.guest1_ns;
        self.chain.userspace_ns = now.user_ns - self.before.user_ns;
        self.entered_other = self.vmcb.is_some() && entered != self.vmcb;
    }

    /// The entry that seemed to close it was refused.
    pub(super) fn reopen(&mut self) {
        self.chain.closed_ns = None;
        self.chain.cost_ns = None;
        self.entered_other = false;
    }

    /// The next exit will not be seen: what was guessed stays so, and a guess closes nothing.
    pub(super) fn cut_off(&mut self) {
        if self.guessed {
            self.reopen();
        }
    }

    /// True if the nested guest seems to run.
    pub(super) fn is_closed(&self) -> bool {
        self.chain.cost_ns.is_some()
    }

    /// The nested guest `vmcb` was asked for on another thread.
    pub(super) fn overtaken(&mut self, vmcb: u64) {
        self.chain.migrated |= self.vmcb == Some(vmcb) && !self.is_closed();
    }

    /// The chain, closed or censored.
    pub(super) fn finish(&mut self) -> &Chain {
        self.chain.migrated |= self.entered_other;
        &self.chain
    }
}
