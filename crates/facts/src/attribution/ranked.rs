//! Samples without times: the longest of them are taken for the longest delays that the trace shows of their threads.
//!
//! ```text
//! histogram of thread 0, from its end    912  640  87  85  85 ..
//! delays of its thread, longest first    905  633  90  80  ..        905 ns of the sample of 912 have the delay's causes
//! ```
//! A delay is what took time from the thread without a pause. Where a program measured and the trace looked for the same time, order
//! alone decides; where not, what does not fit is unexplained.

use super::Over;
use super::below::{Below, Stop, beside};
use super::follow::{Hear, Seen};
use super::sums::{Names, Sums, Taken};
use crate::losses::Cause;
use crate::samples::{Samples, Source};
use base::Span;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many delays of a thread are kept, the longest.
const KEPT: usize = 1 << 14;

/// What lies closer together is one delay: between an interrupt and a switch the kernel works for neither. Our own limit.
const JOINS_NS: u64 = 2_000;

#[derive(Default)]
struct Delays {
    /// Up to here the thread was followed.
    told_ns: u64,
    /// It ran or waited in the trace: names outlive their threads.
    is_seen: bool,
    open: Option<Delay>,
    all: Vec<Delay>,
}

struct Delay {
    span: Span,
    taken: Vec<(Where, Cause, u64)>,
}

/// In whose trace a cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Own,
    Below,
}

impl Delays {
    fn take(&mut self, piece: Span, of: Where, cause: Cause) {
        let goes_on = self.open.as_ref().is_some_and(|open| piece.from_ns < open.span.to_ns.saturating_add(JOINS_NS));
        if !goes_on {
            self.close();
        }
        let open = self.open.get_or_insert(Delay { span: piece, taken: Vec::new() });
        open.span.to_ns = open.span.to_ns.max(piece.to_ns);
        match open.taken.iter_mut().find(|(known_of, known, _)| (*known_of, *known) == (of, cause)) {
            Some((.., ns)) => *ns += piece.length_ns(),
            None => open.taken.push((of, cause, piece.length_ns())),
        }
    }

    fn close(&mut self) {
        self.all.extend(self.open.take());
        if self.all.len() >= 2 * KEPT {
            self.longest();
        }
    }

    fn longest(&mut self) {
        self.all.sort_by_key(|delay| Reverse(delay.span.length_ns()));
        self.all.truncate(KEPT);
    }
}

/// Collects the delays of threads while a trace is read.
pub(super) struct Ranked<'p> {
    threads: BTreeMap<i32, Delays>,
    below: Option<Below<'p>>,
}

/// What a cause is called in the trace that it is in.
type NameOf<'n> = dyn FnMut(Where, Cause) -> Arc<str> + 'n;

impl<'p> Ranked<'p> {
    pub(super) fn new(candidates: &[i32], span: Span, below: Option<Below<'p>>) -> Self {
        let delays = || Delays { told_ns: span.from_ns, ..Delays::default() };
        Self { threads: candidates.iter().map(|tid| (*tid, delays())).collect(), below }
    }

    /// The samples of a file, each with the delay of its rank, for each limit.
    pub(super) fn sums(self, file: &[Samples], over: &[Over], names: &mut Names<'_>) -> Vec<Sums> {
        let mut threads: BTreeMap<i32, Delays> =
            self.threads.into_iter().filter(|(_, delays)| delays.is_seen).collect();
        let measured = measuring(&threads.keys().copied().collect::<Vec<_>>(), file);
        let mut below = self.below.as_ref().map(|below| Names::new(below.part));
        let mut name = |of: Where, cause: Cause| match (of, &mut below) {
            (Where::Below, Some(below)) => below.of(cause),
            (Where::Own | Where::Below, _) => names.of(cause),
        };
        let mut all: Vec<Sums> = over.iter().map(|over| Sums::above(over.above_ns)).collect();
        for (place, samples) in file.iter().enumerate() {
            let named = samples.tid.filter(|tid| threads.contains_key(tid));
            let tid = named.or(measured.get(place).copied());
            let mut delays = tid.and_then(|tid| threads.remove(&tid)).unwrap_or_default();
            delays.close();
            delays.longest();
            for (over, sums) in over.iter().zip(&mut all) {
                rank(samples, over.above_ns, &delays.all, (&mut name, sums));
            }
        }
        all
    }
}

