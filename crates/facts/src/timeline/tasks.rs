//! Was a task running, did it wait for a CPU, or did it sleep?
//!
//! ```text
//! sched_switch to it: running      from it: runnable if it was ready, else sleeping      sched_waking: runnable
//! ```
//! For tasks that are no vCPUs, of which the walk keeps nothing. A state that no event ended properly is unknown from its
//! begin, but for a wait: a task that turns up on a CPU cannot have come there before the last switch that is seen there.
//! Behind lost events a task that was off the CPU may have run on the CPU that lost them, so the gap is unknown, and what
//! follows it until the task's next event, unless that is a waking: then it was asleep.

use super::watch::forget;
use rustc_hash::FxHashMap;
use trace::Event;
use trace::batch::NO_TID;
use walk::events::roles::{self, ROWS, Role};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It has this CPU.
    Running(u32),
    /// It is ready and waits for a CPU.
    Runnable,
    /// It waits for something else.
    Sleeping,
    Unknown,
}

/// One task: from when on it does what, in time order.
pub(crate) type Track = Vec<(u64, Doing)>;

#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pub by_tid: FxHashMap<i32, Track>,
    /// Stretches in which some CPU lost events, in time order, joined where they overlap.
    gaps: Vec<(u64, u64)>,
    /// When each CPU was last seen to change its task.
    switched_ns: FxHashMap<u32, u64>,
}

impl Tasks {
    /// Takes in an event; `holder` had its CPU until now.
    pub(crate) fn event(&mut self, event: &Event<'_>, holder: Option<i32>) {
        let at_ns = event.time_ns;
        if event.is_loss() {
            return self.lost(at_ns, event.until_ns, holder);
        }
        if holder.is_none() && event.tid != NO_TID {
            self.found_on(event.cpu, event.tid, at_ns);
        }
        match ROWS.get(usize::from(event.kind)).map(|row| row.role) {
            Some(Role::Switch) => {
                let prev = event.or_zero(roles::switch::PREV_TID) as i32;
                let next = event.or_zero(roles::switch::NEXT_TID) as i32;
                self.switch(event.cpu, at_ns, (prev, roles::stays_ready(event)), next);
            }
            Some(Role::Waking) => self.waking(event.or_zero(roles::waking::TID) as i32, at_ns),
            _ => {}
        }
    }

    /// `cpu` changes from `prev`, which stays `ready` or not, to `next`.
    pub(crate) fn switch(&mut self, cpu: u32, at_ns: u64, (prev, ready): (i32, bool), next: i32) {
        let off = if ready { Doing::Runnable } else { Doing::Sleeping };
        if prev != 0 {
            self.came_unseen(prev, cpu);
            self.does(prev, at_ns, off);
        }
        self.switched_ns.insert(cpu, at_ns);
        if next != 0 {
            self.doubt(next, |doing| matches!(doing, Doing::Running(_)));
            self.does(next, at_ns, Doing::Running(cpu));
        }
    }

    /// An event says that `tid` is on `cpu`, of which nothing was known.
    pub(crate) fn found_on(&mut self, cpu: u32, tid: i32, at_ns: u64) {
        let known = self.by_tid.get(&tid).and_then(|track| track.last()).map(|(_, doing)| *doing);
        if tid != 0 && known != Some(Doing::Running(cpu)) {
            self.came_unseen(tid, cpu);
            self.does(tid, at_ns, Doing::Running(cpu));
        }
    }

    /// `tid` has `cpu`, and no switch told since when: at the earliest since the last one there.
    fn came_unseen(&mut self, tid: i32, cpu: u32) {
        let switched_ns = self.switched_ns.get(&cpu).copied().unwrap_or(0);
        let Some(track) = self.by_tid.get_mut(&tid) else { return };
        match track.last_mut() {
            Some((since_ns, Doing::Runnable)) if *since_ns < switched_ns => track.push((switched_ns, Doing::Unknown)),
            Some((_, doing)) if *doing != Doing::Running(cpu) => *doing = Doing::Unknown,
            Some(_) | None => {}
        }
    }

    /// `tid` is made ready.
    pub(crate) fn waking(&mut self, tid: i32, at_ns: u64) {
        let wakes = match self.by_tid.get(&tid).and_then(|track| track.last()) {
            None | Some((_, Doing::Sleeping | Doing::Unknown)) => true,
            Some((_, Doing::Running(_))) => false,
            // It was ready already, unless it has run and slept unseen.
            Some((since_ns, Doing::Runnable)) => hidden(&self.gaps, *since_ns, at_ns).is_some(),
        };
        if wakes {
            self.does(tid, at_ns, Doing::Runnable);
        }
    }

