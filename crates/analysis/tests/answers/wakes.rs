//! Are the wake-ups of lanes those that another program reads out of the same recording?
//!
//! trace-cmd prints the events with the task and the interrupt in whose context each came; from a sleep to the first waking
//! after it, and from there to the switch-in, is found here again by one list for each thread.

use crate::fixtures::fixture;
use base::recording::Recording;
use base::timeline::{Drawn, Timeline, WakeUp, Waker};
use kvmscope_analysis::Given;
use kvmscope_analysis::facts::ledger::build;
use kvmscope_analysis::facts::timeline::draw;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// What is drawn of `name`; it has as many wake-ups of each vCPU as the ledger.
fn drawn(name: &str) -> Drawn {
    let (input, given) = (kvmscope_analysis::open(Recording::open(&fixture(name)).unwrap()).unwrap(), Given::default());
    let flow = build::build(&input, &given, &mut |_, _| {});
    let drawn = draw(&input, &given, &flow, &mut |_, _| {});
    for (place, vcpu) in flow.parts[0].vcpus.iter().enumerate() {
        assert_eq!(drawn.wakes.of(place).count() as u64, vcpu.sums.wake_to_run.count(), "{name}, vCPU {}", vcpu.vcpu);
    }
    drawn
}

/// A wake-up as printed: of which thread, when it was woken and when it ran, where, by whom.
#[derive(Debug)]
struct Printed {
    tid: i32,
    woken: f64,
    ran: f64,
    cpu: u32,
    by: i32,
    /// It came while an interrupt or softirq was served; which one, if its begin is printed.
    interrupt: Option<Option<String>>,
}

/// `qemu-sys-171     0d..2.205818066316: sched_waking:         comm=qemu-system-x86 pid=170 ...`
struct Line<'a> {
    tid: i32,
    cpu: u32,
    /// Interrupts off, reschedule, which interrupt, depth, lock.
    flags: &'a str,
    time: f64,
    event: &'a str,
    fields: &'a str,
}

fn line(text: &str) -> Option<Line<'_>> {
    let (head, rest) = text.split_once(": ")?;
    let (event, fields) = rest.trim_start().split_once(": ")?;
    let is_flags = |at: &usize| {
        let before = head.as_bytes().get(at.wrapping_sub(1));
        before.is_some_and(u8::is_ascii_digit) && head[*at..].starts_with(['d', '.']) && head.is_char_boundary(at + 5)
    };
    let at = (1..head.len().saturating_sub(5)).find(is_flags)?;
    let (who, cpu) = head[..at].rsplit_once(' ')?;
    Some(Line {
        tid: who.trim_end().rsplit_once('-')?.1.parse().ok()?,
        cpu: cpu.parse().ok()?,
        flags: &head[at..at + 5],
        time: head[at + 5..].trim().parse().ok()?,
        event: event.trim(),
        fields,
    })
}

fn field<'a>(fields: &'a str, name: &str) -> Option<&'a str> {
    fields.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The wake-ups in what `trace-cmd report -t -l` prints; `None` if there is no such program.
fn printed(path: &Path) -> Option<Vec<Printed>> {
    let output = Command::new("trace-cmd").args(["report", "-t", "-l", "-i"]).arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut asleep: BTreeSet<i32> = BTreeSet::new();
    let mut woken: BTreeMap<i32, Printed> = BTreeMap::new();
    let mut served: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for line in text.lines().filter_map(line) {
        let served = served.entry(line.cpu).or_default();
        match line.event {
            "sched_switch" => {
                // `kvmscope:479 [120] D ==> swapper/0:0 [120]`
                let (prev, next) = line.fields.split_once(" ==> ")?;
                let (prev, state) = prev.trim().rsplit_once(' ')?;
                let tid =
                    |task: &str| -> Option<i32> { task.trim().rsplit_once(" [")?.0.rsplit_once(':')?.1.parse().ok() };
                if !state.starts_with('R') {
                    asleep.insert(tid(prev)?);
                }
                let next = tid(next)?;
                asleep.remove(&next);
                if let Some(wake) = woken.remove(&next) {
                    found.push(Printed { ran: line.time, cpu: line.cpu, ..wake });
                }
            }
            "sched_waking" => {
                let tid: i32 = field(line.fields, "pid")?.parse().ok()?;
                if asleep.remove(&tid) {
                    let interrupt = line.flags.contains(['h', 'H', 's']).then(|| served.last().cloned());
                    let (woken_at, by) = (line.time, line.tid);
                    woken.insert(tid, Printed { tid, woken: woken_at, ran: 0.0, cpu: 0, by, interrupt });
                }
            }
            "irq_handler_entry" => served.push(field(line.fields, "name")?.to_owned()),
            // `vec=9 [action=RCU]`
            "softirq_entry" => served.push(field(line.fields, "[action")?.trim_end_matches(']').to_owned()),
            event if event.ends_with("_entry") && field(line.fields, "vector").is_some() => {
                served.push(event.trim_end_matches("_entry").to_owned());
            }
            event if event.ends_with("_exit") && !event.starts_with("kvm") => {
                served.pop();
            }
            _ => {}
        }
    }
    Some(found)
}

