//! Who ran while a thread was pre-empted?
//!
//! ```text
//! switch: me -> A      switch: A -> B      switch: B -> me
//!    |------ A's share ----|----- B's share ----|           seen from both ends
//! switch: me -> A                          switch: C -> me
//!    |-------------- nobody known ------------- |           a switch between them is missing
//! ```
//! A share is a task's only if the switch at its end says that this task leaves: recordings of chosen tasks
//! (`set_event_pid`) hold no switches between others. Shares are told when the wait has ended with a switch; of a thread
//! that turns up without one nobody knows how long it waited.

use super::{Preemptor, Sink, Walk};
use crate::thread::Surroundings;

/// A thread that waits for a CPU, or did, and whose last share is still open.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    me: usize,
    /// Nobody has been charged yet.
    first: bool,
    /// When it got another CPU; here the task that runs has not left yet.
    until_ns: Option<u64>,
    shares: Vec<(Preemptor, u64, u64)>,
}

/// Shares kept until a wait ends. A thread that waits longer than 4,096 switches of a CPU is told to wait still.
const MOST_SHARES: usize = 4096;

impl Waiting {
    /// Thread `me` begins to wait.
    pub(super) fn new(me: usize) -> Self {
        Self { me, first: true, until_ns: None, shares: Vec::new() }
    }

    /// True if thread `me` waits here now.
    pub(super) fn is_of(&self, me: usize) -> bool {
        self.me == me && self.until_ns.is_none()
    }

    /// From `since_ns` to `now_ns` `held` had `cpu`, if it is the one who `left`.
    fn charge(&mut self, cpu: usize, held: Option<i32>, left: Option<i32>, since_ns: u64, now_ns: u64) {
        let cpu = cpu as u32;
        let to_ns = self.until_ns.map_or(now_ns, |until_ns| until_ns.min(now_ns));
        let took = std::mem::take(&mut self.first);
        let ran = held.filter(|_| held == left);
        if took && ran.is_none() && held.is_some() {
            self.shares.push((Preemptor { tid: held, cpu, took }, since_ns, since_ns));
        }
        let took = took && (ran.is_some() || held.is_none());
        if took || to_ns > since_ns {
            self.shares.push((Preemptor { tid: ran, cpu, took }, since_ns, to_ns));
        }
    }

    fn tell(&mut self, sink: &mut impl Sink) {
        for (by, from_ns, to_ns) in self.shares.drain(..) {
            sink.preempted(self.me, &by, from_ns, to_ns);
        }
    }
}

impl<S: Sink> Walk<S> {
    /// `left` leaves `cpu`: it has run there while others waited, if it is the one that came.
    pub(super) fn charge(&mut self, cpu: usize, left: Option<i32>, now_ns: u64) {
        let here = &mut self.cpus[cpu];
        self.lacks_switches |= left.is_some() && here.current.is_some() && here.current != left;
        for waiting in &mut here.waiting {
            // Who came has left and come back, for all that is known, if others' switches are missing elsewhere.
            let left = left.filter(|_| waiting.until_ns.is_none() || !self.lacks_switches);
            waiting.charge(cpu, here.current, left, here.since_ns, now_ns);
            let is_over = waiting.until_ns.is_some_and(|until_ns| until_ns <= now_ns);
            if is_over || waiting.shares.len() >= MOST_SHARES {
                waiting.tell(&mut self.sink);
                let me = waiting.me;
                let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
                if !is_over {
                    self.threads[me].waits_still(now_ns, cx);
                }
            }
        }
        here.waiting.retain(|waiting| waiting.until_ns.is_none_or(|until_ns| until_ns > now_ns));
        here.since_ns = now_ns;
    }

    /// The trace goes on behind `now_ns`: who has a CPU has it still, and who waits has waited for that task.
    pub fn goes_on(&mut self, now_ns: u64) {
        for cpu in 0..self.cpus.len() {
            self.charge(cpu, self.cpus[cpu].current, now_ns);
        }
    }

    /// The thread gets a CPU, here or elsewhere: its pre-emption is over.
    pub(super) fn stop_waiting(&mut self, me: usize, now_ns: u64) {
        let Some(cpu) = self.threads[me].waits_on.take() else { return };
        let here = &mut self.cpus[cpu];
        let Some(place) = here.waiting.iter().position(|waiting| waiting.is_of(me)) else { return };
        if now_ns > here.since_ns || here.waiting[place].first {
            // Who runs there goes on, and the switch that ends it tells whether it was there all the time.
            here.waiting[place].until_ns = Some(now_ns);
        } else {
            here.waiting.swap_remove(place).tell(&mut self.sink);
        }
    }

    /// From `now_ns` on nothing tells who has `cpu`, and no switch will tell who had it up to then.
    pub(super) fn stop_charging(&mut self, cpu: usize, now_ns: u64) {
        self.charge(cpu, None, now_ns);
        for mut waiting in std::mem::take(&mut self.cpus[cpu].waiting) {
            if let Some(until_ns) = waiting.until_ns {
                waiting.charge(cpu, None, None, now_ns, until_ns);
            }
            waiting.tell(&mut self.sink);
        }
    }
}
