//! What if the dirty bit of a page is cleared when the page is sent, not when the pass begins?
//!
//! Then a write before the page's turn costs nothing: KVM's manual dirty-log protection, with QEMU's `clear_bmap`
//! (`migration_clear_memory_region_dirty_bitmap` in migration/ram.c, QEMU 7.2). How much that saves depends on where the guest
//! stands in its sweep when the migration begins, which nobody knows: a sweep is followed page by page, from several places.

use super::memory::PAGE_BYTES;
use super::pace::Pace;
use super::passes::{Course, Setting};
use super::working_set::{Hot, WorkingSet};

/// Places at which a sweep may stand when the migration begins.
const PHASES: u64 = 8;
/// Pages that are followed one by one; more are followed in groups, each of which is written and sent as one.
const MOST_UNITS: f64 = 65_536.0;

/// The courses that a migration may take: one for each place at which the guest may be.
pub(crate) fn cleared_on_send(setting: &Setting, pace: Pace) -> Vec<Course> {
    match &setting.working_set {
        WorkingSet::Cyclic(hot) => {
            (0..PHASES).map(|phase| Sweep::of(*hot, phase, setting).course(setting, pace)).collect()
        }
        WorkingSet::Uniform(_) | WorkingSet::Measured(_) => vec![anywhere(setting, pace)],
    }
}

/// A guest that writes in order, from the first page of its memory on.
struct Sweep {
    /// Pages of one unit.
    unit_pages: f64,
    units: u64,
    units_per_s: f64,
    /// The unit that it writes to next when the migration begins.
    starts_at: u64,
}

impl Sweep {
    fn of(hot: Hot, phase: u64, setting: &Setting) -> Self {
        let unit_pages = (hot.pages / MOST_UNITS).ceil().max(1.0);
        let units = (hot.pages / unit_pages).round() as u64;
        let units_per_s = hot.pages_per_s * (1.0 - setting.throttle) / unit_pages;
        Self { unit_pages, units, units_per_s, starts_at: units * phase / PHASES }
    }

    fn course(&self, setting: &Setting, pace: Pace) -> Course {
        let unit_bytes = self.unit_pages * PAGE_BYTES;
        let mut dirty = vec![true; self.units as usize];
        Course::of(setting, pace, |pass| {
            let mut sending = pass.begin;
            for (unit, is_dirty) in dirty.iter_mut().enumerate() {
                let clean_since_s = if *is_dirty { sending.now_s() } else { pass.begin.now_s() };
                if *is_dirty {
                    sending.send(unit_bytes);
                }
                *is_dirty = self.writes(unit as u64, clean_since_s, pass.ends_s);
            }
            PAGE_BYTES * self.unit_pages * dirty.iter().filter(|is_dirty| **is_dirty).count() as f64
        })
    }

    /// Whether `unit` is written to in this time. The write number k comes at k / rate, to unit `starts_at` + k.
    fn writes(&self, unit: u64, from_s: f64, to_s: f64) -> bool {
        let first = (unit + self.units - self.starts_at) % self.units;
        let from = (from_s * self.units_per_s).ceil() as u64;
        let rounds = from.saturating_sub(first).div_ceil(self.units);
        ((first + rounds * self.units) as f64) < to_s * self.units_per_s
    }
}

/// Parts that a pass is cut into, for what is dirtied behind the sending of pages that are sent all along it.
const PARTS: u32 = 64;

/// One whose writes come anywhere: of the pages that a pass sends, each is dirty again if it is written to after its turn; of the
/// others, each that is written to at all.
fn anywhere(setting: &Setting, pace: Pace) -> Course {
    let running = 1.0 - setting.throttle;
    let hot_pages = setting.working_set.most_pages().max(f64::MIN_POSITIVE);
    let written = |time_s: f64| setting.working_set.pages(time_s * running) / hot_pages;
    let mut sent_pages = hot_pages;
    Course::of(setting, pace, |pass| {
        let pass_s = pass.took_s();
        // Where the hot pages lie in the first pass is not known; later ones send nothing else.
        let parts = (0..PARTS).map(|part| written(pass_s * (f64::from(part) + 0.5) / f64::from(PARTS)));
        let again = sent_pages * parts.sum::<f64>() / f64::from(PARTS);
        let anew = (hot_pages - sent_pages) * written(pass_s);
        sent_pages = again + anew;
        PAGE_BYTES * sent_pages
    })
}

#[cfg(test)]
mod tests {
    use super::super::passes::tests::{at_sync, bed, told};
    use super::*;

    fn evenly(setting: &Setting) -> Vec<Course> {
        cleared_on_send(setting, Pace::even(setting.bytes_per_s))
    }

    #[test]
    fn published_ranges_hold_to_the_last_digit() {
        for (rate, least, most) in [(24_000.0, 1_693, 1_951), (40_000.0, 1_713, 2_859), (46_000.0, 1_713, 4_451)] {
            let courses = evenly(&bed(WorkingSet::Cyclic, rate));
            let totals: Vec<u64> = courses.iter().filter_map(told).map(|(ms, _)| ms).collect();
            assert_eq!((totals.iter().min(), totals.iter().max(), totals.len()), (Some(&least), Some(&most), 8));
        }
        assert!(evenly(&bed(WorkingSet::Cyclic, 60_000.0)).iter().all(|course| course.last_bytes.is_none()));
    }

    #[test]
    fn it_never_sends_more_than_with_bits_cleared_at_the_start_of_passes() {
        for rate in [100.0, 10_000.0, 30_000.0, 45_000.0] {
            for working_set in [WorkingSet::Cyclic as fn(Hot) -> WorkingSet, WorkingSet::Uniform] {
                let setting = bed(working_set, rate);
                let most = at_sync(&setting);
                // A page is followed as a whole, where the curve has parts of one.
                let most_bytes = most.bytes().unwrap() + PAGE_BYTES * (most.passes_bytes.len() + 1) as f64;
                let courses = evenly(&setting);
                assert!(courses.iter().all(|course| course.bytes().unwrap() <= most_bytes), "{rate}");
            }
        }
    }

    #[test]
    fn a_large_guest_is_followed_in_groups_of_pages() {
        let small = bed(WorkingSet::Cyclic, 40_000.0);
        let large = |times: f64| {
            let mut setting = small.clone();
            setting.memory.pages *= times;
            setting.bytes_per_s *= times;
            setting.working_set = WorkingSet::Cyclic(Hot { pages: 16_384.0 * times, pages_per_s: 40_000.0 * times });
            evenly(&setting).iter().map(|course| told(course).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(large(1.0), large(256.0), "the same guest, 256 times as large and as fast");
    }
}
