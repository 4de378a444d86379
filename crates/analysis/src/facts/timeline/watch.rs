//! Which task had each CPU, and which interrupt stood above it?
//!
//! ```text
//! holders     nobody knows | CPU 0/KVM (170)      | swapper | vhost-4211 (4230) ...
//! above              -     | -  irq 24 nvme0q1  - | -  local_timer, TIMER  -    ...
//! ```
//! The walk tells who holds a CPU; where it does not know yet, any event does that names its thread. Interrupts are kept
//! per CPU, because an idle CPU has them too. Names of softirqs: `show_softirq_name` in include/trace/events/irq.h, Linux
//! 6.12.

use crate::facts::events::roles::{ROWS, Role};
use crate::facts::state::State;
use crate::facts::walk::witnesses;
use std::collections::HashMap;
use trace::batch::NO_TID;
use trace::{Event, Request, Trace, Wanted};

/// CPU numbers above this are damage, as they are for the walk.
const MOST_CPUS: usize = 65_535;

/// Interrupts that have begun on a CPU and not ended: an NMI above a hardware interrupt above a softirq make three, and what
/// never ends is damage, or a trace without the ends.
const MOST_BEGUN: usize = 8;

/// Softirqs by their number.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// One CPU over time; both lists are in time order, and what a list says holds until its next entry.
#[derive(Debug, Default)]
pub struct Cpu {
    /// Which task has it: 0 is the idle task, `None` unknown.
    pub holders: Vec<(u64, Option<i32>)>,
    /// Which interrupt stands above that, by a number of [`Watch::names`].
    pub above: Vec<(u64, Option<Above>)>,
    /// Interrupts that have begun, the latest last.
    begun: Vec<Above>,
}

/// An interrupt of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Above {
    /// [`State::Irq`], [`State::Softirq`] or [`State::Nmi`].
    pub state: State,
    /// Its name, a number of [`Watch::names`].
    pub name: u32,
}

/// All CPUs of a trace.
#[derive(Debug, Default)]
pub struct Watch {
    /// By number; one without any holder was never seen.
    pub cpus: Vec<Cpu>,
    /// Names of interrupts.
    pub names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Nothing more is wanted.
    pub closed: bool,
    /// What each kind of the request behind the rows of [`ROWS`] is called.
    vectors: Vec<String>,
}

/// The row of interrupts that have a handler; entries into vectors that have none follow behind all rows.
fn row(role: Role) -> usize {
    ROWS.iter().position(|row| row.role == role).unwrap_or(0)
}

impl Watch {
    /// A watch, and the request for a walk that it listens to: interrupts come with their names.
    pub fn new(trace: &dyn Trace, ignore: &[String]) -> (Self, Request) {
        let mut request = witnesses::request(trace, ignore);
        let field = |name: &str| vec![name.to_owned()];
        let entries = &mut request.events[row(Role::IrqEntry)];
        let (handled, vectors) = entries.names.drain(..).partition(|name| name.starts_with("irq_handler"));
        entries.names = handled;
        entries.fields = vec![field("irq"), field("name")];
        request.events[row(Role::SoftirqEntry)].fields = vec![field("vec")];
        let alone = |name: &String| Wanted { names: vec![name.clone()], fields: Vec::new() };
        request.events.extend(vectors.iter().map(alone));
        let short = |name: &String| {
            let name = name.strip_prefix("x86_irq_vectors_").unwrap_or(name);
            name.strip_suffix("_entry").unwrap_or(name).to_owned()
        };
        (Self { vectors: vectors.iter().map(short).collect(), ..Self::default() }, request)
    }

