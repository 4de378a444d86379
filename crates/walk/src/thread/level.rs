//! At which level did the guest run? (R1, R2, T1 to T3)

use super::exit::Position;
use super::{Class, PendingEntry, Reason, Surroundings, Thread, TracedLevel};
use crate::walk::Sink;

/// Length of VMRESUME, VMLAUNCH and VMRUN (Intel SDM vol. 3, 31.3; AMD APM vol. 3, VMRUN).
const ENTRY_INSTRUCTION_BYTES: u64 = 3;

impl Thread {
    /// The level that an entry at `rip` enters, as far as the forward witness can tell (T1 to T3).
    #[inline]
    pub(super) fn level_entered(&self, rip: Option<u64>, cx: &mut Surroundings<'_, impl Sink>) -> TracedLevel {
        let refused = match (self.pend, rip) {
            (PendingEntry::None, _) => return self.lvl,
            (PendingEntry::Asked(Some(nested_rip)), Some(rip)) => rip != nested_rip, // T1
            (PendingEntry::Asked(_), _) => false,                                    // T2
            (PendingEntry::Guessed, _) if cx.seen.nested_entry => return TracedLevel::L1, // no request was seen: refused
            (PendingEntry::Guessed, None) if !cx.seen.nested_vmexit && !cx.seen.inject => return TracedLevel::Asked,
            (PendingEntry::Guessed, rip) => {
                // T3: L1 goes on behind the instruction.
                let behind = self.last_exit.and_then(|(_, at)| Some(at?.wrapping_add(ENTRY_INSTRUCTION_BYTES)));
                rip.is_some() && rip == behind
            }
        };
        cx.doubts.refused_entries += u64::from(refused);
        if refused { TracedLevel::L1 } else { self.contexts.level() }
    }

    /// R1 and R2: what the next positional event says of the open exit's level.
    #[inline]
    pub(super) fn resolve(&mut self, position: Position, cx: &mut Surroundings<'_, impl Sink>) {
        if self.open_exit.is_some_and(|open| open.unresolved) {
            self.resolve_open(position, cx);
        }
    }

    fn resolve_open(&mut self, position: Position, cx: &mut Surroundings<'_, impl Sink>) {
        let Some(open) = &mut self.open_exit else { return };
        open.unresolved = false;
        let forward = open.exit.level;
        let level = match position {
            Position::NestedVmexit => self.contexts.level(),
            Position::Inject if forward.is_open() => self.contexts.level(),
            Position::Other if cx.seen.nested_vmexit && !open.exit.reason.hides_its_level() => TracedLevel::L1,
            // W2 has not been heard yet. If it ever is, its silence here meant L1: the end of the trace settles it.
            Position::Other if forward == TracedLevel::Lost && !open.exit.reason.hides_its_level() => {
                TracedLevel::Early
            }
            _ => forward,
        };
        if !forward.is_open() && forward.is_nested() != level.is_nested() && cx.seen.inject {
            cx.doubts.level_conflicts += 1;
        }
        open.exit.level = level;
        let (reason, class) = (open.exit.reason, open.class);
        if !level.is_open() {
            self.lvl = level;
            self.tell_chain(reason, cx);
        }
        if level.is_nested() && self.pend == PendingEntry::Guessed {
            // A nested hypervisor asked, and its own hypervisor will be told.
            self.pend = PendingEntry::None;
        }
        if class != Class::Halt {
            self.ledger.settle(level, cx);
        }
    }

    /// An exit of known level happened: one of the guest hypervisor belongs to the chain, one of its guest proves the
    /// chain's end.
    #[inline]
    fn tell_chain(&mut self, reason: Reason, cx: &mut Surroundings<'_, impl Sink>) {
        let Some(chain) = &mut self.chain else { return };
        if !self.lvl.is_nested() {
            chain.count(reason);
        } else if chain.is_closed() {
            self.give_chain(cx);
        }
    }

    /// The level that open pieces have as far as is known now.
    #[inline]
    pub(super) fn level_now(&self) -> TracedLevel {
        self.ledger.settled.unwrap_or_else(|| self.open_exit.map_or(self.lvl, |open| open.exit.level))
    }

    /// The level of open pieces whose next positional event will not be seen: what it would have settled is lost.
    pub(super) fn level_dropped(&self) -> TracedLevel {
        let is_told = self.open_exit.is_some_and(|open| !open.unresolved);
        match self.level_now() {
            TracedLevel::Asked if !is_told => TracedLevel::Lost,
            level => level,
        }
    }
}
