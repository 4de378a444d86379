//! What has come to a recording since it was last looked at?
//!
//! ```text
//!          looked at        now: pages that begin in here      not all on disk yet
//! CPU 0  [page][page] | [page][page][page][page][page][page] | [page]
//! CPU 1  [page]       |    [page]              [page]        |          [page]
//!                     ^ until, the last time                 ^ newest page of all CPUs, less the lag
//! ```
//! In: the directory that a recorder fills. Out: a trace of some pages, and the span for which all CPUs' events are
//! there. Pages are found by the time they begin with, so what was looked at is not read again.

use super::TraceDat;
use super::layout::Shape;
use super::page;
use super::partial::{Mapped, Pages};
use crate::error::Error;
use base::{Clock, ClockSource, Span};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A recording that is being made.
#[derive(Debug)]
pub struct Growing {
    directory: PathBuf,
    lag_ns: u64,
    most_bytes: u64,
    /// As it was at first: the recorder measures its scale ever better, and a time that was said must not change.
    clock: Option<Clock>,
    until_ns: Option<u64>,
    /// How many pages of each CPU begin before that.
    given: BTreeMap<u32, usize>,
}

/// What has come.
pub struct Grown {
    /// The pages. Those at the edges also hold events outside the span.
    pub trace: TraceDat,
    /// For this time all events are there.
    pub span: Span,
    /// The time before the span that was passed over, because too much was recorded in it.
    pub skipped_ns: u64,
    /// Bytes of pages that came later than the lag allows, of time that was given already. They are not given any more.
    pub late_bytes: u64,
}

impl Growing {
    /// The recording in `directory`. An event lies on disk at most `lag_ns` after it happened, and at most `most_bytes`
    /// of pages are given at once, the latest.
    pub fn new(directory: &Path, lag_ns: u64, most_bytes: u64) -> Self {
        let (directory, given) = (directory.to_owned(), BTreeMap::new());
        Self { directory, lag_ns, most_bytes, clock: None, until_ns: None, given }
    }

    /// What has come since the last call; `None` if that is nothing.
    ///
    /// # Errors
    /// If the recording cannot be read, or if its clock has no scale.
    pub fn look(&mut self) -> Result<Option<Grown>, Error> {
        let clock = self.clock()?;
        let mapped = Mapped::of(&self.directory)?;
        let shape = Shape::parse(&mapped.layout().header_page, mapped.layout().endian);
        let times = Times { shape: &shape, clock: &clock };
        let first = mapped.pages().filter_map(|pages| times.begin_ns(pages, pages.first())).min();
        let newest = mapped.pages().filter_map(|pages| times.begin_ns(pages, pages.end().checked_sub(1)?)).max();
        let Some((first_ns, newest_ns)) = first.zip(newest) else { return Ok(None) };
        let until_ns = self.until_ns.unwrap_or(first_ns);
        // What a flight recorder drops before it was looked at.
        let unseen = mapped.pages().filter(|pages| pages.first() > self.given(pages.cpu));
        let dropped_ns = unseen.filter_map(|pages| times.begin_ns(pages, pages.first())).max();
        let from_ns = dropped_ns.map_or(until_ns, |dropped_ns| dropped_ns.max(until_ns));
        let to_ns = newest_ns.saturating_sub(self.lag_ns);
        if to_ns <= from_ns {
            return Ok(None);
        }
        let page_bytes = mapped.page_bytes() as u64;
        let bytes = |from_ns| -> u64 {
            let span = Span { from_ns, to_ns };
            mapped.pages().map(|pages| self.wanted(&times, pages, span).len() as u64 * page_bytes).sum()
        };
        let span = Span { from_ns: earliest_start(from_ns, to_ns, |from_ns| bytes(from_ns) <= self.most_bytes), to_ns };
        let wanted: BTreeMap<u32, Range<usize>> =
            mapped.pages().map(|pages| (pages.cpu, self.wanted(&times, pages, span))).collect();
        let late = |pages: Pages<'_>| {
            let given = self.given(pages.cpu).max(pages.first());
            times.before(pages, given, from_ns).saturating_sub(given) as u64
        };
        let late_bytes = mapped.pages().map(late).sum::<u64>() * page_bytes;
        let mut trace = mapped.open(&self.directory, |pages| wanted.get(&pages.cpu).cloned().unwrap_or(0..0));
        trace.clocks.iter_mut().for_each(|own| own.clone_from(&clock));
        self.until_ns = Some(to_ns);
        self.given = wanted.into_iter().map(|(cpu, pages)| (cpu, pages.end)).collect();
        Ok(Some(Grown { trace, span, skipped_ns: span.from_ns - until_ns, late_bytes }))
    }

    /// The ticks of a time that was given: what they are in nanoseconds, the recorder measures ever better.
    pub fn ticks(&self, ns: u64) -> u64 {
        self.clock.as_ref().map_or(ns, |clock| clock.ticks(ns))
    }

    fn clock(&mut self) -> Result<Clock, Error> {
        if let Some(clock) = &self.clock {
            return Ok(clock.clone());
        }
        let trace = Mapped::of(&self.directory)?.open(&self.directory, |_| 0..0);
        let clock = trace.facts.clock;
        if clock.source == ClockSource::None {
            let reason = format!("the tick length of clock {} is unknown; record with clock mono", clock.name);
            return Err(Error::Unsupported { file: self.directory.clone(), reason });
        }
        self.clock = Some(clock.clone());
        Ok(clock)
    }

    fn given(&self, cpu: u32) -> usize {
        self.given.get(&cpu).copied().unwrap_or(0)
    }

    /// The pages that begin in `span`, and the one before them, in which it may begin.
    fn wanted(&self, times: &Times<'_>, pages: Pages<'_>, span: Span) -> Range<usize> {
        let from = self.given(pages.cpu).saturating_sub(1);
        let before = |ns| times.before(pages, from, ns);
        before(span.from_ns).saturating_sub(1).max(from).max(pages.first())..before(span.to_ns)
    }
}

