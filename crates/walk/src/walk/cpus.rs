//! Who is on which CPU: task switches, wakings, losses. The sink hears of each change, see [`Sink::has_cpu`].

use super::stages::Raised;
use super::vcpu_names;
use super::waiting::Waiting;
use super::{Sink, Waker, Walk};
use crate::events::host_interrupts::Begun;
use crate::events::roles;
use crate::thread::Surroundings;
use trace::Event;

/// One CPU of the recorded machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Cpu {
    /// Task that runs there, if known.
    pub current: Option<i32>,
    /// Its number in `Walk::threads`, if it has one.
    pub thread: Option<usize>,
    pub since_ns: u64,
    /// Time of its last event.
    pub last_ns: u64,
    /// Threads that were pre-empted there.
    pub waiting: Vec<Waiting>,
    /// Interrupts that it serves.
    pub begun: Begun,
    /// Events were lost there since its last switch: an interrupt whose begin is among them may stand above all that is known.
    pub(crate) lost_begin: bool,
    /// When the handler of a device's interrupt began that it is in, whatever task has it.
    pub(crate) irq_since_ns: Option<u64>,
    /// A device's interrupt that was handed to KVM last.
    pub raised: Option<Raised>,
}

/// A stretch in which what a CPU did is not in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    cpu: usize,
    from_ns: u64,
    until_ns: u64,
}

