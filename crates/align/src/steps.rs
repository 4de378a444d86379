//! Which time-stamp offset did KVM have in force for a vCPU, and when?
//!
//! ```text
//! guest counter = host counter + offset      offset: a step function of the host's time, one per vCPU
//! kvm_write_tsc_offset   previous 0 next -10 | previous -10 next -14 | ...    previous must be the last next
//! ```
//! KVM writes the offset once where the host's counter is stable. Where it is not, it writes at every load of the vCPU,
//! so that the guest's counter stands still meanwhile (kvm_arch_vcpu_load in arch/x86/kvm/x86.c, Linux 6.12); one number
//! per recording would be wrong by seconds. The event always has L1's offset, also while a nested guest runs.

/// When a write happened, and the offset from then on.
pub(super) type Write = (u64, u64);

/// The offsets of one vCPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps {
    /// In force before the first write, where something tells.
    first: Option<u64>,
    /// When each write happened, and the offset from then on.
    writes: Vec<Write>,
    /// Writes whose previous offset is not the last next one: some write in between was not recorded.
    pub breaks: u64,
}

impl Steps {
    /// One offset, as read from debugfs, without a write.
    pub fn held(offset: u64) -> Self {
        Self { first: Some(offset), ..Self::default() }
    }

    pub fn write(&mut self, at: u64, previous: u64, next: u64) {
        match self.writes.last() {
            None => self.first = Some(previous),
            Some((_, last)) => self.breaks += u64::from(*last != previous),
        }
        self.writes.push((at, next));
    }

    /// Takes in a write that another thread did for this vCPU, if it follows the last write before it: the VMM sets the
    /// counter from outside too. Says whether it did.
    pub(crate) fn adopt(&mut self, at: u64, previous: u64, next: u64) -> bool {
        let place = self.writes.partition_point(|(written, _)| *written <= at);
        let last = if place == 0 { self.first } else { Some(self.writes[place - 1].1) };
        let follows = last == Some(previous);
        if follows && previous != next {
            self.writes.insert(place, (at, next));
            self.breaks = self.breaks.saturating_sub(1);
        }
        follows
    }

    /// The offset in force at `time`, modulo 2^64; `None` if nothing tells.
    pub fn at(&self, time: u64) -> Option<u64> {
        let after = self.writes.partition_point(|(at, _)| *at <= time);
        after.checked_sub(1).map_or(self.first, |last| Some(self.writes[last].1))
    }

    pub fn changes(&self) -> u64 {
        let before = self.first.into_iter().chain(self.writes.iter().map(|(_, next)| *next));
        before.zip(&self.writes).filter(|(before, (_, next))| before != next).count() as u64
    }

    /// True if all writes came before `time`.
    pub(crate) fn is_all_before(&self, time: u64) -> bool {
        self.writes.last().is_none_or(|(at, _)| *at < time)
    }

    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// True if no write was seen.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_from_outside_closes_the_break_that_it_made() {
        let mut steps = Steps::default();
        [(10, 0, 5), (20, 5, 6), (40, 9, 10)].into_iter().for_each(|(at, last, next)| steps.write(at, last, next));
        assert_eq!(steps.breaks, 1);
        assert!(!steps.adopt(30, 7, 9), "it does not follow");
        assert!(steps.adopt(30, 6, 9));
        assert_eq!((steps.breaks, steps.at(29), steps.at(30), steps.at(40)), (0, Some(6), Some(9), Some(10)));
    }

    #[test]
    fn one_write_tells_both_its_sides_and_a_gap_is_counted() {
        let mut steps = Steps::default();
        assert_eq!(steps.at(5), None);
        steps.write(100, 7, 9);
        assert_eq!(
            (steps.at(0), steps.at(99), steps.at(100), steps.at(u64::MAX)),
            (Some(7), Some(7), Some(9), Some(9))
        );
        steps.write(200, 9, 9);
        assert_eq!((steps.breaks, steps.changes()), (0, 1));
        steps.write(300, 8, 3);
        assert_eq!((steps.breaks, steps.changes(), steps.at(250), steps.at(300)), (1, 2, Some(9), Some(3)));
    }
}