    /// Events of a CPU are lost from `from_ns` to `until_ns`; `holder` was there.
    pub(crate) fn lost(&mut self, from_ns: u64, until_ns: u64, holder: Option<i32>) {
        match self.gaps.last_mut().filter(|(_, until)| from_ns <= *until) {
            Some((_, until)) => *until = (*until).max(until_ns),
            None => self.gaps.push((from_ns, until_ns)),
        }
        if let Some(holder) = holder.filter(|holder| *holder != 0) {
            self.does(holder, from_ns, Doing::Unknown);
        }
    }

    /// Forgets what was over at `before_ns`.
    pub(crate) fn forget(&mut self, before_ns: u64) {
        self.by_tid.values_mut().for_each(|track| forget(track, before_ns));
    }

    /// The trace ends at `end_ns`.
    pub(crate) fn end(&mut self, end_ns: u64) {
        for track in self.by_tid.values_mut() {
            gap(track, &self.gaps, end_ns, Doing::Unknown);
        }
    }

    fn does(&mut self, tid: i32, at_ns: u64, doing: Doing) {
        let track = self.by_tid.entry(tid).or_default();
        gap(track, &self.gaps, at_ns, doing);
        let at_ns = track.last().map_or(at_ns, |(last_ns, _)| at_ns.max(*last_ns));
        // What lasted for nothing was not.
        track.pop_if(|(last_ns, _)| *last_ns == at_ns);
        track.push((at_ns, doing));
    }

    /// If what `tid` does is something that it cannot have done until now, nothing is known of it.
    fn doubt(&mut self, tid: i32, wrong: impl Fn(Doing) -> bool) {
        if let Some((_, doing)) = self.by_tid.get_mut(&tid).and_then(|track| track.last_mut())
            && wrong(*doing)
        {
            *doing = Doing::Unknown;
        }
    }
}

/// If events were lost while the task was off the CPU, it may have run; `next` is what it does from `now_ns` on.
fn gap(track: &mut Track, gaps: &[(u64, u64)], now_ns: u64, next: Doing) {
    let Some((since_ns, doing @ (Doing::Runnable | Doing::Sleeping))) = track.last().copied() else { return };
    let Some((from_ns, until_ns)) = hidden(gaps, since_ns, now_ns) else { return };
    track.push((from_ns.max(since_ns), Doing::Unknown));
    let slept = doing == Doing::Sleeping && next == Doing::Runnable && until_ns < now_ns;
    if slept {
        track.push((until_ns, Doing::Sleeping));
    }
}

/// From the begin of the first gap between two times to the end of the last one.
fn hidden(gaps: &[(u64, u64)], since_ns: u64, now_ns: u64) -> Option<(u64, u64)> {
    let first = gaps.partition_point(|(_, until_ns)| *until_ns <= since_ns);
    let last = gaps.partition_point(|(from_ns, _)| *from_ns < now_ns);
    (first < last).then(|| (gaps[first].0, gaps[last - 1].1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_that_was_not_seen_voids_what_came_since_the_last_one_that_was() {
        let mut tasks = Tasks::default();
        // Task 7 loses CPU 0, others have it, and 7 leaves it again though no switch told that it came.
        tasks.switch(0, 100, (7, true), 5);
        tasks.switch(0, 200, (5, true), 6);
        tasks.switch(0, 900, (6, true), 5);
        tasks.switch(0, 950, (7, true), 6);
        assert_eq!(tasks.by_tid[&7], [(100, Doing::Runnable), (900, Doing::Unknown), (950, Doing::Runnable)]);
        // On another CPU, of which nothing was seen, it may have been all the time.
        tasks.switch(1, 990, (7, true), 8);
        assert_eq!(tasks.by_tid[&7][2..], [(950, Doing::Unknown), (990, Doing::Runnable)]);
        // What slept cannot run without having been woken, and when that was is not known either.
        tasks.switch(1, 1_000, (8, false), 9);
        tasks.switch(1, 1_100, (9, false), 5);
        tasks.switch(1, 1_200, (8, false), 5);
        assert_eq!(tasks.by_tid[&8], [(990, Doing::Running(1)), (1_000, Doing::Unknown), (1_200, Doing::Sleeping)]);
    }
}