/// Which threads of a program measured, in the order of its samples: the first one makes the others, and oslat makes threads of their
/// own to warm the CPUs before. None if there are more, of several runs.
fn measuring(tids: &[i32], file: &[Samples]) -> Vec<i32> {
    let (threads, others) = (file.len(), tids.len().saturating_sub(file.len()));
    let warms = file.first().is_some_and(|samples| samples.source == Source::Oslat);
    let skipped = match others {
        0 | 1 => others,
        // jitterdebugger's writer comes last.
        2 if !warms => 1,
        _ if warms && others == threads + 1 => others,
        _ => return Vec::new(),
    };
    tids.iter().skip(skipped).take(threads).copied().collect()
}

/// Gives the samples of one thread that are longer than `above_ns` the causes of its delays.
fn rank(samples: &Samples, above_ns: u64, delays: &[Delay], (name, sums): (&mut NameOf<'_>, &mut Sums)) {
    let mut delays = delays.iter();
    let mut longest = samples.extremes_ns().1;
    for bucket in samples.buckets.iter().rev() {
        let interval = Span { from_ns: bucket.from_ns, to_ns: bucket.to_ns };
        let is_one_length = interval.length_ns() <= samples.unit_ns;
        for done in 0..bucket.count {
            let delay = delays.next();
            let shown_ns = delay.map_or(0, |delay| delay.span.length_ns());
            let is_longest = longest.is_some();
            let length_ns = match longest.take() {
                Some(longest_ns) => longest_ns,
                None if is_one_length => samples.printed(interval),
                None => shown_ns.clamp(bucket.from_ns, bucket.to_ns.saturating_sub(1).max(bucket.from_ns)),
            };
            if length_ns <= above_ns {
                // It is the longest that is left out: without a cause of the others it may be the longest of all.
                return sums.add_unexplained(length_ns, 1);
            }
            let Some(delay) = delay else {
                let alike = if is_longest { 1 } else { bucket.count - done };
                sums.add_unexplained(length_ns, alike);
                if is_longest {
                    continue;
                }
                break;
            };
            let taken = delay.taken.iter().map(|(of, cause, ns)| Taken {
                cause: name(*of, *cause),
                state: cause.state,
                inside_ns: *ns,
                beside_ns: 0,
            });
            sums.add(length_ns, &taken.collect::<Vec<_>>());
        }
    }
}

impl Hear for Ranked<'_> {
    fn settled(&mut self, seen: &Seen, upto_ns: u64) -> u64 {
        let mut wanted_ns = upto_ns;
        for (tid, delays) in &mut self.threads {
            // Who had its CPU while it waits is told when it gets one, and whom a stop delayed once it is over.
            let upto_ns = seen.ready_since(*tid, upto_ns).unwrap_or(upto_ns);
            let upto_ns = self.below.as_ref().map_or(upto_ns, |below| below.open_at(upto_ns)).max(delays.told_ns);
            let span = Span { from_ns: delays.told_ns, to_ns: upto_ns };
            let stops: Vec<&Stop> = self.below.iter().flat_map(|below| below.delayed(seen, *tid, span)).collect();
            let own = beside(seen.taken(*tid, span, true), &stops).into_iter();
            let taken = own.map(|(piece, cause)| (piece, Where::Own, cause));
            let of_stops = stops.iter().flat_map(|stop| &stop.pieces);
            let mut taken: Vec<_> =
                taken.chain(of_stops.map(|(piece, cause)| (*piece, Where::Below, *cause))).collect();
            taken.sort_by_key(|(piece, ..)| piece.from_ns);
            taken.into_iter().for_each(|(piece, of, cause)| delays.take(piece, of, cause));
            delays.told_ns = delays.told_ns.max(upto_ns);
            delays.is_seen |= seen.has(*tid);
            wanted_ns = wanted_ns.min(delays.told_ns);
        }
        wanted_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::model::PartFlow;
    use crate::ledger::quiet::quiet;
    use crate::losses::{By, LostIn};
    use crate::timeline::tasks::Doing;
    use walk::events::reasons::Isa;

    fn cause(tid: i32) -> Cause {
        Cause { state: LostIn::Preempted, by: By::Task(tid) }
    }

    fn file(source: Source, threads: usize) -> Vec<Samples> {
        (0..threads).map(|thread| Samples::new(source, thread.to_string())).collect()
    }

    #[test]
    fn the_threads_that_measure_are_known_by_their_order() {
        let measured = |tids: &[i32], source, threads| measuring(tids, &file(source, threads));
        assert_eq!(measured(&[4, 5, 6], Source::Cyclictest, 2), [5, 6]);
        assert_eq!(measured(&[5, 6], Source::Cyclictest, 2), [5, 6], "the first one was asleep all the time");
        assert_eq!(measured(&[4, 5, 6, 7], Source::Jitterdebugger, 2), [5, 6], "the last one writes");
        assert_eq!(measured(&[4, 5, 6, 7, 8], Source::Oslat, 2), [7, 8], "two warmed the CPUs");
        assert!(measured(&[4, 5, 6, 7, 8, 9], Source::Cyclictest, 2).is_empty(), "two runs");
    }

    #[test]
    fn delays_close_together_are_one_and_the_longest_sample_has_the_longest() {
        let mut delays = Delays::default();
        for (from_ns, to_ns, tid) in [(0, 5_000, 1), (6_000, 9_000, 2), (50_000, 90_000, 3), (200_000, 200_500, 1)] {
            delays.take(Span { from_ns, to_ns }, Where::Own, cause(tid));
        }
        delays.close();
        delays.longest();
        let lengths: Vec<u64> = delays.all.iter().map(|delay| delay.span.length_ns()).collect();
        assert_eq!(lengths, [40_000, 9_000, 500]);
        let mut samples = Samples::new(Source::Cyclictest, "0");
        samples.between(Some(1), Some(42));
        for us in [1, 10, 42] {
            samples.add(us, 1);
        }
        let mut sums = Sums::above(5_000);
        let comms = (1..4).map(|tid| (tid, format!("t{tid}"))).collect();
        let part = PartFlow { comms, ..quiet(Isa::Vmx) };
        let mut names = Names::new(&part);
        rank(&samples, 5_000, &delays.all, (&mut |_, cause| names.of(cause), &mut sums));
        let of = |name: &str| sums.causes.get(name).map(|part| part.total_ns);
        assert_eq!((of("t3"), of("t1"), of("t2")), (Some(40_000), Some(5_000), Some(3_000)));
        assert_eq!((sums.samples, sums.total_ns, sums.unexplained.total_ns), (2, 52_000, 4_000));
    }

    #[test]
    fn samples_beyond_the_last_delay_are_unexplained_together() {
        let mut samples = Samples::new(Source::Cyclictest, "0");
        samples.between(Some(1), Some(9_000));
        samples.add(20, 1_000_000_000_000);
        samples.add_unkept(100_000, 2);
        let mut sums = Sums::default();
        rank(&samples, 0, &[], (&mut |_, _| "nobody".into(), &mut sums));
        assert_eq!((sums.samples, sums.unexplained.max_ns), (1_000_000_000_002, 9_000_000));
    }

    #[test]
    fn what_stopped_the_guest_when_its_thread_was_due_is_a_delay_and_other_stops_are_none() {
        let (guest, host) =
            (quiet(Isa::Vmx), PartFlow { comms: BTreeMap::from([(1, "hog".to_owned())]), ..quiet(Isa::Vmx) });
        let stop = |from_ns, to_ns| (Span { from_ns, to_ns }, cause(1));
        let stops = Stop::all([stop(100_000, 500_000), stop(2_000_000, 2_900_000)]);
        let below = Below { part: &host, stops: BTreeMap::from([(0, stops)]) };
        let whole = Span { from_ns: 0, to_ns: 9_000_000 };
        let mut ranked = Ranked::new(&[7], whole, Some(below));
        // It sleeps, is woken as the first stop is over, and sleeps all through the second one.
        let track = vec![
            (0, Doing::Running(0)),
            (10_000, Doing::Sleeping),
            (510_000, Doing::Runnable),
            (515_000, Doing::Running(0)),
            (520_000, Doing::Sleeping),
        ];
        let seen = Seen::of_track(7, track);
        ranked.settled(&seen, 9_000_000);
        let mut samples = Samples::new(Source::Cyclictest, "0");
        samples.between(Some(1), Some(410));
        samples.add(410, 1);
        let sums = ranked.sums(&[samples], &[Over { limit_ns: None, above_ns: 0 }], &mut Names::new(&guest)).remove(0);
        assert_eq!(sums.causes.get("hog").map(|part| part.total_ns), Some(400_000));
        assert_eq!(sums.unexplained.total_ns, 10_000);
    }
}