/// How a page tells when it begins.
struct Times<'s> {
    shape: &'s Shape,
    clock: &'s Clock,
}

impl Times<'_> {
    fn begin_ns(&self, pages: Pages<'_>, number: usize) -> Option<u64> {
        Some(self.clock.ns(page::head(pages.page(number)?, self.shape)?.ticks))
    }

    /// The first page from `from` on that does not begin before `ns`.
    fn before(&self, pages: Pages<'_>, from: usize, ns: u64) -> usize {
        let (mut low, mut high) = (from.clamp(pages.first(), pages.end()), pages.end());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.begin_ns(pages, middle) {
                Some(begin_ns) if begin_ns < ns => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }
}

/// The earliest start from `from` on that `fits`; a later one fits if an earlier one does.
fn earliest_start(from: u64, to: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (from, to);
    if fits(low) {
        return low;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::super::partial::tests::{heard, left_behind, pages_at};
    use super::super::partial::{raw_name, segment_name};
    use super::*;
    use std::fs;

    /// Two ticks are a nanosecond there.
    const TICKS_A_NS: u64 = 2;

    /// Events every `step` ns from `from` until `to`.
    fn events(from: u64, to: u64, step: usize) -> Vec<u8> {
        pages_at((from..to).step_by(step).map(|ns| ns * TICKS_A_NS))
    }

    /// Times of the events of `grown` that lie in its span.
    fn inside(grown: &Grown, on: u32) -> Vec<u64> {
        let in_span =
            |(ns, cpu): &(u64, u32)| (*cpu == on && (grown.span.from_ns..grown.span.to_ns).contains(ns)).then_some(*ns);
        heard(&grown.trace).0.iter().filter_map(in_span).collect()
    }

    #[test]
    fn every_event_is_given_once_and_old_pages_are_not_read_again() {
        let (mut busy, mut quiet) = (Vec::new(), Vec::new());
        let place = left_behind(&[(0, Vec::new()), (3, Vec::new())]);
        let mut growing = Growing::new(place.path(), 1_000, u64::MAX);
        assert!(growing.look().unwrap().is_none());
        let (mut seen, mut bytes) = ([Vec::new(), Vec::new()], Vec::new());
        for turn in 0..10 {
            busy.extend(events(turn * 10_000, (turn + 1) * 10_000, 2));
            quiet.extend(events(turn * 10_000, (turn + 1) * 10_000, 700));
            fs::write(place.path().join(raw_name(0)), &busy).unwrap();
            fs::write(place.path().join(raw_name(3)), &quiet).unwrap();
            let grown = growing.look().unwrap().unwrap();
            assert_eq!(grown.skipped_ns, 0);
            seen[0].extend(inside(&grown, 0));
            seen[1].extend(inside(&grown, 3));
            bytes
                .push(grown.trace.indexes[0].iter().flat_map(|cpu| &cpu.places).map(|place| place.size).sum::<usize>());
        }
        let until = growing.until_ns.unwrap();
        assert!((98_000..99_000).contains(&until), "a lag behind the newest page: {until}");
        assert_eq!(seen[0], (0..until).step_by(2).collect::<Vec<_>>());
        let quiet = (0..10).flat_map(|turn| (turn * 10_000..(turn + 1) * 10_000).step_by(700));
        assert_eq!(seen[1], quiet.filter(|ns| *ns < until).collect::<Vec<_>>());
        assert!(bytes[9] <= bytes[1] + 2 * 4096, "{bytes:?}");
        assert!(growing.look().unwrap().is_none(), "nothing has come since");
    }

    #[test]
    fn files_that_are_dropped_are_passed_over_only_if_they_had_not_been_looked_at() {
        let place = left_behind(&[]);
        let all = events(0, 200_000, 2);
        let pages: Vec<&[u8]> = all.chunks(4096).collect();
        let write = |range: std::ops::Range<usize>| {
            fs::write(place.path().join(segment_name(0, range.start as u64)), pages[range].concat()).unwrap();
        };
        let drop = |first: usize| fs::remove_file(place.path().join(segment_name(0, first as u64))).unwrap();
        let quarter = pages.len() / 4;
        let mut growing = Growing::new(place.path(), 1_000, u64::MAX);
        write(0..quarter);
        let mut seen = inside(&growing.look().unwrap().unwrap(), 0);
        write(quarter..2 * quarter);
        seen.extend(inside(&growing.look().unwrap().unwrap(), 0));
        drop(0);
        write(2 * quarter..2 * quarter + 2);
        write(2 * quarter + 2..3 * quarter);
        let grown = growing.look().unwrap().unwrap();
        assert_eq!((grown.skipped_ns, grown.late_bytes), (0, 0));
        seen.extend(inside(&grown, 0));
        assert_eq!(seen, (0..grown.span.to_ns).step_by(2).collect::<Vec<_>>());
        write(3 * quarter..pages.len());
        [quarter, 2 * quarter, 2 * quarter + 2].into_iter().for_each(drop);
        let last = growing.look().unwrap().unwrap();
        assert_eq!(last.span.from_ns - grown.span.to_ns, last.skipped_ns);
        assert!(last.skipped_ns > 0 && last.late_bytes == 0, "{}", last.skipped_ns);
        let even = |ns: &u64| ns.is_multiple_of(2);
        assert_eq!(inside(&last, 0), (last.span.from_ns..last.span.to_ns).filter(even).collect::<Vec<_>>());
    }

    #[test]
    fn pages_that_come_too_late_are_counted() {
        let place = left_behind(&[(0, events(0, 20_000, 2)), (1, Vec::new())]);
        let mut growing = Growing::new(place.path(), 1_000, u64::MAX);
        assert_eq!(growing.look().unwrap().unwrap().late_bytes, 0);
        let late = pages_at([100, 200].into_iter());
        let quiet = [late.clone(), late, events(21_000, 40_000, 700)].concat();
        fs::write(place.path().join(raw_name(0)), events(0, 40_000, 2)).unwrap();
        fs::write(place.path().join(raw_name(1)), quiet).unwrap();
        let grown = growing.look().unwrap().unwrap();
        assert_eq!((grown.late_bytes, inside(&grown, 1).first()), (2 * 4096, Some(&21_000)));
        fs::write(place.path().join(raw_name(0)), events(0, 60_000, 2)).unwrap();
        assert_eq!(growing.look().unwrap().unwrap().late_bytes, 0, "it is said once");
    }

    #[test]
    fn of_too_much_the_latest_is_given_and_the_rest_is_said() {
        let place = left_behind(&[(0, events(0, 100_000, 2)), (1, events(0, 100_000, 2))]);
        let mut growing = Growing::new(place.path(), 1_000, 10 * 4096);
        let grown = growing.look().unwrap().unwrap();
        let places = grown.trace.indexes[0].iter().flat_map(|cpu| &cpu.places);
        let given: usize = places.map(|place| place.size).sum();
        assert!((8 * 4096..=10 * 4096).contains(&given), "{given}");
        assert_eq!(grown.skipped_ns, grown.span.from_ns);
        let all: Vec<u64> =
            (0..100_000).step_by(2).filter(|ns| (grown.span.from_ns..grown.span.to_ns).contains(ns)).collect();
        assert_eq!((inside(&grown, 0), inside(&grown, 1)), (all.clone(), all));
    }
}
