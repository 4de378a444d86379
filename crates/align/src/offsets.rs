//! A guest's clock from the offsets that KVM wrote, or that its debugfs showed: exact.
//!
//! ```text
//! below   |--window--|        |--window--|      offset -10, then -14
//! guest   |----------|    |----------|          its counter stood still in between
//! ```
//! Each window is shifted by the offset in force when it began; KVM cannot change it while the guest runs. So a guest's
//! time is looked up among the shifted windows, which rise in the guest's clock too, unless the guest or its VMM set the
//! counter back: there a new epoch begins. No event tells of TSC scaling: without debugfs a ratio of 1 is assumed.

use super::host_side::{HostVcpu, Window};
use super::lines::Bound;
use super::readings::Counter;
use super::scaling::Scaling;
use super::steps::Steps;

/// Windows of a guest, and of its own guests, in the guest's clock.
#[derive(Debug, Clone)]
pub struct Offsets {
    /// First and last tick of each window, and the offset, modulo 2^64.
    pieces: Vec<(u64, u64, u64)>,
    /// Places in `pieces` at which the guest's counter was set back; the first is 0.
    epochs: Vec<usize>,
    pub scaling: Scaling,
    /// No write was seen: the offset is the one that debugfs showed.
    pub is_held: bool,
    /// That offset is no register's: somebody measured it.
    pub is_measured: bool,
}

impl Offsets {
    /// The windows of `vcpu`; `None` if neither a write nor debugfs told an offset.
    pub fn of(vcpu: &HostVcpu, counter: &Counter) -> Option<Self> {
        let scaling = counter.scaling.unwrap_or(Scaling::NONE);
        let is_held = vcpu.steps.is_empty();
        let held = counter.offset.filter(|_| is_held).map(Steps::held);
        let steps = held.as_ref().unwrap_or(&vcpu.steps);
        let piece = |window: &Window| {
            let offset = steps.at(window.from)?;
            let (from, to) = (scaling.guest(window.from, offset), scaling.guest(window.to, offset));
            (from <= to).then_some((from, to, offset))
        };
        let mut windows: Vec<&Window> = vcpu.windows.iter().chain(&vcpu.nested).collect();
        windows.sort_by_key(|window| window.from);
        let pieces: Vec<(u64, u64, u64)> = windows.into_iter().filter_map(piece).collect();
        let back = pieces.windows(2).enumerate().filter(|(_, two)| two[1].0 < two[0].1).map(|(place, _)| place + 1);
        let epochs: Vec<usize> = std::iter::once(0).chain(back).collect();
        let is_measured = is_held && counter.error.is_some();
        (!pieces.is_empty()).then_some(Self { pieces, epochs, scaling, is_held, is_measured })
    }

    /// True if one offset held all the time.
    pub fn are_one(&self) -> bool {
        self.pieces.windows(2).all(|two| two[0].2 == two[1].2)
    }

    /// True if a time that they give contradicts causes and effects.
    pub fn contradict(&self, bounds: &[Bound]) -> bool {
        bounds.iter().any(|bound| {
            let (low, high) = self.place(bound.x);
            if bound.is_lower { high < bound.y } else { low > bound.y }
        })
    }

    /// The first and the last time below that the guest's time `at` can be.
    pub fn place(&self, at: u64) -> (u64, u64) {
        self.scaling.below(at, self.offset_at(at))
    }

    /// The same for each stretch in which the counter showed `at` while the guest ran, in their order: it was set back to times
    /// that it had shown. Where it never showed it, the one that is nearest.
    pub fn places(&self, at: u64) -> impl Iterator<Item = (u64, u64)> {
        let shown = self.stretches().map(move |pieces| nearest(pieces, at)).filter(|(distance, _)| *distance == 0);
        let mut shown = shown.map(|(_, offset)| offset).peekable();
        let nearest = shown.peek().is_none().then(|| self.offset_at(at));
        shown.chain(nearest).map(move |offset| self.scaling.below(at, offset))
    }

    /// The pieces of each epoch.
    fn stretches(&self) -> impl Iterator<Item = &[(u64, u64, u64)]> {
        let ends = self.epochs.iter().skip(1).copied().chain([self.pieces.len()]);
        self.epochs.iter().zip(ends).map(|(first, end)| &self.pieces[*first..end])
    }

