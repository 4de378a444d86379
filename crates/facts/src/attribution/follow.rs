//! What threads that run no vCPU waited for, while a trace is read once.
//!
//! ```text
//! thread     runs  | ready       | runs            sleeps ..
//! its CPU    --irq-+ hog | timer +-- softirq --     irq
//! taken        ^^^   ^^^   ^^^^^      ^^^^^^^       (not while it sleeps: it wants nothing)
//! ```
//! Who has the CPUs and what each task does is what timelines draw ([`Watch`], [`Tasks`]); here both forget what is over.

use super::pollers::Spent;
use crate::losses::{By, Cause, LostIn};
use crate::timeline::tasks::{Doing, Tasks};
use crate::timeline::watch::Watch;
use base::{Clock, Span};
use trace::Event;
use walk::Part;
use walk::events::host_interrupts::HostInterrupt;
use walk::replay::{ExtraEvents, WalkObserver, walked};
use walk::state::State;
use walk::thread::{Chain, Exit};
use walk::{Preemptor, Sink, Walk};

/// After so many events what was seen is told on.
const CHUNK: u64 = 1 << 14;

/// What is younger may still change: an NMI is told when it is over, and a CPU's lane when its next event comes.
const SETTLES_NS: u64 = 10_000_000;

/// Who hears what threads waited for.
pub(super) trait Hear {
    /// All that happened before `upto_ns` can be asked for, back to where the last call told that it may be forgotten.
    /// Returns from when on it is still wanted.
    fn settled(&mut self, seen: &Seen, upto_ns: u64) -> u64;
}

/// What the trace has shown of CPUs and tasks.
#[derive(Default)]
pub(super) struct Seen {
    watch: Watch,
    tasks: Tasks,
}

/// Walks through `part` for somebody who hears. Returns what was seen last, for [`Seen::end`], and when the last event came.
pub(super) fn follow(
    part: &Part,
    ignored: &[String],
    fitted: Option<Clock>,
    hear: &mut dyn Hear,
    progress: &mut dyn FnMut(u64, u64),
) -> (Seen, u64) {
    let extra = ExtraEvents { fitted, events: None };
    let (walk, totals) = walked(part, ignored, extra, Seen::default(), &mut Follow { hear, events: 0, progress });
    (walk.sink, totals.span_ns.map_or(0, |(_, end_ns)| end_ns))
}

impl Sink for Seen {
    fn interval(&mut self, _: usize, _: State, _: u64, _: u64) {}
    fn exit(&mut self, _: usize, _: &Exit) {}
    fn chain(&mut self, _: usize, _: &Chain) {}
    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}

    fn has_cpu(&mut self, cpu: usize, tid: Option<i32>, at_ns: u64) {
        self.watch.has_cpu(cpu, tid, at_ns);
    }
}

/// Hands events of a walk to what follows it.
struct Follow<'a> {
    hear: &'a mut dyn Hear,
    events: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl WalkObserver<Seen> for Follow<'_> {
    fn event(&mut self, walk: &mut Walk<Seen>, event: &Event<'_>) {
        let seen = &mut walk.sink;
        seen.tasks.event(event, seen.watch.holder(event.cpu as usize));
        seen.watch.event(event);
        self.events += 1;
        if self.events.is_multiple_of(CHUNK) {
            let wanted_ns = self.hear.settled(seen, event.time_ns.saturating_sub(SETTLES_NS));
            seen.tasks.forget(wanted_ns);
            seen.watch.forget(wanted_ns);
        }
        walk.event(event);
    }

    /// What was seen before says nothing of what comes.
    fn paused(&mut self, walk: &mut Walk<Seen>, from_ns: u64, until_ns: u64) {
        walk.paused(from_ns, until_ns);
        self.hear.settled(&walk.sink, until_ns);
        walk.sink = Seen::default();
    }

    fn progress(&mut self, done: u64, all: u64) {
        (self.progress)(done, all);
    }
}

impl Seen {
    #[cfg(test)]
    pub(super) fn of_track(tid: i32, track: Vec<(u64, Doing)>) -> Self {
        let mut seen = Self::default();
        seen.tasks.by_tid.insert(tid, track);
        seen
    }

    /// The trace ends at `end_ns`: all of it can be asked for.
    pub(super) fn end(&mut self, end_ns: u64, hear: &mut dyn Hear) {
        self.tasks.end(end_ns);
        hear.settled(self, end_ns);
    }

