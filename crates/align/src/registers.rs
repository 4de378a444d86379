//! Which access to an MSR in a guest's own trace is which that the machine below served?
//!
//! In:  what KVM served of a vCPU, and what the guest wrote down, each with register, direction and value. Out: pairs, and
//! what they say of the guest's clock.
//!
//! ```text
//! below   exit | kvm_msr (6e0 = v) | entry ........ exit | .. | exit | kvm_msr (6e0 = w) | entry
//! above          WRMSR instruction:  write_msr (6e0, v)    or here, after an interrupt     write_msr (6e0, w)
//! ```
//! Linux writes the event behind the instruction (arch/x86/include/asm/msr.h, 6.12), so it comes after the entry that follows
//! `kvm_msr`. It comes before the exit of the guest's next pair, for the guest goes on in order; an exit in between, for an
//! interrupt say, may come before it. Registers that do not exit, and those whose accesses Linux does not trace, as the end
//! of an interrupt (`native_apic_msr_eoi` in arch/x86/include/asm/apic.h), stand in one list only: what has no equal in the
//! other is left out. The rest is matched by its order. Values of 0 and 1 come again and again, those of deadlines never.

use super::guest_side::GuestCpu;
use super::host_side::HostVcpu;
use super::inside::Inside;
use super::lines::Bound;
use super::matches::{Pairs, in_order};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// An access to an MSR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// When it was written down.
    pub at: u64,
    /// Number of the register.
    pub msr: u32,
    pub write: bool,
    pub value: u64,
}

/// So many accesses must have a value that came once.
const TELLING: usize = 6;

type What = (u32, bool, u64);

impl Access {
    fn what(&self) -> What {
        (self.msr, self.write, self.value)
    }
}

/// Accesses that both sides list; none if most of what stands between them is not in both, or if too few of them have a
/// value that came once: 0 and 1 are in order by chance somewhere.
pub(super) fn pairs(below: &[Access], above: &[Access]) -> Pairs {
    let (low, high) = (shared(below, above), shared(above, below));
    let whats = |accesses: &[Access], places: &[usize]| -> Vec<What> {
        places.iter().map(|place| accesses[*place].what()).collect()
    };
    let pairs = in_order(&whats(below, &low), &whats(above, &high));
    let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else { return Pairs::new() };
    let between = (last.0 - first.0).max(last.1 - first.1) + 1;
    let mut counts: FxHashMap<What, usize> = FxHashMap::default();
    low.iter().for_each(|place| *counts.entry(below[*place].what()).or_default() += 1);
    let once = pairs.iter().filter(|pair| counts[&below[low[pair.0]].what()] == 1).count();
    if pairs.len() * 2 <= between || once < TELLING {
        return Pairs::new();
    }
    pairs.into_iter().map(|pair| (low[pair.0], high[pair.1])).collect()
}

/// CPUs of a guest and places of the threads that served their accesses, best first: those with enough values that came
/// once on any thread.
pub(super) fn pairing(below: &[HostVcpu], above: &BTreeMap<u32, GuestCpu>) -> Vec<(u32, usize)> {
    let mut served: FxHashMap<What, Option<usize>> = FxHashMap::default();
    for (thread, vcpu) in below.iter().enumerate() {
        for access in &vcpu.accesses {
            served.entry(access.what()).and_modify(|known| *known = None).or_insert(Some(thread));
        }
    }
    let mut counts: BTreeMap<(u32, usize), FxHashSet<What>> = BTreeMap::new();
    for (cpu, own) in above {
        for what in own.accesses.iter().map(Access::what) {
            if let Some(Some(thread)) = served.get(&what) {
                counts.entry((*cpu, *thread)).or_default().insert(what);
            }
        }
    }
    let mut found: Vec<((u32, usize), usize)> =
        counts.into_iter().map(|(pair, whats)| (pair, whats.len())).filter(|(_, count)| *count >= TELLING).collect();
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found.into_iter().map(|(pair, _)| pair).collect()
}

/// Places of the accesses of `one` that have an equal in `other`.
fn shared(one: &[Access], other: &[Access]) -> Vec<usize> {
    let known: FxHashSet<What> = other.iter().map(Access::what).collect();
    (0..one.len()).filter(|place| known.contains(&one[*place].what())).collect()
}

/// What pairs say of the two clocks, by time of the guest's; times may be off by `slack` because files round.
pub(super) fn bounds((below, above): (&[Access], &[Access]), pairs: &Pairs, inside: &Inside, slack: u64) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for (place, (low, high)) in pairs.iter().enumerate() {
        let x = above[*high].at;
        let from = inside.from(below[*low].at.saturating_sub(slack));
        bounds.extend(from.map(|y| Bound { x, y, is_lower: true }));
        let next = pairs.get(place + 1).and_then(|(next, _)| inside.until(below[*next].at.saturating_add(slack)));
        bounds.extend(next.map(|y| Bound { x, y, is_lower: false }));
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::super::host_side::Window;
    use super::*;

    fn access(at: u64, msr: u32, value: u64) -> Access {
        Access { at, msr, write: true, value }
    }

    /// Deadlines among values that come again and again, and the untraced end of an interrupt.
    fn served() -> Vec<Access> {
        let one = |n: u64| {
            [access(100 * n, 0x6e0, 7_000 + n), access(100 * n + 40, 0x48, n % 2), access(100 * n + 60, 0x80b, 0)]
        };
        (0..30).flat_map(one).collect()
    }

    fn told(served: &[Access], msrs: &[u32]) -> Vec<Access> {
        let told = served.iter().filter(|access| msrs.contains(&access.msr));
        told.flat_map(|access| [Access { at: access.at + 5_000, ..*access }, Access { msr: 0xc000_0100, ..*access }])
            .collect()
    }

    #[test]
    fn accesses_of_one_side_alone_do_not_hide_those_of_both() {
        let served = served();
        let told = told(&served, &[0x6e0, 0x48]);
        let pairs = pairs(&served, &told[20..80]);
        assert_eq!(pairs.len(), 30);
        assert!(pairs.iter().all(|(low, high)| served[*low].at + 5_000 == told[20 + high].at));
    }

    #[test]
    fn values_that_differ_or_repeat_only_give_no_pair() {
        let served = served();
        let other: Vec<Access> = told(&served, &[0x6e0, 0x48])
            .into_iter()
            .map(|access| Access { value: access.value + 100_000, ..access })
            .collect();
        assert!(pairs(&served, &other).is_empty());
        assert!(pairs(&served, &told(&served, &[0x48])[4..40]).is_empty(), "it may be anywhere");
        let read: Vec<Access> =
            told(&served, &[0x6e0]).into_iter().map(|access| Access { write: false, ..access }).collect();
        assert!(pairs(&served, &read).is_empty(), "a read is no write");
    }

    #[test]
    fn an_access_lies_behind_the_entry_and_before_the_exit_of_the_next() {
        let windows = [(0, 90), (110, 150), (160, 190), (210, 300)].map(|(from, to)| Window { from, to, cpu: 0 });
        let vcpu = HostVcpu { windows: windows.to_vec(), ..HostVcpu::default() };
        let (below, above) = ([access(100, 1, 1), access(200, 1, 2)], [access(1_150, 1, 1), access(1_215, 1, 2)]);
        let bounds = bounds((&below, &above), &vec![(0, 0), (1, 1)], &Inside::of(&vcpu, 0), 0);
        let bound = |x, y, is_lower| Bound { x, y, is_lower };
        assert_eq!(bounds, [bound(1_150, 110, true), bound(1_150, 190, false), bound(1_215, 210, true)]);
    }
}
