//! What one side sees while it is measured: gaps in its time, frames in each slice, what the kernel counts of its thread.

use super::gauges::Gauges;
use base::channel::{GAP_BATCHES, GAP_NS, MOST_GAPS, SLICE_NS, Side};
use channel::{ChannelStats, Ticks};
use rustix::thread::gettid;
use serde::{Deserialize, Serialize};

/// When it is measured, by the counter of all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Span {
    /// The first count that belongs to it.
    pub from: u64,
    /// The first that does not.
    pub until: u64,
    /// Of the counter, in a nanosecond.
    pub per_ns: f64,
}

/// Looks at the counter once a batch.
pub(crate) struct Watch {
    span: Span,
    gap_ticks: u64,
    slice_ticks: u64,
    slice_ends: u64,
    slice: usize,
    last: u64,
    /// Stretches before its time in which frames moved, the latest; then they are sorted once, and forgotten.
    usual: Vec<u64>,
    moved: bool,
    began: bool,
    frames: Vec<u32>,
    dirty: Vec<bool>,
    gaps: Vec<(u64, u64)>,
    gap_count: u64,
    gap_sum: u64,
    /// Where somebody looks meanwhile.
    gauges: Option<Gauges>,
    /// Frames of this slice, which the gauges have not been told of.
    untold: u64,
}

/// Gaps that have room while it is measured; of more, only the sum is kept.
const ROOM: usize = 1 << 16;
/// So many stretches say what is usual.
const USUAL: usize = 1 << 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// It goes on, or has not begun.
    Goes,
    /// This is the first one that is measured.
    Begins,
    /// The time is over.
    Ends,
}

impl Watch {
    /// Of a side that has not begun.
    pub(crate) fn new(span: Span) -> Watch {
        let ticks = |ns: u64| (ns as f64 * span.per_ns) as u64;
        let slice_ticks = ticks(SLICE_NS).max(1);
        let slices = (span.until.saturating_sub(span.from) / slice_ticks) as usize;
        Watch {
            span,
            gap_ticks: ticks(GAP_NS),
            slice_ticks,
            slice_ends: span.from + slice_ticks,
            slice: 0,
            last: span.from,
            usual: Vec::with_capacity(USUAL),
            moved: false,
            began: false,
            frames: vec![0; slices],
            dirty: vec![false; slices],
            gaps: Vec::with_capacity(ROOM),
            gap_count: 0,
            gap_sum: 0,
            gauges: None,
            untold: 0,
        }
    }

    pub(crate) fn showing(self, gauges: Option<Gauges>) -> Watch {
        Watch { gauges, ..self }
    }

    /// Notes that this side runs now.
    #[inline]
    pub(crate) fn look(&mut self, now: u64) -> Look {
        if !self.began {
            return self.before(now);
        }
        if now.saturating_sub(self.last) > self.gap_ticks {
            self.gap(now);
        }
        self.last = now;
        if now < self.span.until { Look::Goes } else { Look::Ends }
    }

    #[cold]
    fn before(&mut self, now: u64) -> Look {
        if self.usual.len() == USUAL {
            self.usual.clear();
        }
        // Looks that found nothing to do are short, and say nothing of how long a batch takes.
        if std::mem::take(&mut self.moved) {
            self.usual.push(now.saturating_sub(self.last));
        }
        self.last = now;
        if now < self.span.from {
            return Look::Goes;
        }
        self.began = true;
        self.usual.sort_unstable();
        let usual = self.usual.get(self.usual.len() / 2).copied().unwrap_or(0);
        self.gap_ticks = self.gap_ticks.max(GAP_BATCHES * usual);
        // What is done once at the begin takes its time from the first slice.
        if let Some(first) = self.dirty.first_mut() {
            *first = true;
        }
        Look::Begins
    }

    /// Frames have moved since the last look.
    #[inline]
    pub(crate) fn moved(&mut self) {
        self.moved = true;
    }

