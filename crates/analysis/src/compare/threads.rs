//! How long did each thread run, and how long did it stand ready while others ran?
//!
//! ```text
//! sched_switch   prev runs until here, then stands ready or sleeps; next ran from here, and waited until here
//! sched_waking   the thread stands ready from here
//! ```
//! In: the switches and wake-ups of a trace. Out: for each name of a thread its shares of the time in each window, all
//! threads of that name together. A number behind the last dash is left out of a name: `vhost-4711` of one run is
//! `vhost-4799` of the next. From losses to a thread's next event nothing is counted of it.

use super::metrics::{Metrics, WINDOWS};
use crate::facts::events::roles::{ROWS, Role, stays_ready, switch};
use crate::input::Part;
use crate::{Error, Input, Options};
use base::{Level, Span};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use trace::replay::Listener;
use trace::{Event, Reading, Request, Wanted};

/// What the names of these metrics end with.
const ENDS: [&str; 2] = [" runs, share", " waits, share"];
/// Share of the time that a thread must have run, or waited, on either side to be told.
const FLOOR: f64 = 0.05;

/// What was `found` in a recording, and what its threads did; an error if neither is anything.
///
/// # Errors
/// What was found to be wrong, if no trace has switches either.
pub(super) fn with(found: Result<Metrics, Error>, input: &Input, options: &Options) -> Result<Metrics, Error> {
    if matches!(&found, Err(error) if error.is_of_what_was_asked()) {
        return found;
    }
    let threads = of(input, options);
    match found {
        Ok(mut metrics) => {
            metrics.extend(threads);
            Ok(metrics)
        }
        Err(error) if threads.is_empty() => Err(error),
        Err(_) => Ok(threads),
    }
}

/// The metrics of all traces that have switches.
fn of(input: &Input, options: &Options) -> Metrics {
    let mut metrics = Metrics::new();
    for part in &input.parts {
        let Some(window) =
            options.narrow.window.or_else(|| span(part, options)).filter(|window| window.length_ns() > 0)
        else {
            continue;
        };
        let mut walk = Walk::over(window);
        replay(part, options, &mut walk);
        let level = if part.level == Level::L0 { String::new() } else { format!("{} ", part.level) };
        let width_ns = window.length_ns() as f64 / WINDOWS as f64;
        for (name, times) in walk.by_name() {
            for (which, end) in ENDS.into_iter().enumerate() {
                let shares = times.iter().map(|window| window[which] as f64 / width_ns).collect();
                metrics.insert(format!("{level}{name}{end}"), shares);
            }
        }
    }
    metrics
}

/// True for a metric of a thread.
pub(super) fn is_of(metric: &str) -> bool {
    ENDS.iter().any(|end| metric.ends_with(end))
}

/// False for what a thread did that hardly did anything.
pub(super) fn tells(metric: &str, before: f64, after: f64) -> bool {
    !is_of(metric) || before.max(after) >= FLOOR
}

/// From the first event to the last switch or wake-up.
fn span(part: &Part, options: &Options) -> Option<Span> {
    struct Last {
        origin_ns: u64,
        last_ns: Option<u64>,
    }
    impl Listener for Last {
        fn start(&mut self, origin_ns: u64) {
            self.origin_ns = origin_ns;
        }
        fn event(&mut self, event: &Event<'_>) {
            self.last_ns = self.last_ns.max(Some(event.time_ns));
        }
    }
    let mut last = Last { origin_ns: 0, last_ns: None };
    replay(part, options, &mut last);
    Some(Span { from_ns: 0, to_ns: last.last_ns?.checked_sub(last.origin_ns)? })
}

/// Positions of the two kinds in the request.
const SWITCH: u16 = 0;

fn replay(part: &Part, options: &Options, listener: &mut impl Listener) {
    let wanted = |role: Role| {
        let row = ROWS.iter().find(|row| row.role == role)?;
        let names = row.names.iter().map(|name| (*name).to_owned());
        let fields = row.fields.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let names = names.filter(|name| !options.ignore_events.contains(name)).collect();
        Some(Wanted { names, fields: fields.collect() })
    };
    let request = Request { events: [Role::Switch, Role::Waking].into_iter().filter_map(wanted).collect() };
    trace::replay(part.trace.as_ref(), &Reading { request: &request, fitted: None }, listener);
}

/// Places in a window's times, and in [`ENDS`].
const RUNS: usize = 0;
const WAITS: usize = 1;

/// In each window, the ns that a thread ran and waited.
type Times = [[u64; 2]; WINDOWS as usize];

