//! Which threads' events are recorded, where not all are.
//!
//! In: thread ids. Out: what is written into the kernel's `filter` files (Documentation/trace/events.rst).
//!
//! | event | recorded |
//! |---|---|
//! | `sched_switch` | all: who ran while a thread waited is seen in switches between others |
//! | `sched_waking` and its like | those of these threads, and those by them |
//! | others | those of these threads |
//!
//! The kernel's own list of threads (`set_event_pid`) follows children, but drops switches between others, and it holds for
//! all events of an instance.

use super::instance::Instance;
use crate::Error;
use std::collections::BTreeSet;
use std::path::Path;

/// The event that says who runs.
pub(super) const SWITCH: (&str, &str) = ("sched", "sched_switch");
/// Events of group `sched` whose field `pid` names another thread than the one that runs.
const OF_ANOTHER: &[&str] = &["sched_waking", "sched_wakeup", "sched_wakeup_new", "sched_migrate_task"];
/// A filter has to be shorter than a page (`event_filter_write`, kernel/trace/trace_events.c, Linux 6.12).
const MOST_BYTES: usize = 4095;

/// Lets only events of `tids` through, of those `events` that are on.
///
/// # Errors
/// If the kernel refuses a filter.
pub(super) fn set(instance: &Instance, events: &[(String, String)], tids: &BTreeSet<u32>) -> Result<(), Error> {
    // Half of what there is room for, because some filters name two fields.
    let ranges = ranges(tids, MOST_BYTES / 2);
    let own = condition("common_pid", &ranges);
    let either = format!("{own}||{}", condition("pid", &ranges));
    for system in events.iter().map(|(system, _)| system).collect::<BTreeSet<_>>() {
        if system != SWITCH.0 {
            // One file for a group: the kernel waits for all CPUs at each.
            instance.set(&format!("events/{system}/filter"), &own)?;
        }
    }
    for (system, name) in events.iter().filter(|(system, name)| system == SWITCH.0 && name != SWITCH.1) {
        let filter = if OF_ANOTHER.contains(&name.as_str()) { &either } else { &own };
        instance.set(&format!("events/{system}/{name}/filter"), filter)?;
    }
    Ok(())
}

/// `tids`, and the threads that their processes have by now.
pub(crate) fn with_siblings(proc: &Path, tids: &BTreeSet<u32>) -> BTreeSet<u32> {
    let process = |tid: &u32| -> Option<u32> {
        let status = std::fs::read_to_string(proc.join(tid.to_string()).join("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
    };
    let processes: BTreeSet<u32> = tids.iter().filter_map(process).collect();
    let threads = processes.iter().flat_map(|process| super::vm::numbers(&proc.join(process.to_string()).join("task")));
    tids.iter().copied().chain(threads).collect()
}

/// Runs of successive ids, joined across the narrowest gaps until their conditions fit: then a few others' events are
/// recorded too, which is no harm.
fn ranges(tids: &BTreeSet<u32>, most_bytes: usize) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for tid in tids {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *tid => *last = *tid,
            _ => ranges.push((*tid, *tid)),
        }
    }
    while condition("common_pid", &ranges).len() > most_bytes && ranges.len() > 1 {
        let gap = |at: &usize| ranges[at + 1].0 - ranges[*at].1;
        let narrowest = (0..ranges.len() - 1).min_by_key(gap).unwrap_or(0);
        ranges[narrowest].1 = ranges.remove(narrowest + 1).1;
    }
    ranges
}

fn condition(field: &str, ranges: &[(u32, u32)]) -> String {
    let range = |(first, last): &(u32, u32)| match first == last {
        true => format!("{field}=={first}"),
        false => format!("({field}>={first}&&{field}<={last})"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join("||")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successive_threads_are_a_range_and_many_are_joined_until_they_fit() {
        let of = |tids: &[u32]| ranges(&tids.iter().copied().collect(), MOST_BYTES);
        assert_eq!(condition("pid", &of(&[9, 5, 6, 7])), "(pid>=5&&pid<=7)||pid==9");
        let scattered: Vec<u32> = (0..2_000).map(|number| 100 + number * 7).collect();
        let joined = of(&scattered);
        assert!(condition("common_pid", &joined).len() <= MOST_BYTES && joined.len() > 50, "{}", joined.len());
        assert!(scattered.iter().all(|tid| joined.iter().any(|(first, last)| (first..=last).contains(&tid))));
    }
}
