//! Which passes does a pre-copy migration make, and when does it end?
//!
//! V0 = all memory, T_i = V_i / B, V_(i+1) = what was dirtied in T_i. The source stops as soon as what is left takes no longer than
//! the limit: `migration_iteration_run` compares it with `downtime-limit` times the bandwidth (migration/migration.c, QEMU 7.2).

use super::memory::{Memory, PAGE_BYTES};
use super::pace::Pace;
use super::working_set::WorkingSet;

/// So many passes are followed one by one. Where those after them shrink by the same part each, how many they are and how long they take is solved;
/// where not, the migration does not end. QEMU has no such bound, operators do.
pub(crate) const MOST_PASSES: usize = 200;
/// Parts of two passes that differ by less are the same.
const SAME: f64 = 1e-9;

/// What decides how a migration goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// What the first pass sends.
    pub memory: Memory,
    /// What the guest dirties meanwhile.
    pub working_set: WorkingSet,
    /// What really goes over: of link, limit, scan and copy the least.
    pub bytes_per_s: f64,
    /// `downtime-limit`.
    pub limit_s: f64,
    /// How much of its time is taken from the guest while it is sent, 0 to 1.
    pub throttle: f64,
}

/// How it goes, without what setting up and devices take.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Bytes of each pass but the last one.
    pub(crate) passes_bytes: Vec<f64>,
    /// How long the first one takes, if there is one: longer than it sends where looking for zeros takes longer.
    pub(crate) first_pass_s: f64,
    /// How many more there are, and what they send, where that was solved.
    further_passes: f64,
    further_bytes: f64,
    /// What is sent while the guest stands still; `None` if it never comes to that.
    pub(crate) last_bytes: Option<f64>,
    /// How fast, over many windows.
    pub bytes_per_s: f64,
    /// When the guest is stopped, or given up.
    stops_s: f64,
    /// How long it stands still for what is left.
    last_s: f64,
}

#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// How sending went on as it began.
    pub begin: Pace,
    pub(crate) ends_s: f64,
}

impl Pass {
    pub fn took_s(&self) -> f64 {
        self.ends_s - self.begin.now_s()
    }
}

impl Course {
    /// The course of one at that pace, whose passes leave what `dirtied_bytes` says of each.
    pub fn of(setting: &Setting, mut pace: Pace, mut dirtied_bytes: impl FnMut(Pass) -> f64) -> Self {
        let Setting { memory, bytes_per_s, limit_s, .. } = *setting;
        let mut course = Self {
            passes_bytes: Vec::new(),
            first_pass_s: 0.0,
            further_passes: 0.0,
            further_bytes: 0.0,
            last_bytes: None,
            bytes_per_s,
            stops_s: 0.0,
            last_s: f64::INFINITY,
        };
        let mut left_bytes = memory.sent_bytes();
        // Memory that takes longer to look at than the limit is looked at before the guest is stopped.
        while pace.looks_s() > limit_s || !pace.is_over(left_bytes, limit_s) {
            if course.passes_bytes.len() == MOST_PASSES {
                return course.with_tail(left_bytes, limit_s);
            }
            let begin = pace;
            pace.send(left_bytes);
            if course.passes_bytes.is_empty() {
                pace.look();
                course.first_pass_s = pace.now_s() - begin.now_s();
            }
            course.passes_bytes.push(left_bytes);
            course.stops_s = pace.now_s();
            left_bytes = dirtied_bytes(Pass { begin, ends_s: pace.now_s() });
        }
        Self { last_bytes: Some(left_bytes), last_s: pace.last_s(left_bytes).max(pace.looks_s()), ..course }
    }

    /// The rest of a course whose passes shrink by the same part each, down to what the limit allows; the same where they do not.
    fn with_tail(self, left_bytes: f64, limit_s: f64) -> Self {
        let [.., before, last] = self.passes_bytes[..] else { return self };
        let (part, earlier) = (left_bytes / last, last / before);
        let goal_bytes = limit_s * self.bytes_per_s;
        let shrinks = (0.0..1.0 - SAME).contains(&part) && (part - earlier).abs() <= SAME;
        if !shrinks || goal_bytes <= 0.0 {
            return self;
        }
        let passes = ((goal_bytes / left_bytes).ln() / part.ln()).ceil().max(0.0);
        let last_bytes = left_bytes * part.powf(passes);
        let further_bytes = (left_bytes - last_bytes) / (1.0 - part);
        Self {
            further_passes: passes,
            further_bytes,
            last_bytes: Some(last_bytes),
            stops_s: self.stops_s + further_bytes / self.bytes_per_s,
            last_s: last_bytes / self.bytes_per_s,
            ..self
        }
    }

    /// How many passes there are before the final one.
    pub(crate) fn passes(&self) -> f64 {
        self.passes_bytes.len() as f64 + self.further_passes
    }

    /// With dirty bits that are cleared as each pass begins: every page that the guest writes to during a pass is sent again.
    pub(crate) fn cleared_at_sync(setting: &Setting, pace: Pace) -> Self {
        let running = 1.0 - setting.throttle;
        Self::of(setting, pace, |pass| PAGE_BYTES * setting.working_set.pages(pass.took_s() * running))
    }