    /// What the thread `tid` did in `span`, piece by piece.
    fn pieces(&self, tid: i32, span: Span) -> impl Iterator<Item = (Span, Doing, Option<u32>)> {
        let track = self.tasks.by_tid.get(&tid).map_or(&[][..], Vec::as_slice);
        let first = track.partition_point(|(at_ns, _)| *at_ns <= span.from_ns).saturating_sub(1);
        let ends = track.iter().skip(first + 1).map(|(at_ns, _)| *at_ns).chain([u64::MAX]);
        let pieces = track.iter().enumerate().skip(first).zip(ends);
        pieces.take_while(move |((_, (at_ns, _)), _)| *at_ns < span.to_ns).filter_map(
            move |((place, (at_ns, doing)), end_ns)| {
                let piece = Span { from_ns: (*at_ns).max(span.from_ns), to_ns: end_ns.min(span.to_ns) };
                (piece.from_ns < piece.to_ns).then(|| (piece, *doing, cpu_of(track, place)))
            },
        )
    }

    /// Whether the trace has shown the thread.
    pub(super) fn has(&self, tid: i32) -> bool {
        self.tasks.by_tid.contains_key(&tid)
    }

    /// Whether the thread has a CPU at `at_ns`.
    pub(super) fn runs_at(&self, tid: i32, at_ns: u64) -> bool {
        let span = Span { from_ns: at_ns, to_ns: at_ns.saturating_add(1) };
        self.pieces(tid, span).any(|(_, doing, _)| matches!(doing, Doing::Running(_)))
    }

    /// Whether the thread has the CPU, or wants it, at some time in `span`.
    pub(super) fn wants(&self, tid: i32, cpu: u32, span: Span) -> bool {
        let is_it = |(_, doing, of): (Span, Doing, Option<u32>)| {
            of == Some(cpu) && matches!(doing, Doing::Running(_) | Doing::Runnable)
        };
        self.pieces(tid, span).any(is_it)
    }

    /// Since when the thread is ready at `at_ns`, if it is.
    pub(super) fn ready_since(&self, tid: i32, at_ns: u64) -> Option<u64> {
        let track = self.tasks.by_tid.get(&tid)?;
        let place = track.partition_point(|(from_ns, _)| *from_ns <= at_ns).checked_sub(1)?;
        let (from_ns, doing) = track[place];
        (doing == Doing::Runnable).then_some(from_ns)
    }

    /// What kept these threads, one after the other, from running in `span`, and when the last of them did run. Something goes through
    /// them: each has it once it runs, and has no part in what comes later.
    pub(super) fn taken_on_the_way(&self, tids: &[i32], span: Span) -> (Vec<(Span, Cause)>, u64) {
        let (mut taken, mut at_ns) = (Vec::new(), span.from_ns);
        for tid in tids {
            let rest = Span { from_ns: at_ns, to_ns: span.to_ns };
            let runs = self.pieces(*tid, rest).find(|(_, doing, _)| matches!(doing, Doing::Running(_)));
            // One that does not run at all has nothing to do with it.
            let Some((piece, ..)) = runs else { continue };
            taken.extend(self.taken(*tid, Span { from_ns: at_ns, to_ns: piece.from_ns }, true));
            at_ns = piece.from_ns;
        }
        (taken, at_ns)
    }

    /// What became of the thread's time in `span`: whatever came while it slept took nothing.
    pub(super) fn spent(&self, tid: i32, span: Span) -> Spent {
        let mut spent = Spent::default();
        let mut taken_running_ns = 0;
        for (piece, cause) in self.taken(tid, span, true) {
            spent.taken.entry(cause.by).or_default().add(piece.length_ns());
            if self.runs_at(tid, piece.from_ns) {
                taken_running_ns += piece.length_ns();
            }
        }
        for (piece, doing, _) in self.pieces(tid, span) {
            match doing {
                Doing::Running(_) => spent.ran_ns += piece.length_ns(),
                Doing::Sleeping => spent.asleep_ns += piece.length_ns(),
                Doing::Runnable | Doing::Unknown => {}
            }
        }
        spent.ran_ns = spent.ran_ns.saturating_sub(taken_running_ns);
        let taken_ns: u64 = spent.taken.values().map(|part| part.total_ns).sum();
        spent.unknown_ns = span.length_ns().saturating_sub(spent.ran_ns + spent.asleep_ns + taken_ns);
        spent
    }