#[derive(Default)]
struct Walk {
    window: Span,
    origin_ns: u64,
    now_ns: u64,
    /// What a thread does since when, in ns from the origin; one that sleeps is not there.
    does: FxHashMap<i32, (usize, u64)>,
    /// By thread: the name it had last, since a thread that starts a program gets another, and what it did.
    done: FxHashMap<i32, (Vec<u8>, Times)>,
}

impl Listener for Walk {
    fn start(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
    }

    fn event(&mut self, event: &Event<'_>) {
        let now = event.time_ns.saturating_sub(self.origin_ns);
        self.now_ns = now;
        if event.is_loss() {
            return self.does.clear();
        }
        if event.kind != SWITCH {
            self.does.entry(event.or_zero(0) as i32).or_insert((WAITS, now));
            return;
        }
        let [prev, next] = [switch::PREV_TID, switch::NEXT_TID].map(|field| event.or_zero(field) as i32);
        self.changes(prev, stays_ready(event).then_some(WAITS), now);
        self.changes(next, Some(RUNS), now);
        for (tid, field) in [(prev, switch::PREV_COMM), (next, switch::NEXT_COMM)] {
            let name = event.content(field).unwrap_or_default();
            let (known, _) = self.done.entry(tid).or_default();
            if known != name {
                *known = name.to_vec();
            }
        }
    }
}

impl Walk {
    fn over(window: Span) -> Self {
        Self { window, ..Self::default() }
    }

    /// From `now` on the thread does something else, or sleeps; the idle task, number 0, is no thread.
    fn changes(&mut self, tid: i32, next: Option<usize>, now: u64) {
        let before = match next {
            Some(does) => self.does.insert(tid, (does, now)),
            None => self.does.remove(&tid),
        };
        let Some((does, since)) = before.filter(|_| tid != 0) else { return };
        let Span { from_ns, to_ns } = self.window;
        let (begin, end) = (since.clamp(from_ns, to_ns), now.clamp(from_ns, to_ns));
        let edge = |number: u64| from_ns + (to_ns - from_ns) * number / WINDOWS;
        let (_, times) = self.done.entry(tid).or_default();
        for (number, time) in (0..WINDOWS).zip(times) {
            time[does] += end.min(edge(number + 1)).saturating_sub(begin.max(edge(number)));
        }
    }

    /// What all threads of each name did, with what they were at when the trace ended.
    fn by_name(mut self) -> BTreeMap<String, Times> {
        let now = self.now_ns;
        self.does.keys().copied().collect::<Vec<_>>().into_iter().for_each(|tid| self.changes(tid, None, now));
        let mut named: BTreeMap<String, Times> = BTreeMap::new();
        for (name, times) in self.done.into_values().filter(|(name, _)| !name.is_empty()) {
            let all = named.entry(known_as(&name)).or_default();
            all.iter_mut().flatten().zip(times.iter().flatten()).for_each(|(sum, time)| *sum += time);
        }
        named
    }
}

/// The name without the number behind its last dash.
fn known_as(name: &[u8]) -> String {
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
        let mut walk = Walk::over(Span { from_ns: 100, to_ns: 900 });
        walk.now_ns = 2_000;
        for (tid, next, now) in [(4, Some(RUNS), 150), (4, None, 350), (5, Some(WAITS), 850), (0, Some(RUNS), 0)] {
            walk.changes(tid, next, now);
        }
        for (tid, name) in [(4, "vhost-4711"), (5, "vhost-12"), (0, "swapper/0")] {
            walk.done.entry(tid).or_default().0 = name.into();
        }
        let named = walk.by_name();
        let times = &named["vhost"];
        assert_eq!(times.iter().map(|window| window[RUNS]).collect::<Vec<_>>(), [50, 100, 50, 0, 0, 0, 0, 0]);
        assert_eq!((times[7][WAITS], times.iter().map(|window| window[WAITS]).sum::<u64>()), (50, 50));
        assert_eq!(named["swapper/0"], Times::default());
    }

    #[test]
    fn a_number_behind_the_last_dash_is_no_name() {
        let names = [b"napi/port1-8193".as_slice(), b"CPU 0/KVM", b"a-b", b"x-"].map(known_as);
        assert_eq!(names, ["napi/port1", "CPU 0/KVM", "a-b", "x-"]);
    }

    #[test]
    fn only_threads_that_did_something_are_told() {
        assert!(tells("vhost runs, share", 0.0, 0.3) && tells("halted, share", 0.0, 0.01));
        assert!(!tells("vhost waits, share", 0.02, 0.04));
    }
}
