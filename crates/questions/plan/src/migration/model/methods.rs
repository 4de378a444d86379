//! What do other ways to move a guest take, and what do they take from it?

use super::memory::{PAGE_BYTES, PAGE_MEMORY_BYTES};
use super::pace::Pace;
use super::passes::{Course, Setting};

/// `cpu-throttle-initial`, `cpu-throttle-increment` and `max-cpu-throttle` as QEMU sets them (DEFAULT_MIGRATE_CPU_THROTTLE_INITIAL and others in
/// migration/migration.c, QEMU 7.2).
const FIRST: f64 = 0.20;
const MORE: f64 = 0.10;
const MOST: f64 = 0.99;
/// `throttle-trigger-threshold`: of what was sent in a period, so much was dirtied again; and how often that has to be seen
/// (`migration_trigger_throttle` in migration/ram.c, QEMU 7.2).
const TRIGGER_SHARE: f64 = 0.5;
const TRIGGER_TIMES: u32 = 2;
/// A period is over with the first pass that ends later (`migration_bitmap_sync`).
const PERIOD_S: f64 = 1.0;

/// Pre-copy that takes time from a guest which dirties half of what is sent, or more.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Throttled {
    /// How it goes, with dirty bits cleared as passes begin.
    pub course: Course,
    /// The most of its time that is taken from the guest, 0 to 1.
    pub most: f64,
    /// How much time is taken from it in all.
    pub(crate) taken_s: f64,
}

/// What was seen since a period began.
#[derive(Default)]
struct Period {
    began_s: f64,
    sent_bytes: f64,
    dirtied_bytes: f64,
    seen: u32,
}

impl Throttled {
    /// That of `auto-converge`.
    pub(crate) fn of(setting: &Setting, pace: Pace) -> Self {
        let (mut throttle, mut most, mut taken_s) = (setting.throttle, setting.throttle, 0.0);
        let (mut period, mut left_bytes) = (Period::default(), setting.memory.sent_bytes());
        let course = Course::of(setting, pace, |pass| {
            let dirtied_pages = setting.working_set.pages(pass.took_s() * (1.0 - throttle));
            taken_s += pass.took_s() * throttle;
            most = most.max(throttle);
            period.sent_bytes += left_bytes;
            period.dirtied_bytes += dirtied_pages * PAGE_MEMORY_BYTES;
            left_bytes = dirtied_pages * PAGE_BYTES;
            if pass.ends_s > period.began_s + PERIOD_S {
                let is_high = period.dirtied_bytes > period.sent_bytes * TRIGGER_SHARE;
                let seen = period.seen + u32::from(is_high);
                if seen == TRIGGER_TIMES {
                    throttle = if throttle == 0.0 { FIRST } else { (throttle + MORE).min(MOST) };
                }
                period = Period { began_s: pass.ends_s, seen: seen % TRIGGER_TIMES, ..Period::default() };
            }
            left_bytes
        });
        Self { course, most, taken_s }
    }
}

/// One pass, then the guest goes on over there and its pages come as it asks for them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Postcopy {
    /// Until all is there, without setting up and devices.
    pub(crate) total_s: f64,
    /// How much of that is after the guest has gone over.
    pub(crate) left_s: f64,
    /// Pages that were dirtied during the pass, and may be waited for.
    pub pages: f64,
}

impl Postcopy {
    /// One whose first pass leaves as much as that of `course`.
    pub(crate) fn of(setting: &Setting, course: &Course) -> Self {
        let left_bytes = course.passes_bytes.get(1).copied().or(course.last_bytes).unwrap_or_default();
        let left_s = left_bytes / setting.bytes_per_s;
        // Without a pass before the final one, all memory is what is left.
        Self { total_s: course.first_pass_s + left_s, left_s, pages: left_bytes / PAGE_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::super::passes::tests::{at_sync, bed, told};
    use super::super::working_set::WorkingSet;
    use super::*;

    fn throttled(setting: Setting) -> Throttled {
        Throttled::of(&setting, Pace::even(setting.bytes_per_s))
    }

    #[test]
    fn a_guest_that_dirties_little_is_left_alone() {
        let setting = bed(WorkingSet::Cyclic, 10_000.0);
        let throttled = throttled(setting);
        assert_eq!((told(&throttled.course), throttled.most, throttled.taken_s), (Some((1_689, 3)), 0.0, 0.0));
    }

    #[test]
    fn it_takes_more_and_more_until_passes_shrink_and_what_it_takes_adds_up() {
        // 200 MB/s carry 48,733 pages a second: 60,000 of them end with 20 % taken, if only just, and 400,000 with 90 %.
        let gentle = throttled(bed(WorkingSet::Cyclic, 60_000.0));
        assert_eq!((gentle.most * 100.0).round(), 30.0, "with 20 % a pass is as long as the one before");
        let hard = throttled(bed(WorkingSet::Cyclic, 400_000.0));
        assert_eq!((hard.most * 100.0).round(), 90.0);
        assert!(hard.taken_s > gentle.taken_s && hard.course.total_s() > gentle.course.total_s());
        // Each step is held for two periods at least, of a second or more: 20, 30 .. 80 %.
        assert!(hard.taken_s > 2.0 * (0.2 + 0.3 + 0.4 + 0.5 + 0.6 + 0.7 + 0.8), "{hard:?}");
        let never = throttled(Setting { limit_s: 1e-9, ..bed(WorkingSet::Uniform, 1e9) });
        assert_eq!((never.course.total_s(), (never.most * 100.0).round()), (None, 99.0));
    }

    #[test]
    fn post_copy_sends_what_one_pass_left_once_more() {
        let setting = bed(WorkingSet::Cyclic, 400_000.0);
        let postcopy = Postcopy::of(&setting, &at_sync(&setting));
        assert_eq!(postcopy.pages, 16_384.0);
        assert!((postcopy.total_s - (65_536.0 + 16_384.0) * PAGE_BYTES / 200e6).abs() < 1e-9);
        let small = Setting { limit_s: 10.0, ..setting };
        assert_eq!(Postcopy::of(&small, &at_sync(&small)).pages, 65_536.0, "all of it, where nothing goes before");
    }
}
