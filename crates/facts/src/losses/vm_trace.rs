//! What would KVM4NFV's `vm-trace` print of a recording?
//!
//! It was for years the only meter of preemption that telecom operators had, so its numbers are asked for again; they are not
//! exact. Its arithmetic (tests/vm-trace/vm-trace.c of opnfv/kvmfornfv, commit 23a1e5a7), here with nanoseconds kept:
//!
//! ```text
//! one CPU, whatever runs there        exit    entry    exit    entry        from the last exit before each entry, halts included;
//!                                      |--------|       |--------|          an exit counts again for a second entry
//! sums of "1 ms"                      |<---- 1 ms or more ----->|           a sum ends with the first event 1 ms after it began,
//!                                                                           what is open at the end is left out
//! ```

use crate::ledger::build::{Beside, Ledger, build_beside};
use crate::{Given, Input};
use base::Span;
use std::collections::BTreeMap;
use trace::Event;
use walk::events::roles::{ROLES, Role};
use walk::state::State;
use walk::thread::{Chain, Exit};
use walk::{Preemptor, Sink};

/// How long it sums up before it begins anew.
const SUM_NS: u64 = 1_000_000;

/// Its numbers for one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VmTrace {
    /// Entries and exits.
    pub events: u64,
    /// Entries that an exit came before.
    pub pairs: u64,
    /// Time from exits to entries.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The largest sum.
    pub within_1ms_ns: u64,
    exit_ns: Option<u64>,
    sum_since_ns: Option<u64>,
    sum_ns: u64,
}

impl VmTrace {
    fn exit(&mut self, at_ns: u64) {
        self.exit_ns = Some(at_ns);
        self.event(at_ns);
    }

    fn entry(&mut self, at_ns: u64) {
        if let Some(exit_ns) = self.exit_ns {
            let length_ns = at_ns.saturating_sub(exit_ns);
            self.pairs += 1;
            self.total_ns += length_ns;
            self.max_ns = self.max_ns.max(length_ns);
            self.sum_ns += length_ns;
        }
        self.event(at_ns);
    }

    fn event(&mut self, at_ns: u64) {
        self.events += 1;
        let since_ns = *self.sum_since_ns.get_or_insert(at_ns);
        if at_ns.saturating_sub(since_ns) >= SUM_NS {
            self.within_1ms_ns = self.within_1ms_ns.max(self.sum_ns);
            (self.sum_ns, self.sum_since_ns) = (0, Some(at_ns));
        }
    }

    /// The mean; `None` without a pair, of which the program dies.
    pub fn mean_ns(&self) -> Option<u64> {
        self.total_ns.checked_div(self.pairs)
    }
}

/// Hears every event of a trace.
#[derive(Default)]
struct Meter {
    window: Span,
    cpus: BTreeMap<u32, VmTrace>,
}

impl Sink for Meter {
    fn interval(&mut self, _: usize, _: State, _: u64, _: u64) {}

    fn exit(&mut self, _: usize, _: &Exit) {}

    fn chain(&mut self, _: usize, _: &Chain) {}

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}
}

impl Beside for Meter {
    fn begin(&mut self, window: Span) {
        self.window = window;
    }

    fn event(&mut self, event: &Event<'_>) {
        let role = ROLES.get(usize::from(event.kind));
        let Some(role @ (Role::Entry | Role::Exit)) = role else { return };
        if (self.window.from_ns..self.window.to_ns).contains(&event.time_ns) {
            let cpu = self.cpus.entry(event.cpu).or_default();
            if *role == Role::Exit { cpu.exit(event.time_ns) } else { cpu.entry(event.time_ns) }
        }
    }
}

/// The ledger, and the numbers of each CPU of each trace.
pub fn build(
    input: &Input,
    given: &Given,
    progress: &mut dyn FnMut(u64, u64),
) -> (Ledger, Vec<BTreeMap<u32, VmTrace>>) {
    let (ledger, meters) = build_beside::<Meter>(input, given, progress);
    (ledger, meters.into_iter().map(|meter| meter.cpus).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Losses as a program that pairs exits with entries meets them.
    fn metered(losses_us: &[(u64, u64)]) -> VmTrace {
        let mut metered = VmTrace::default();
        for (exit_us, entry_us) in losses_us {
            metered.exit(exit_us * 1_000);
            metered.entry(entry_us * 1_000);
        }
        metered
    }

    #[test]
    fn its_sums_are_those_of_the_program_with_all_its_faults() {
        let v1 = metered(&[(200, 212), (990, 1_004), (1_500, 1_509), (1_985, 1_993), (2_600, 2_605)]);
        assert_eq!((v1.within_1ms_ns, v1.max_ns, v1.pairs, v1.mean_ns()), (26_000, 14_000, 5, Some(9_600)));
        let v2 = metered(&[(100, 110), (500, 8_498), (9_000, 9_005)]);
        assert_eq!((v2.within_1ms_ns, v2.max_ns), (8_008_000, 7_998_000), "more than a millisecond within one");
        let v3 = metered(&[(10, 20), (950, 965), (1_015, 1_030), (1_990, 2_000), (3_005, 3_006)]);
        assert_eq!(v3.within_1ms_ns, 25_000);
    }

    #[test]
    fn an_exit_is_paired_with_every_entry_until_the_next_one() {
        let mut stale = metered(&[(10, 20)]);
        stale.entry(50_000);
        assert_eq!((stale.pairs, stale.max_ns, stale.total_ns), (2, 40_000, 50_000));
        assert_eq!(VmTrace::default().mean_ns(), None);
    }
}