/// The wake-ups of the threads that have a lane, by thread.
fn by_thread(drawn: &Drawn) -> BTreeMap<i32, Vec<WakeUp>> {
    // A guest's threads are others, whatever their numbers.
    let host = drawn.timeline.lanes().iter().enumerate().filter(|(_, lane)| !lane.group.ends_with("(own trace)"));
    host.filter_map(|(place, lane)| Some((lane.tid?, drawn.wakes.of(place).collect()))).collect()
}

/// The wake-ups of `name` are those printed of `path`, where all interrupts are recorded or not; returns how many woke by a task
/// and by an interrupt.
fn compare(name: &str, path: &str, all_interrupts: bool) -> Option<(usize, usize)> {
    let (drawn, printed) = (drawn(name), printed(&fixture(path))?);
    let lanes = by_thread(&drawn);
    let printed: Vec<&Printed> = printed.iter().filter(|wake| lanes.contains_key(&wake.tid)).collect();
    // Both count time from somewhere and in some unit.
    let first = printed.first()?;
    let last = printed.last()?;
    let nth = |tid: i32| lanes[&tid].iter();
    let (from_ns, to_ns) = (nth(first.tid).next()?.woken_ns as f64, nth(last.tid).next_back()?.woken_ns as f64);
    let unit = (to_ns - from_ns) / (last.woken - first.woken);
    let on_axis = |time: f64| from_ns + (time - first.woken) * unit;
    let (mut tasks, mut interrupts, mut places) = (0, 0, BTreeMap::<i32, usize>::new());
    for wake in printed {
        let place = places.entry(wake.tid).or_default();
        let of_thread = &lanes[&wake.tid];
        // A thread that was woken on its way off the CPU has not slept: such a wake-up is not among the printed ones.
        let earlier = |drawn: &&WakeUp| (drawn.woken_ns as f64) < on_axis(wake.woken) - 3.0;
        *place += of_thread[*place..].iter().take_while(earlier).count();
        let drawn_wake = of_thread.get(*place).unwrap_or_else(|| panic!("{name}: {wake:?} is not drawn"));
        *place += 1;
        let near = |ns: u64, time: f64| (ns as f64 - on_axis(time)).abs() <= 3.0;
        let case = format!("{name}: {wake:?}, drawn as {drawn_wake:?}");
        assert!(near(drawn_wake.woken_ns, wake.woken) && near(drawn_wake.ran_ns, wake.ran), "{case}");
        assert_eq!(drawn_wake.cpu, Some(wake.cpu), "{case}");
        match (&drawn.wakers[drawn_wake.by as usize], &wake.interrupt) {
            (Waker::Task { name, .. }, interrupt) => {
                let who = if wake.by == 0 { "idle task".to_owned() } else { format!("({})", wake.by) };
                assert!(name.contains(&who), "{name}; {case}");
                assert!(interrupt.is_none() || (!all_interrupts && *interrupt == Some(None)), "{case}");
                tasks += 1;
            }
            (Waker::Interrupt(name), Some(Some(interrupt))) => {
                assert!(name.ends_with(interrupt.as_str()), "{name}; {case}");
                interrupts += 1;
            }
            (waker, _) => panic!("{waker:?}; {case}"),
        }
    }
    Some((tasks, interrupts))
}

#[test]
fn wake_ups_are_those_that_trace_cmd_prints() {
    // The vectors of the first one's timers are not recorded.
    for (name, path, all_interrupts, least) in [
        ("svm-linux", "svm-linux/L0/trace.dat", false, (581, 0)),
        ("two-tracers", "two-tracers/L0/trace.dat", true, (2, 9)),
    ] {
        let Some(found) = compare(name, path, all_interrupts) else { return eprintln!("skipped: no trace-cmd here") };
        assert!(found.0 >= least.0 && found.1 >= least.1, "{name}: {found:?} woken by tasks, by interrupts");
    }
}