impl<S: Sink> Walk<S> {
    /// One task leaves `cpu`, another comes.
    pub(super) fn switch(&mut self, cpu: usize, event: Event<'_>) {
        let (Some(prev), Some(next)) = (event.get(roles::switch::PREV_TID), event.get(roles::switch::NEXT_TID)) else {
            return;
        };
        self.switches = true;
        self.seen.switches = true;
        let now_ns = self.plausible(event.time_ns);
        let (prev, next) = (prev as i32, next as i32);
        let ready = roles::stays_ready(&event);
        let here = &self.cpus[cpu];
        if let Some(holder) = here.thread.filter(|_| here.current != Some(prev)) {
            // Who was there has left, and nothing told when.
            let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me: holder };
            self.threads[holder].missed_switch(cx);
        }
        self.charge(cpu, Some(prev), now_ns);
        if prev != 0 {
            let me = self.task(cpu, prev, event.content(roles::switch::PREV_COMM), now_ns);
            if self.cpus[cpu].thread != Some(me) {
                self.arrives_on(me, cpu, now_ns);
            }
            if self.threads[me].is_vcpu {
                self.count_vcpu(me);
            }
            let thread = &mut self.threads[me];
            let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
            thread.switch_out(now_ns, ready, cx);
            if !ready && roles::stops(&event) {
                thread.is_stopped(cx);
            }
            thread.gone = false;
            if roles::ends(&event) {
                thread.ends();
            }
            if now_ns < self.lossy_until_ns {
                // This CPU tells its story, so it is another one whose events are missing.
                thread.lost(now_ns, self.lossy_until_ns, false, cx);
            } else if ready {
                thread.waits_on = Some(cpu);
                self.cpus[cpu].waiting.push(Waiting::new(me));
            }
        }
        let here = &mut self.cpus[cpu];
        here.current = Some(next);
        here.thread = None;
        here.begun.clear();
        // The scheduler switches in no interrupt.
        here.lost_begin = false;
        here.irq_since_ns = None;
        self.sink.has_cpu(cpu, Some(next), now_ns);
        if next != 0 {
            let me = self.task(cpu, next, event.content(roles::switch::NEXT_COMM), now_ns);
            self.stop_waiting(me, now_ns);
            self.arrives_on(me, cpu, now_ns);
            let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
            self.threads[me].switch_in(now_ns, cx);
            self.flights.runs(me, now_ns, |vector, told| self.sink.interrupt(me, vector, told));
            // One vCPU more than are told apart is met, if at all, by its own KVM event.
            if self.is_crowded() && !self.threads[me].is_vcpu {
                self.cpus[cpu].thread = None;
            }
        }
    }

    /// A `sched_waking`, in the context of thread `by` if it is one of ours.
    pub(super) fn waken_by(&mut self, by: Option<usize>, event: &Event<'_>, now_ns: u64, before_ns: u64) {
        let Some(tid) = event.get(roles::waking::TID) else { return };
        // A task that an interrupt wakes on its own CPU never slept: it goes on.
        if by.is_none_or(|by| self.threads[by].tid != tid as i32) {
            let last_cpu = event.get(roles::waking::LAST_CPU);
            self.waking(tid as i32, self.waker(event, last_cpu.is_some()), last_cpu, now_ns);
            if let Some(me) = self.by_tid.get(&(tid as i32)) {
                self.timers.wake(event.cpu as usize, before_ns, *me);
            }
        }
    }

    /// In whose time a task is made ready, if the event comes in it: `sched_wakeup`, which stands in for `sched_waking`, may
    /// come later on another CPU.
    fn waker(&self, event: &Event<'_>, is_waking: bool) -> Waker {
        let here = &self.cpus[event.cpu as usize];
        let task = if event.tid == trace::batch::NO_TID { here.current } else { Some(event.tid) };
        match (here.begun.top(), task) {
            _ if !is_waking => Waker::Unknown,
            (Some(by), _) => Waker::Interrupt(by),
            (None, _) if here.lost_begin && self.interrupts => Waker::Unknown,
            (None, Some(tid)) => Waker::Task(tid),
            (None, None) => Waker::Unknown,
        }
    }

    /// A task is made ready by `waker`; `slept_on` is the CPU that it ran on last, where the event says it.
    pub(super) fn waking(&mut self, tid: i32, waker: Waker, slept_on: Option<u64>, now_ns: u64) {
        self.seen.waking = true;
        let Some(me) = self.by_tid.get(&tid).copied() else { return };
        let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
        self.threads[me].waking(now_ns, waker, slept_on.map(|cpu| cpu as usize), cx);
    }

    /// Thread `me` runs on `cpu`, and no longer where it was.
    pub(super) fn arrives_on(&mut self, me: usize, cpu: usize, now_ns: u64) {
        let thread = &mut self.threads[me];
        if let Some(waited) = thread.waits_on.take() {
            // It runs, and no switch told since when: who ran instead of it is no longer known.
            self.cpus[waited].waiting.retain(|waiting| !waiting.is_of(me));
        }
        if let Some(old) = thread.cpu.replace(cpu).filter(|old| *old != cpu) {
            let left = &mut self.cpus[old];
            if left.thread == Some(me) {
                left.current = None;
                left.thread = None;
                left.begun.clear();
                self.sink.has_cpu(old, None, now_ns);
                if self.switches {
                    let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
                    thread.missed_switch(cx);
                }
            }
        }
        let tid = self.threads[me].tid;
        if self.cpus[cpu].current != Some(tid) {
            self.charge(cpu, Some(tid), now_ns);
            self.cpus[cpu].begun.clear();
        }
        let here = &mut self.cpus[cpu];
        here.current = Some(tid);
        here.thread = Some(me);
        self.sink.has_cpu(cpu, Some(tid), now_ns);
    }

    /// Task `tid` has `cpu` when the trace begins.
    pub(super) fn runs_already(&mut self, cpu: usize, tid: i32) {
        if cpu >= self.cpus.len() && !self.meet_cpu(cpu) {
            return;
        }
        if self.expected.contains_key(&tid) {
            let me = self.meet(tid, self.origin_ns);
            return self.arrives_on(me, cpu, self.origin_ns);
        }
        self.cpus[cpu].current = Some(tid);
        self.cpus[cpu].since_ns = self.origin_ns;
        self.sink.has_cpu(cpu, Some(tid), self.origin_ns);
    }

    /// Events of `cpu` were lost from its last event on.
    pub(super) fn lost(&mut self, cpu: usize, event: Event<'_>) {
        self.losses.push((cpu as u32, self.plausible(event.time_ns), event.or_zero(0), event.or_zero(1)));
        let from_ns = self.cpus[cpu].last_ns.max(self.origin_ns);
        self.unseen(Gap { cpu, from_ns, until_ns: self.plausible(event.until_ns) });
    }

    /// The trace does not hold what `cpu` did from `from_ns` to `until_ns`.
    pub(crate) fn uncovered(&mut self, cpu: u32, from_ns: u64, until_ns: u64) {
        let gap = Gap { cpu: cpu as usize, from_ns: from_ns.max(self.origin_ns), until_ns: self.plausible(until_ns) };
        let place = self.gaps.partition_point(|other| other.from_ns >= gap.from_ns);
        self.gaps.insert(place, gap);
        self.next_gap_ns = self.gaps.last().map_or(u64::MAX, |gap| gap.from_ns);
    }

    /// The recorder paused from `from_ns` to `until_ns`, which is over: no CPU is known in between.
    pub fn paused(&mut self, from_ns: u64, until_ns: u64) {
        self.pauses.push((from_ns, until_ns));
        for cpu in 0..self.cpus.len() {
            self.unseen(Gap { cpu, from_ns, until_ns });
        }
    }

    /// Gaps that have begun at `now_ns` begin.
    #[cold]
    pub(super) fn begin_gaps(&mut self, now_ns: u64) {
        while let Some(gap) = self.gaps.pop_if(|gap| gap.from_ns <= now_ns) {
            if gap.cpu < self.cpus.len() || self.meet_cpu(gap.cpu) {
                self.unseen(gap);
            }
        }
        self.next_gap_ns = self.gaps.last().map_or(u64::MAX, |gap| gap.from_ns);
    }

    /// What a CPU does in `gap` is unknown, and so is what threads do that may be there (T19).
    fn unseen(&mut self, gap: Gap) {
        let Gap { cpu, from_ns, until_ns } = gap;
        self.flights.forget(|thread, vector, told| self.sink.interrupt(thread, vector, told));
        self.timers.forget();
        self.lossy_until_ns = self.lossy_until_ns.max(until_ns);
        let here = self.cpus[cpu].thread;
        for me in 0..self.threads.len() {
            // A thread on another CPU could not get here without an event there.
            let affected = here == Some(me) || self.threads[me].off().is_some();
            if affected {
                self.stop_waiting(me, from_ns);
                let was_here = self.threads[me].cpu == Some(cpu);
                let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
                self.threads[me].lost(from_ns, until_ns, was_here, cx);
            }
        }
        self.stop_charging(cpu, from_ns);
        let here = &mut self.cpus[cpu];
        here.current = None;
        here.thread = None;
        here.begun.clear();
        here.lost_begin = true;
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
            let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
            self.threads[me].is_called(comm, cx);
            if self.by_name && !self.threads[me].is_vcpu {
                let thread = &mut self.threads[me];
                thread.vcpu_id = vcpu_names::of_kvm(&thread.comm);
                thread.is_vcpu = thread.vcpu_id.is_some();
                if thread.is_vcpu {
                    self.sink.serves(me, now_ns);
                }
            }
        }
        me
    }
}
