//! Which task of a guest ran when its vCPU left it?
//!
//! In:  the guest's own `sched_switch` events, its alignment, the exits that the machine below saw. Out: exits and their
//! cost by task of the guest. An exit between two switches belongs to the task that ran between them. An exit that lies
//! in the time that a switch can have happened at, by the error of its place, belongs to nobody: it is counted apart.

use super::{Axis, Cpu};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use trace::replay::Listener;
use trace::{Event, Reading, Request, Wanted};
use walk::Part;
use walk::events::roles::{ROWS, Role, switch};

/// What a task caused on one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskSums {
    /// Its name as last seen.
    pub comm: String,
    /// Exits while it ran.
    pub exits: u64,
    /// Their cost, in units of the lower machine's axis.
    pub cost: u64,
}

/// Exits by CPU and task of the guest; `None` stands for exits that fall together with a switch.
pub(super) type Tasks = BTreeMap<(u32, Option<i32>), TaskSums>;

/// Adds up the exits of `cpus` by the guest's tasks; empty if its trace has no switches.
pub(super) fn tasks(part: &Part, axis: &Axis, ignored: &[String], cpus: &[Cpu]) -> Tasks {
    let Some(row) = ROWS.iter().find(|row| row.role == Role::Switch) else { return Tasks::new() };
    let names = row.names.iter().map(|name| (*name).to_owned()).filter(|name| !ignored.contains(name));
    let fields = row.fields.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect();
    let request = Request { events: vec![Wanted { names: names.collect(), fields }] };
    let walks = cpus.iter().map(|cpu| (cpu.cpu, Walk { cpu, next: 0, last: None })).collect();
    let mut counter = Counter { axis, walks, tasks: Tasks::new() };
    trace::replay(part.trace.as_ref(), &Reading { request: &request, fitted: None }, &mut counter);
    counter.end();
    counter.tasks
}

struct Counter<'a> {
    axis: &'a Axis,
    walks: FxHashMap<u32, Walk<'a>>,
    tasks: Tasks,
}

/// One CPU on its way through its exits.
struct Walk<'a> {
    cpu: &'a Cpu,
    /// The first exit that no task has got.
    next: usize,
    last: Option<(i32, Vec<u8>)>,
}

impl Listener for Counter<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let Some(walk) = self.walks.get_mut(&event.cpu) else { return };
        if event.is_loss() {
            walk.last = None;
            return;
        }
        let at = self.axis.of_event(event.time_ns);
        let Some(placed) = walk.cpu.map.as_ref().and_then(|map| map.place(at)) else { return };
        let (prev, next) = (event.or_zero(switch::PREV_TID) as i32, event.or_zero(switch::NEXT_TID) as i32);
        let comm = event.content(switch::PREV_COMM).unwrap_or_default();
        // What came before the first switch seen was its task's too, as far as the guest's trace reaches.
        if walk.last.is_none() {
            walk.skip_until(walk.cpu.outside.ends.map_or(placed.low, |ends| ends[0].1.min(placed.low)));
        }
        walk.give(&mut self.tasks, Some((prev, comm)), placed.low);
        walk.give(&mut self.tasks, None, placed.high.saturating_add(1));
        walk.last = Some((next, event.content(switch::NEXT_COMM).unwrap_or_default().to_vec()));
    }
}

impl Counter<'_> {
    /// What came after the last switch, as far as the guest's trace reaches.
    fn end(&mut self) {
        for walk in self.walks.values_mut() {
            let (Some((tid, comm)), Some([_, last])) = (walk.last.take(), walk.cpu.outside.ends) else { continue };
            walk.give(&mut self.tasks, Some((tid, &comm)), last.1);
        }
    }
}

impl Walk<'_> {
    fn skip_until(&mut self, time: u64) {
        let exits = &self.cpu.vcpu.exits[self.next..];
        self.next += exits.partition_point(|(at, _)| *at < time);
    }

    /// Exits before `time` belong to `task`.
    fn give(&mut self, tasks: &mut Tasks, task: Option<(i32, &[u8])>, time: u64) {
        let exits = &self.cpu.vcpu.exits[self.next..];
        let exits = &exits[..exits.partition_point(|(at, _)| *at < time)];
        self.next += exits.len();
        if exits.is_empty() {
            return;
        }
        let sums = tasks.entry((self.cpu.cpu, task.map(|(tid, _)| tid))).or_default();
        if let Some((_, comm)) = task
            && sums.comm.as_bytes() != comm
        {
            sums.comm = String::from_utf8_lossy(comm).into_owned();
        }
        sums.exits += exits.len() as u64;
        sums.cost += exits.iter().map(|(_, cost)| cost).sum::<u64>();
    }
}