    /// What took time from the thread in `span`, in order; `awake` leaves out what came while it slept.
    pub(super) fn taken(&self, tid: i32, span: Span, awake: bool) -> Vec<(Span, Cause)> {
        let mut taken = Vec::new();
        let mut was_running = false;
        for (piece, doing, cpu) in self.pieces(tid, span) {
            let ran = std::mem::replace(&mut was_running, matches!(doing, Doing::Running(_)));
            let Some(cpu) = cpu.and_then(|cpu| self.watch.cpus.get(cpu as usize)) else { continue };
            let waits = match doing {
                Doing::Running(_) => None,
                Doing::Runnable => Some(if ran { LostIn::Preempted } else { LostIn::WakeDelay }),
                Doing::Sleeping if awake => continue,
                Doing::Sleeping => None,
                Doing::Unknown => continue,
            };
            let mut at_ns = piece.from_ns;
            for (interrupt, by) in within(&cpu.above, piece) {
                let Some(by) = by else { continue };
                held(&cpu.holders, Span { from_ns: at_ns, to_ns: interrupt.from_ns }, waits, tid, &mut taken);
                taken.push((interrupt, Cause { state: lost_in(by), by: By::Interrupt(by) }));
                at_ns = interrupt.to_ns;
            }
            held(&cpu.holders, Span { from_ns: at_ns, to_ns: piece.to_ns }, waits, tid, &mut taken);
        }
        taken
    }
}

/// Those who had the CPU while the thread waited for it.
fn held(holders: &[(u64, Option<i32>)], span: Span, waits: Option<LostIn>, tid: i32, taken: &mut Vec<(Span, Cause)>) {
    let Some(state) = waits.filter(|_| span.from_ns < span.to_ns) else { return };
    for (piece, holder) in within(holders, span) {
        // Switches and wakings are told a little apart: for that time the thread itself seems to be in its own way.
        if holder != Some(tid) {
            taken.push((piece, Cause { state, by: holder.map_or(By::Unknown, By::Task) }));
        }
    }
}

/// The entries of a list that hold in `span`, each until the next one.
fn within<T: Copy>(list: &[(u64, T)], span: Span) -> impl Iterator<Item = (Span, T)> {
    let first = list.partition_point(|(at_ns, _)| *at_ns <= span.from_ns).saturating_sub(1);
    let ends = list.iter().skip(first + 1).map(|(at_ns, _)| *at_ns).chain([u64::MAX]);
    let entries = list.iter().skip(first).zip(ends).take_while(move |((at_ns, _), _)| *at_ns < span.to_ns);
    entries.filter_map(move |((at_ns, value), end_ns)| {
        let piece = Span { from_ns: (*at_ns).max(span.from_ns), to_ns: end_ns.min(span.to_ns) };
        (piece.from_ns < piece.to_ns).then_some((piece, *value))
    })
}

/// The CPU that the thread has in a piece of its track, or waits for: the one where it runs next, else the one where it ran.
fn cpu_of(track: &[(u64, Doing)], place: usize) -> Option<u32> {
    let running = |(_, doing): &(u64, Doing)| match doing {
        Doing::Running(cpu) => Some(*cpu),
        Doing::Runnable | Doing::Sleeping | Doing::Unknown => None,
    };
    let next = track[place..].iter().find_map(running);
    next.or_else(|| track[..place].iter().rev().find_map(running))
}