    /// It slept because it wanted to: that is no gap.
    pub(crate) fn rested(&mut self, now: u64) {
        self.last = now;
    }

    /// So many frames have arrived by now.
    #[inline]
    pub(crate) fn count(&mut self, now: u64, frames: u64) {
        if now < self.span.from {
            return;
        }
        if now >= self.slice_ends {
            self.next_slice(now);
        }
        self.untold += frames;
        if let Some(count) = self.frames.get_mut(self.slice) {
            *count += frames as u32;
        }
    }

    fn next_slice(&mut self, now: u64) {
        while now >= self.slice_ends {
            self.slice_ends += self.slice_ticks;
            self.slice += 1;
        }
        if let Some(gauges) = &self.gauges {
            gauges.arrived(std::mem::take(&mut self.untold), now);
        }
    }

    #[cold]
    fn gap(&mut self, now: u64) {
        let (from, until) = (self.last, now.min(self.span.until));
        if until <= from {
            return;
        }
        self.gap_count += 1;
        self.gap_sum += until - from;
        if let Some(gauges) = &self.gauges {
            gauges.gap(until - from);
        }
        if self.gaps.len() < ROOM {
            self.gaps.push((from, until));
        }
        let slice = |at: u64| ((at - self.span.from) / self.slice_ticks) as usize;
        let (first, last) = (slice(from), slice(until));
        let end = self.dirty.len().min(last + 1);
        if let Some(dirty) = self.dirty.get_mut(first..end) {
            dirty.fill(true);
        }
    }

    /// All that it saw, with what was counted between two moments of its thread.
    pub(crate) fn seen(self, cpu: u32, since: &Counted, until: &Counted) -> Seen {
        let (usage, stats) = (until.usage.since(since.usage), until.stats.since(&since.stats));
        let ns = |ticks: u64| (ticks as f64 / self.span.per_ns) as u64;
        let mut longest = self.gaps;
        longest.sort_by_key(|(from, until)| std::cmp::Reverse(until - from));
        longest.truncate(MOST_GAPS);
        longest.sort();
        let open = &stats.window_open_ns;
        let side = Side {
            tid: gettid().as_raw_nonzero().get(),
            cpu,
            ns: ns(until.at.saturating_sub(since.at)),
            cpu_ns: usage.cpu_ns,
            waited_ns: usage.waited_ns,
            voluntary: usage.voluntary,
            involuntary: usage.involuntary,
            faults: usage.faults,
            windows: open.len(),
            open_p50_ns: if open.is_empty() { 0 } else { open.value_at_quantile(0.5) },
            open_p99_ns: if open.is_empty() { 0 } else { open.value_at_quantile(0.99) },
            open_max_ns: open.max(),
            open_ns: stats.window_open_sum_ns,
            gap_from_ns: ns(self.gap_ticks),
            gap_count: self.gap_count,
            gap_ns: ns(self.gap_sum),
            gaps: longest.iter().map(|(from, until)| (ns(from - self.span.from), ns(until - from))).collect(),
            tsc: Some((self.span.from, self.span.until)),
        };
        Seen { side, frames: self.frames, dirty: self.dirty }
    }
}

/// What a side saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub side: Side,
    /// Frames of each slice; those of a side that sends are 0.
    pub frames: Vec<u32>,
    /// Slices with a gap in them.
    pub dirty: Vec<bool>,
}

/// What was counted of a side until a moment.
pub(crate) struct Counted {
    at: u64,
    usage: Usage,
    stats: ChannelStats,
}

impl Counted {
    /// Until now, by this thread.
    pub(crate) fn now(stats: &ChannelStats) -> Counted {
        Counted { at: now(), usage: Usage::now(), stats: stats.clone() }
    }
}

/// What the kernel has counted of this thread since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) cpu_ns: u64,
    pub(super) waited_ns: u64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) faults: u64,
}