    /// Takes what the walk need not know of `event`, and returns it as the walk knows it.
    pub fn event<'e>(&mut self, event: &Event<'e>) -> Event<'e> {
        let mut known = *event;
        let vector = usize::from(event.kind).checked_sub(ROWS.len()).filter(|_| !event.is_loss());
        if vector.is_some() {
            known.kind = row(Role::IrqEntry) as u16;
        }
        let number = event.cpu as usize;
        if event.is_loss() || number > MOST_CPUS || self.closed {
            return known;
        }
        if event.tid != NO_TID && self.cpu(number).holders.last().is_none_or(|(_, holder)| holder.is_none()) {
            self.has_cpu(number, Some(event.tid), event.time_ns);
        }
        match ROWS[usize::from(known.kind)].role {
            Role::IrqEntry => {
                let name = match (vector, event.get(0)) {
                    (Some(vector), _) => self.vectors[vector].clone(),
                    (None, Some(irq)) => {
                        let name = event.content(1).map(String::from_utf8_lossy).unwrap_or_default();
                        format!("irq {irq} {name}").trim_end().to_owned()
                    }
                    (None, None) => "irq".to_owned(),
                };
                self.begins(number, event.time_ns, State::Irq, name);
            }
            Role::SoftirqEntry => {
                let name = event.get(0).and_then(|number| SOFTIRQS.get(number as usize)).unwrap_or(&"softirq");
                self.begins(number, event.time_ns, State::Softirq, (*name).to_owned());
            }
            Role::IrqExit => self.cpu(number).ends(event.time_ns, State::Irq),
            Role::SoftirqExit => self.cpu(number).ends(event.time_ns, State::Softirq),
            Role::Nmi => {
                let name = self.number("NMI".to_owned());
                self.cpu(number).nmi(event.time_ns, event.or_zero(0), name);
            }
            _ => {}
        }
        known
    }

    /// From `at_ns` on `tid` has CPU `number`.
    pub fn has_cpu(&mut self, number: usize, tid: Option<i32>, at_ns: u64) {
        if self.closed {
            return;
        }
        let cpu = self.cpu(number);
        if cpu.holders.last().is_some_and(|(_, holder)| *holder == tid) {
            return;
        }
        let at_ns = cpu.holders.last().map_or(at_ns, |(last_ns, _)| at_ns.max(*last_ns));
        cpu.holders.push((at_ns, tid));
        // No task is left while an interrupt is served; if one seemed to be, its end was lost.
        cpu.begun.clear();
        cpu.shows(at_ns);
    }

    /// Forgets what was over at `before_ns`.
    pub fn forget(&mut self, before_ns: u64) {
        for cpu in &mut self.cpus {
            forget(&mut cpu.holders, before_ns);
            forget(&mut cpu.above, before_ns);
        }
    }

    fn cpu(&mut self, number: usize) -> &mut Cpu {
        if number >= self.cpus.len() {
            self.cpus.resize_with(number + 1, Cpu::default);
        }
        &mut self.cpus[number]
    }

    fn number(&mut self, name: String) -> u32 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    fn begins(&mut self, cpu: usize, at_ns: u64, state: State, name: String) {
        let name = self.number(name);
        let cpu = self.cpu(cpu);
        if cpu.begun.len() == MOST_BEGUN {
            cpu.begun.remove(0);
        }
        cpu.begun.push(Above { state, name });
        cpu.shows(at_ns);
    }
}

/// Forgets the entries of `list` that were over at `before_ns`: each holds until the next one.
pub fn forget<T>(list: &mut Vec<(u64, T)>, before_ns: u64) {
    let begun = list.partition_point(|(at_ns, _)| *at_ns <= before_ns);
    list.drain(..begun.saturating_sub(1));
}

impl Cpu {
    fn ends(&mut self, at_ns: u64, state: State) {
        if let Some(place) = self.begun.iter().rposition(|begun| begun.state == state) {
            self.begun.truncate(place);
        }
        self.shows(at_ns);
    }

    /// An NMI that took `length_ns` ended; what it met goes on.
    fn nmi(&mut self, at_ns: u64, length_ns: u64, name: u32) {
        let since_ns = self.above.last().map_or(0, |(at_ns, _)| *at_ns);
        let held_ns = self.holders.last().map_or(0, |(at_ns, _)| *at_ns);
        let from_ns = at_ns.saturating_sub(length_ns).max(since_ns).max(held_ns);
        self.above.push((from_ns, Some(Above { state: State::Nmi, name })));
        self.shows(at_ns);
    }

    /// The topmost of what has begun stands there from `at_ns` on. A hardware interrupt interrupts softirqs, never the
    /// other way.
    fn shows(&mut self, at_ns: u64) {
        let hard = self.begun.iter().rfind(|begun| begun.state == State::Irq);
        let top = hard.or(self.begun.last()).copied();
        let (last_ns, last) = self.above.last().copied().unwrap_or((0, None));
        if top != last {
            self.above.push((at_ns.max(last_ns), top));
        }
    }

    /// What stands above the holder at `at_ns`.
    pub fn above_at(&self, at_ns: u64) -> Option<Above> {
        let after = self.above.partition_point(|(from_ns, _)| *from_ns <= at_ns);
        self.above[..after].last().and_then(|(_, above)| *above)
    }
}