    /// The offset at the guest's time `at`, by the window that holds it, else by the nearest.
    pub fn offset_at(&self, at: u64) -> u64 {
        let mut best = (u64::MAX, 0);
        for pieces in self.stretches() {
            let (distance, offset) = nearest(pieces, at);
            if distance < best.0 {
                best = (distance, offset);
            }
            if distance == 0 {
                break;
            }
        }
        best.1
    }
}

/// How far the nearest of some rising pieces is from `at`, and its offset.
fn nearest(pieces: &[(u64, u64, u64)], at: u64) -> (u64, u64) {
    let next = pieces.partition_point(|(_, to, _)| *to < at);
    let after = pieces.get(next).map(|(from, _, offset)| (from.saturating_sub(at), *offset));
    let before = next.checked_sub(1).map(|last| (at - pieces[last].1, pieces[last].2));
    before.into_iter().chain(after).min().unwrap_or((u64::MAX, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::recording::TscScaling;

    fn vcpu(windows: &[(u64, u64)], writes: &[(u64, i64, i64)]) -> HostVcpu {
        let windows = windows.iter().map(|(from, to)| Window { from: *from, to: *to, cpu: 0 }).collect();
        let mut vcpu = HostVcpu { windows, ..HostVcpu::default() };
        writes.iter().for_each(|(at, previous, next)| vcpu.steps.write(*at, *previous as u64, *next as u64));
        vcpu
    }

    #[test]
    fn a_counter_that_stood_still_is_placed_by_its_windows() {
        let vcpu = vcpu(&[(1000, 1100), (1300, 1400)], &[(900, -5, -500), (1200, -500, -700)]);
        let offsets = Offsets::of(&vcpu, &Counter::default()).unwrap();
        let place = |at| offsets.place(at).0;
        assert_eq!(place(550), 1050, "in the first window");
        assert_eq!(place(650), 1350, "in the second");
        assert_eq!(place(495), 995, "before the first: its offset counts");
        assert_eq!(place(705), 1405);
    }

    #[test]
    fn a_counter_set_back_begins_anew() {
        let vcpu = vcpu(&[(1000, 1100), (1300, 1400)], &[(900, 0, 0), (1200, 0, -1290)]);
        let offsets = Offsets::of(&vcpu, &Counter::default()).unwrap();
        assert_eq!((offsets.place(1050), offsets.place(20)), ((1050, 1050), (1310, 1310)));
    }

    #[test]
    fn exits_of_a_time_that_the_counter_showed_twice_are_matched_in_their_order() {
        use super::super::guest_side::OwnExit;
        use super::super::host_side::Reflected;
        use super::super::matches::by_time;
        use walk::events::reasons::{Isa, Reason};
        // Set back by 250, the counter shows 1050 to 1100 once more.
        let vcpu = vcpu(&[(1000, 1100), (1300, 1400)], &[(900, 0, 0), (1200, 0, -250)]);
        let offsets = Offsets::of(&vcpu, &Counter::default()).unwrap();
        let times = |at| offsets.places(at).map(|(_, high)| high).collect::<Vec<_>>();
        assert_eq!((times(1080), times(1020), times(1140)), (vec![1080, 1330], vec![1020], vec![1390]));
        assert_eq!(times(2000).len(), 1, "never shown: the nearest");
        let reason = Reason { isa: Isa::Svm, code: 0x72 };
        let below = [1055, 1075, 1325].map(|at| Reflected { at, reason, rip: 0 });
        let above = [1060, 1080, 1080].map(|at| OwnExit { at, reason, rip: 0, entered: None });
        assert_eq!(by_time(&below, &above, |exit| times(exit.at)), [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn without_a_write_debugfs_counts() {
        let vcpu = vcpu(&[(100, 200)], &[]);
        assert!(Offsets::of(&vcpu, &Counter::default()).is_none());
        let scaling = Scaling::new(TscScaling { ratio: 1, frac_bits: 1 });
        let told = Counter { offset: Some(1_000), scaling, ..Counter::default() };
        let offsets = Offsets::of(&vcpu, &told).unwrap();
        assert_eq!((offsets.place(1_075), offsets.is_held), ((150, 151), true), "half as fast");
    }
}