    /// As if the guest never wrote to a page twice: the geometric model, which others use.
    pub(crate) fn naive(setting: &Setting, pace: Pace) -> Self {
        let pages_per_s = setting.working_set.first_rate() * (1.0 - setting.throttle);
        let course = Self::of(setting, pace, |pass| PAGE_BYTES * pages_per_s * pass.took_s());
        // Where passes do not shrink, none is the last one, however small numbers of a finite machine make them.
        let shrinks = PAGE_BYTES * pages_per_s < setting.bytes_per_s || course.passes_bytes.is_empty();
        if shrinks { course } else { Self { last_bytes: None, ..course } }
    }

    /// Until the last byte of memory is sent; `None` if never.
    pub(crate) fn total_s(&self) -> Option<f64> {
        Some(self.stops_s + self.last_s()?)
    }

    /// How long the guest stands still for its memory; `None` if it never comes to that.
    pub fn last_s(&self) -> Option<f64> {
        self.last_bytes.map(|_| self.last_s)
    }

    /// Bytes of memory that go over; `None` if it never ends.
    pub fn bytes(&self) -> Option<f64> {
        Some(self.passes_bytes.iter().sum::<f64>() + self.further_bytes + self.last_bytes?)
    }
}

#[cfg(test)]
pub(in crate::migration) mod tests {
    use super::super::working_set::Hot;
    use super::*;

    /// 65,536 pages, none of them zeros, of which 16,384 are hot; 200 MB/s and a limit of 50 ms.
    pub(crate) fn bed(working_set: impl Fn(Hot) -> WorkingSet, pages_per_s: f64) -> Setting {
        let memory = Memory { pages: 65_536.0, zero_share: 0.0 };
        let working_set = working_set(Hot { pages: 16_384.0, pages_per_s });
        Setting { memory, working_set, bytes_per_s: 200e6, limit_s: 0.05, throttle: 0.0 }
    }

    /// With bits cleared as passes begin, at an even pace.
    pub(crate) fn at_sync(setting: &Setting) -> Course {
        Course::cleared_at_sync(setting, Pace::even(setting.bytes_per_s))
    }

    /// Milliseconds in all, and passes but the last one.
    pub(crate) fn told(course: &Course) -> Option<(u64, usize)> {
        Some(((course.total_s()? * 1e3).round() as u64, course.passes_bytes.len()))
    }

    #[test]
    fn published_vectors_hold_to_the_last_digit() {
        let rows = [
            (10_000.0, Some((1_689, 3)), Some((1_689, 3))),
            (24_000.0, Some((2_612, 5)), Some((1_968, 4))),
            (40_000.0, Some((7_290, 17)), Some((3_007, 11))),
            (46_000.0, Some((23_184, 58)), Some((6_545, 35))),
            (60_000.0, None, None),
        ];
        for (rate, naive, expected) in rows {
            let setting = bed(WorkingSet::Cyclic, rate);
            assert_eq!(told(&Course::naive(&setting, Pace::even(setting.bytes_per_s))), naive, "{rate}");
            assert_eq!(told(&at_sync(&setting)), expected, "{rate}");
        }
        let rows = [(10_000.0, Some((1_570, 2))), (40_000.0, Some((2_172, 6))), (60_000.0, None), (200_000.0, None)];
        for (rate, expected) in rows {
            assert_eq!(told(&at_sync(&bed(WorkingSet::Uniform, rate))), expected, "{rate}");
        }
    }

    /// 16 GiB over 10 Gbit/s, 2 GiB of them dirtied at 1,180 MiB/s: each pass is 0.8 % shorter than the one before.
    #[test]
    fn passes_that_shrink_slowly_end_all_the_same() {
        let hot = Hot { pages: 524_288.0, pages_per_s: 1180.0 * 256.0 };
        let memory = Memory { pages: 4_194_304.0, zero_share: 0.0 };
        let working_set = WorkingSet::Cyclic(hot);
        let setting = Setting { memory, working_set, bytes_per_s: 1.25e9, limit_s: 0.03, throttle: 0.0 };
        let course = at_sync(&setting);
        assert_eq!((course.passes(), course.total_s().map(|seconds| seconds.round())), (493.0, Some(220.0)));
        assert!(course.last_s().unwrap() <= 0.03 && course.bytes().unwrap() / 1.25e9 > 219.0);
        let faster = Hot { pages_per_s: 1200.0 * 256.0, ..hot };
        assert_eq!(
            at_sync(&Setting { working_set: WorkingSet::Cyclic(faster), ..setting }).total_s(),
            None,
            "they grow"
        );
    }

    #[test]
    fn memory_that_fits_into_the_limit_needs_no_pass_before() {
        let setting = Setting { limit_s: 2.0, ..bed(WorkingSet::Cyclic, 60_000.0) };
        for course in [Course::naive(&setting, Pace::even(setting.bytes_per_s)), at_sync(&setting)] {
            assert_eq!(told(&course), Some((1_345, 0)));
        }
    }
}