fn lost_in(by: HostInterrupt) -> LostIn {
    match by {
        HostInterrupt::Irq(_) | HostInterrupt::Vector(_) => LostIn::Irq,
        HostInterrupt::Softirq(_) => LostIn::Softirq,
        HostInterrupt::Nmi => LostIn::Nmi,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTOR: HostInterrupt = HostInterrupt::Vector("local_timer");

    /// Thread 7 on CPU 0: it sleeps, an interrupt wakes it, a hog (5) has the CPU, it runs, and is interrupted.
    fn seen() -> Seen {
        let mut seen = Seen::default();
        for (at_ns, tid) in [(0, 5), (300, 0), (320, 7)] {
            seen.watch.has_cpu(0, Some(tid), at_ns);
        }
        seen.watch.cpus[0].above =
            vec![(90, Some(VECTOR)), (120, None), (400, Some(HostInterrupt::Softirq(Some(1)))), (430, None)];
        let track =
            vec![(0, Doing::Running(0)), (50, Doing::Sleeping), (100, Doing::Runnable), (320, Doing::Running(0))];
        seen.tasks.by_tid.insert(7, track);
        seen
    }

    fn told(taken: Vec<(Span, Cause)>) -> Vec<(u64, u64, LostIn, By)> {
        taken.into_iter().map(|(span, cause)| (span.from_ns, span.to_ns, cause.state, cause.by)).collect()
    }

    #[test]
    fn everything_that_took_the_cpu_is_told_once_and_in_order() {
        let (irq, softirq) = (By::Interrupt(VECTOR), By::Interrupt(HostInterrupt::Softirq(Some(1))));
        let all = told(seen().taken(7, Span { from_ns: 60, to_ns: 500 }, false));
        let expected = [
            (90, 100, LostIn::Irq, irq),
            (100, 120, LostIn::Irq, irq),
            (120, 300, LostIn::WakeDelay, By::Task(5)),
            (300, 320, LostIn::WakeDelay, By::Task(0)),
            (400, 430, LostIn::Softirq, softirq),
        ];
        assert_eq!(all, expected);
        let awake = told(seen().taken(7, Span { from_ns: 60, to_ns: 500 }, true));
        assert_eq!(awake, expected[1..], "what came while it slept is not the thread's");
        let part = told(seen().taken(7, Span { from_ns: 200, to_ns: 310 }, false));
        assert_eq!(
            part,
            [(200, 300, LostIn::WakeDelay, By::Task(5)), (300, 310, LostIn::WakeDelay, By::Task(0))],
            "cut at both ends"
        );
        assert!(seen().taken(8, Span { from_ns: 0, to_ns: 500 }, false).is_empty());
    }

    #[test]
    fn the_time_of_a_thread_is_its_own_or_somebodys_or_nobody_knows_whose() {
        let spent = seen().spent(7, Span { from_ns: 20, to_ns: 500 });
        let taken: Vec<_> =
            spent.taken.iter().map(|(by, part)| (*by, part.count, part.total_ns, part.max_ns)).collect();
        let (irq, softirq) = (By::Interrupt(VECTOR), By::Interrupt(HostInterrupt::Softirq(Some(1))));
        assert_eq!(
            taken,
            [(By::Task(0), 1, 20, 20), (By::Task(5), 1, 180, 180), (irq, 1, 20, 20), (softirq, 1, 30, 30)]
        );
        assert_eq!((spent.ran_ns, spent.asleep_ns, spent.unknown_ns), (30 + 180 - 30, 50, 0));
        let mut late = seen();
        late.tasks.by_tid.insert(7, vec![(320, Doing::Running(0))]);
        let spent = late.spent(7, Span { from_ns: 20, to_ns: 500 });
        assert_eq!((spent.ran_ns, spent.unknown_ns), (180 - 30, 300), "before its first event nothing tells");
        let never = late.spent(8, Span { from_ns: 20, to_ns: 500 });
        assert_eq!((never.unknown_ns, never.taken.len()), (480, 0));
    }

    #[test]
    fn what_goes_through_threads_waits_for_each_until_it_runs() {
        let mut seen = seen();
        // Thread 3 rings at 80 and sleeps on at once; thread 7 hears of it, and thread 8, which spins on CPU 1, is last.
        seen.tasks.by_tid.insert(3, vec![(0, Doing::Running(1)), (85, Doing::Sleeping)]);
        let (taken, at_ns) = seen.taken_on_the_way(&[3, 7], Span { from_ns: 80, to_ns: 500 });
        let expected = [
            (100, 120, LostIn::Irq, By::Interrupt(VECTOR)),
            (120, 300, LostIn::WakeDelay, By::Task(5)),
            (300, 320, LostIn::WakeDelay, By::Task(0)),
        ];
        assert_eq!((told(taken), at_ns), (expected.to_vec(), 320), "and not the softirq that came after it ran");
        let (taken, at_ns) = seen.taken_on_the_way(&[3, 9], Span { from_ns: 200, to_ns: 310 });
        assert_eq!((told(taken), at_ns), (Vec::new(), 200), "neither runs in that time");
    }

    #[test]
    fn a_thread_runs_or_is_ready_since_when_it_became_so() {
        let seen = seen();
        assert!(seen.runs_at(7, 320) && seen.runs_at(7, 10_000) && !seen.runs_at(7, 319) && !seen.runs_at(8, 320));
        assert_eq!(
            (seen.ready_since(7, 250), seen.ready_since(7, 320), seen.ready_since(7, 60)),
            (Some(100), None, None)
        );
    }
}