impl Usage {
    /// Source: getrusage(2) with RUSAGE_THREAD, /proc/thread-self/schedstat (Documentation/scheduler/sched-stats.rst).
    fn now() -> Usage {
        // SAFETY: the structure is plain numbers, and the kernel fills it.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: as above; it is ours, and large enough.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut numbers = schedstat.split_whitespace().map(|number| number.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        let (cpu_ns, waited_ns) = (next(), next());
        let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
        Usage {
            cpu_ns,
            waited_ns,
            voluntary: count(usage.ru_nvcsw),
            involuntary: count(usage.ru_nivcsw),
            faults: count(usage.ru_minflt),
        }
    }

    pub(super) fn since(self, earlier: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
            faults: self.faults.saturating_sub(earlier.faults),
        }
    }
}

#[inline]
pub(crate) fn now() -> u64 {
    Ticks::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Counted {
        Counted { at: 0, usage: Usage::default(), stats: ChannelStats::default() }
    }

    /// Has begun at 1,000,000, after looks every 1,000.
    fn watch() -> Watch {
        let mut watch = Watch::new(Span { from: 1_000_000, until: 2_000_000, per_ns: 1.0 });
        for now in (900_000..1_000_000).step_by(1_000) {
            assert_eq!(watch.look(now), Look::Goes);
            watch.count(now, 5);
            watch.moved();
        }
        assert_eq!(watch.look(1_000_000), Look::Begins);
        watch
    }

    #[test]
    fn a_gap_makes_the_slices_that_it_touches_dirty_and_no_others() {
        let mut watch = watch();
        assert_eq!(watch.frames.len(), 10);
        for now in (1_000_000..1_350_000).step_by(4_000) {
            assert_eq!(watch.look(now), Look::Goes);
            watch.count(now, 2);
        }
        // The last look was at 1,348,000; the next one comes in the slice after the next.
        assert_eq!(watch.look(1_510_000), Look::Goes);
        watch.count(1_510_000, 7);
        for now in (1_510_000..1_720_000).step_by(5_000) {
            assert_eq!(watch.look(now), Look::Goes);
        }
        assert_eq!(watch.look(2_000_001), Look::Ends);
        let seen = watch.seen(3, &nothing(), &nothing());
        let dirty: Vec<usize> = (0..10).filter(|&slice| seen.dirty[slice]).collect();
        assert_eq!(dirty, [0, 3, 4, 5, 7, 8, 9], "the first has the begin in it, and the last gap lasts until the end");
        assert_eq!((seen.side.gap_count, seen.side.cpu, seen.side.gap_from_ns), (2, 3, 5_000));
        assert_eq!(seen.side.gaps, [(348_000, 162_000), (715_000, 285_000)]);
        assert_eq!((seen.frames[0], seen.frames[5]), (50, 7));
    }

    #[test]
    fn what_happens_before_its_time_does_not_count_and_neither_does_a_rest() {
        let mut watch = watch();
        watch.look(1_001_000);
        watch.rested(1_400_000);
        assert_eq!(watch.look(1_402_000), Look::Goes);
        let seen = watch.seen(0, &nothing(), &nothing());
        assert_eq!((seen.side.gap_count, seen.frames.iter().sum::<u32>()), (0, 0));
        assert!(seen.dirty[1..].iter().all(|dirty| !dirty));
    }

    #[test]
    fn a_batch_that_takes_long_is_no_gap() {
        let mut watch = Watch::new(Span { from: 1_000_000, until: 2_000_000, per_ns: 1.0 });
        // Most looks find nothing to do, and every tenth one moves a batch.
        let mut now = 0;
        for look in 0.. {
            if watch.look(now) == Look::Begins {
                break;
            }
            now += if look % 10 == 0 { 20_000 } else { 100 };
            if look % 10 == 0 {
                watch.moved();
            }
        }
        watch.rested(1_000_000);
        for now in [1_020_000, 1_060_000, 1_140_000, 1_221_000] {
            watch.look(now);
        }
        let seen = watch.seen(0, &nothing(), &nothing());
        assert_eq!((seen.side.gap_from_ns, seen.side.gap_count), (80_000, 1));
    }
}
