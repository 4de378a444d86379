//! Who is on which CPU: task switches, wakings, losses. The sink hears of each change, see [`Sink::has_cpu`].

use super::{Preemptor, Sink, Walk};
use crate::shared::machine::Cx;
use crate::shared::roles;
use trace::Event;

/// One CPU of the recorded machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Cpu {
    /// Task that runs there, if known.
    pub current: Option<i32>,
    /// Its number in `Walk::threads`, if it has one.
    pub thread: Option<usize>,
    /// Since when.
    since_ns: u64,
    /// Time of its last event.
    pub last_ns: u64,
    /// Threads that were pre-empted there and wait.
    waiting: Vec<(usize, bool)>,
}

impl<S: Sink> Walk<S> {
    /// One task leaves `cpu`, another comes.
    pub(super) fn switch(&mut self, cpu: usize, event: Event<'_>) {
        self.switches = true;
        let now_ns = self.plausible(event.time_ns);
        let prev = event.or_zero(roles::switch::PREV_TID) as i32;
        let next = event.or_zero(roles::switch::NEXT_TID) as i32;
        let ready = roles::stays_ready(&event);
        self.charge(cpu, prev, now_ns);
        if prev != 0 {
            let me = self.task(cpu, prev, event.content(roles::switch::PREV_COMM), now_ns);
            let thread = &mut self.threads[me];
            let cx = &mut Cx { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
            thread.switch_out(now_ns, ready, cx);
            if now_ns < self.lossy_until_ns {
                thread.lost(now_ns, self.lossy_until_ns, cx);
            } else if ready {
                thread.waits_on = Some(cpu);
                self.cpus[cpu].waiting.push((me, true));
            }
        }
        let here = &mut self.cpus[cpu];
        here.since_ns = now_ns;
        here.current = Some(next);
        here.thread = None;
        self.sink.has_cpu(cpu, Some(next), now_ns);
        if next != 0 {
            let me = self.task(cpu, next, event.content(roles::switch::NEXT_COMM), now_ns);
            self.stop_waiting(me, now_ns);
            self.arrives_on(me, cpu, now_ns);
            let cx = &mut Cx { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
            self.threads[me].switch_in(now_ns, cx);
        }
    }

    /// Tells those who wait on `cpu` that `task` ran there until `now_ns`.
    fn charge(&mut self, cpu: usize, task: i32, now_ns: u64) {
        let here = &mut self.cpus[cpu];
        for (waiting, first) in &mut here.waiting {
            let by = Preemptor { tid: task, cpu: cpu as u32, took: *first };
            self.sink.preempted(*waiting, &by, here.since_ns, now_ns);
            *first = false;
        }
    }

    /// The thread runs again, here or elsewhere: its pre-emption is over.
    fn stop_waiting(&mut self, me: usize, now_ns: u64) {
        let Some(cpu) = self.threads[me].waits_on.take() else { return };
        let here = &mut self.cpus[cpu];
        let Some(place) = here.waiting.iter().position(|(waiting, _)| *waiting == me) else { return };
        let (_, first) = here.waiting.swap_remove(place);
        // If it comes back on the same CPU its last slice was charged by this very switch, and has length 0 here.
        let task = here.current.unwrap_or(0);
        if now_ns > here.since_ns || first {
            let by = Preemptor { tid: task, cpu: cpu as u32, took: first };
            self.sink.preempted(me, &by, here.since_ns, now_ns);
        }
    }

    /// A task is made ready.
    pub(super) fn waking(&mut self, tid: i32, now_ns: u64) {
        let Some(me) = self.by_tid.get(&tid).copied() else { return };
        let cx = &mut Cx { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
        self.threads[me].waking(now_ns, cx);
    }

    /// Thread `me` runs on `cpu`, and no longer where it was.
    pub(super) fn arrives_on(&mut self, me: usize, cpu: usize, now_ns: u64) {
        let thread = &mut self.threads[me];
        if let Some(waited) = thread.waits_on.take() {
            // It runs, and no switch told since when: who ran instead of it is no longer known.
            self.cpus[waited].waiting.retain(|(waiting, _)| *waiting != me);
        }
        if let Some(old) = thread.cpu.replace(cpu).filter(|old| *old != cpu) {
            let left = &mut self.cpus[old];
            if left.thread == Some(me) {
                left.current = None;
                left.thread = None;
                self.sink.has_cpu(old, None, now_ns);
                if self.switches {
                    let cx = &mut Cx { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
                    thread.missed_switch(cx);
                }
            }
        }
        let here = &mut self.cpus[cpu];
        here.current = Some(thread.tid);
        here.thread = Some(me);
        self.sink.has_cpu(cpu, Some(thread.tid), now_ns);
    }

    /// Events of `cpu` were lost from its last event on.
    pub(super) fn lost(&mut self, cpu: usize, event: Event<'_>) {
        self.losses.push((cpu as u32, self.plausible(event.time_ns), event.or_zero(0), event.or_zero(1)));
        self.interrupts.forget();
        let from_ns = self.cpus[cpu].last_ns.max(self.origin_ns);
        let until_ns = self.plausible(event.until_ns);
        self.lossy_until_ns = self.lossy_until_ns.max(until_ns);
        let here = self.cpus[cpu].thread;
        for me in 0..self.threads.len() {
            // A thread on another CPU could not get here without an event there.
            let affected = here == Some(me) || self.threads[me].off().is_some();
            if affected {
                self.stop_waiting(me, from_ns);
                let cx = &mut Cx { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
                self.threads[me].lost(from_ns, until_ns, cx);
            }
        }
        let here = &mut self.cpus[cpu];
        here.current = None;
        here.thread = None;
        self.sink.has_cpu(cpu, None, from_ns);
    }

    /// The thread of a task on `cpu`, which is called `comm` now.
    fn task(&mut self, cpu: usize, tid: i32, comm: Option<&[u8]>, now_ns: u64) -> usize {
        let here = &self.cpus[cpu];
        let me = match here.thread.filter(|_| here.current == Some(tid)) {
            Some(me) => me,
            None => self.by_tid.get(&tid).copied().unwrap_or_else(|| self.meet(tid, now_ns)),
        };
        if let Some(comm) = comm {
            self.threads[me].is_called(comm);
        }
        me
    }
}
