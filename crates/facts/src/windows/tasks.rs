//! How long did each task run, and how long was it runnable while others ran?
//!
//! ```text
//! sched_switch   prev runs until here, then is runnable or sleeps; next ran from here, and waited until here
//! sched_waking   the task is runnable from here
//! ```
//! From losses to a task's next event nothing is counted of it.

use super::slices::{Merge, Slices};
use base::Span;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use trace::Event;
use walk::events::roles::{ROWS, Role, stays_ready, switch, waking};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskTimes {
    pub runs_ns: u64,
    /// It was runnable, and did not.
    pub waits_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Runs,
    Waits,
}

#[derive(Debug, Default)]
struct Times(FxHashMap<i32, TaskTimes>);

impl Merge for Times {
    fn merge(&mut self, other: Self) {
        for (tid, times) in other.0 {
            let sum = self.0.entry(tid).or_default();
            sum.runs_ns += times.runs_ns;
            sum.waits_ns += times.waits_ns;
        }
    }
}

/// Follows all tasks of a trace.
#[derive(Debug)]
pub struct Tasks {
    slices: Slices<Times>,
    /// What a task does since when; one that sleeps is not there.
    does: FxHashMap<i32, (Does, u64)>,
    /// The name a thread had last: one that starts a program gets another.
    names: FxHashMap<i32, Vec<u8>>,
    last_ns: u64,
}

impl Tasks {
    pub fn new(within: Span) -> Self {
        Self { slices: Slices::new(within), does: FxHashMap::default(), names: FxHashMap::default(), last_ns: 0 }
    }

    /// Takes in an event of [`ROWS`].
    pub fn event(&mut self, event: &Event<'_>) {
        if event.is_loss() {
            return self.does.clear();
        }
        let now_ns = event.time_ns;
        match ROWS.get(usize::from(event.kind)).map(|row| row.role) {
            Some(Role::Switch) => {
                self.last_ns = self.last_ns.max(now_ns);
                let [prev, next] = [switch::PREV_TID, switch::NEXT_TID].map(|field| event.or_zero(field) as i32);
                self.changes(prev, stays_ready(event).then_some(Does::Waits), now_ns);
                self.changes(next, Some(Does::Runs), now_ns);
                for (tid, field) in [(prev, switch::PREV_COMM), (next, switch::NEXT_COMM)] {
                    let name = event.content(field).unwrap_or_default();
                    let known = self.names.entry(tid).or_default();
                    if known != name {
                        *known = name.to_vec();
                    }
                }
            }
            Some(Role::Waking) => {
                self.last_ns = self.last_ns.max(now_ns);
                self.does.entry(event.or_zero(waking::TID) as i32).or_insert((Does::Waits, now_ns));
            }
            _ => {}
        }
    }

    /// From `now_ns` on the task does something else, or sleeps; the idle task, number 0, is no task.
    fn changes(&mut self, tid: i32, next: Option<Does>, now_ns: u64) {
        let before = match next {
            Some(does) => self.does.insert(tid, (does, now_ns)),
            None => self.does.remove(&tid),
        };
        let Some((does, since_ns)) = before.filter(|_| tid != 0) else { return };
        self.slices.spread(since_ns, now_ns, |times, ns| {
            let sum = times.0.entry(tid).or_default();
            match does {
                Does::Runs => sum.runs_ns += ns,
                Does::Waits => sum.waits_ns += ns,
            }
        });
    }

    /// In each of `count` windows, what all tasks of each name did; `None` of a trace without switches.
    pub fn windows(mut self, count: usize, end_ns: u64) -> Option<Vec<BTreeMap<String, TaskTimes>>> {
        if self.names.is_empty() {
            return None;
        }
        // What tasks were at when the last switch was seen.
        let at_end: Vec<i32> = self.does.keys().copied().collect();
        at_end.into_iter().for_each(|tid| self.changes(tid, None, self.last_ns));
        let names: BTreeMap<i32, String> =
            self.names.iter().filter(|(_, name)| !name.is_empty()).map(|(tid, name)| (*tid, known_as(name))).collect();
        let named = |times: Times| {
            let mut all: BTreeMap<String, TaskTimes> = BTreeMap::new();
            for (tid, times) in times.0 {
                let Some(name) = names.get(&tid) else { continue };
                let sum = all.entry(name.clone()).or_default();
                sum.runs_ns += times.runs_ns;
                sum.waits_ns += times.waits_ns;
            }
            all
        };
        Some(self.slices.windows(count, end_ns).into_iter().map(|(_, times)| named(times)).collect())
    }
}

/// The name without the number behind its last dash: `vhost-4711` of one run is `vhost-4799` of the next.
pub fn known_as(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    match name.rsplit_once('-') {
        Some((kind, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => kind.into(),
        _ => name.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_given_to_the_windows_it_lies_in_and_to_the_name_that_was_last() {
        let within = Span { from_ns: 0, to_ns: 8 << 20 };
        let mut tasks = Tasks::new(within);
        tasks.last_ns = 9 << 20;
        let runs = Some(Does::Runs);
        for (tid, next, now_ns) in [(4, runs, 0), (4, None, 2 << 20), (5, Some(Does::Waits), 7 << 20), (0, runs, 0)] {
            tasks.changes(tid, next, now_ns);
        }
        for (tid, name) in [(4, "vhost-4711"), (5, "vhost-12"), (0, "swapper/0")] {
            tasks.names.insert(tid, name.into());
        }
        let windows = tasks.windows(8, 8 << 20).unwrap();
        let all = |of: fn(&TaskTimes) -> u64| -> Vec<u64> {
            windows.iter().map(|window| window.get("vhost").map_or(0, of)).collect()
        };
        assert_eq!(all(|times| times.runs_ns).iter().sum::<u64>(), 2 << 20);
        assert!(all(|times| times.runs_ns)[3..].iter().all(|ns| *ns == 0));
        assert!(all(|times| times.waits_ns)[7] > 0, "it waited when the trace ended");
        assert!(windows.iter().all(|window| !window.contains_key("swapper/0")), "the idle task is no task");
    }

    #[test]
    fn a_number_behind_the_last_dash_is_no_name() {
        let names = [b"napi/port1-8193".as_slice(), b"CPU 0/KVM", b"a-b", b"x-"].map(known_as);
        assert_eq!(names, ["napi/port1", "CPU 0/KVM", "a-b", "x-"]);
    }
}
