//! Which task had each CPU, and which interrupt stood above it?
//!
//! ```text
//! holders     nobody knows | CPU 0/KVM (170)      | swapper | vhost-4211 (4230) ...
//! above              -     | -  irq 24 nvme0q1  - | -  local_timer, TIMER  -    ...
//! ```
//! The walk tells who holds a CPU; where it does not know yet, any event does that names its thread. Interrupts are kept
//! per CPU, because an idle CPU has them too.

use trace::Event;
use trace::batch::NO_TID;
use walk::events::host_interrupts::{Begun, Handlers, HostInterrupt};
use walk::events::roles::{ROLES, Role};
use walk::state::State;

/// CPU numbers above this are damage, as they are for the walk.
const MOST_CPUS: usize = 65_535;

/// One CPU over time; both lists are in time order, and what a list says holds until its next entry.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    /// Which task has it: 0 is the idle task, `None` unknown.
    pub holders: Vec<(u64, Option<i32>)>,
    pub above: Vec<(u64, Option<HostInterrupt>)>,
    begun: Begun,
}

/// All CPUs of a trace.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// By number; one without any holder was never seen.
    pub cpus: Vec<Cpu>,
    pub handlers: Handlers,
    /// Nothing more is wanted.
    pub closed: bool,
}

impl Watch {
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        let number = event.cpu as usize;
        let Some(role) = ROLES.get(usize::from(event.kind)).filter(|_| number <= MOST_CPUS && !self.closed) else {
            return;
        };
        let at_ns = event.time_ns;
        if event.tid != NO_TID && self.cpu(number).holders.last().is_none_or(|(_, holder)| holder.is_none()) {
            self.has_cpu(number, Some(event.tid), at_ns);
        }
        if let Some(by) = self.handlers.begun(event, *role) {
            let cpu = self.cpu(number);
            cpu.begun.begin(by);
            cpu.shows(at_ns);
        }
        match role {
            Role::IrqExit => self.cpu(number).ends(at_ns, State::Irq),
            Role::SoftirqExit => self.cpu(number).ends(at_ns, State::Softirq),
            Role::Nmi => self.cpu(number).nmi(at_ns, event.or_zero(0)),
            _ => {}
        }
    }

    /// From `at_ns` on `tid` has CPU `number`.
    pub(crate) fn has_cpu(&mut self, number: usize, tid: Option<i32>, at_ns: u64) {
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

    /// The task that has CPU `number` now, as far as that is known.
    pub(crate) fn holder(&self, number: usize) -> Option<i32> {
        self.cpus.get(number)?.holders.last().and_then(|(_, holder)| *holder)
    }

    /// Forgets what was over at `before_ns`.
    pub(crate) fn forget(&mut self, before_ns: u64) {
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
}

/// Forgets the entries of `list` that were over at `before_ns`: each holds until the next one.
pub(crate) fn forget<T>(list: &mut Vec<(u64, T)>, before_ns: u64) {
    let begun = list.partition_point(|(at_ns, _)| *at_ns <= before_ns);
    list.drain(..begun.saturating_sub(1));
}

impl Cpu {
    fn ends(&mut self, at_ns: u64, state: State) {
        self.begun.end(state);
        self.shows(at_ns);
    }

    /// An NMI that took `length_ns` ended; what it met goes on.
    fn nmi(&mut self, at_ns: u64, length_ns: u64) {
        let since_ns = self.above.last().map_or(0, |(at_ns, _)| *at_ns);
        let held_ns = self.holders.last().map_or(0, |(at_ns, _)| *at_ns);
        let from_ns = at_ns.saturating_sub(length_ns).max(since_ns).max(held_ns);
        self.above.push((from_ns, Some(HostInterrupt::Nmi)));
        self.shows(at_ns);
    }

    /// What the CPU works on stands there from `at_ns` on.
    fn shows(&mut self, at_ns: u64) {
        let top = self.begun.top();
        let (last_ns, last) = self.above.last().copied().unwrap_or((0, None));
        if top != last {
            self.above.push((at_ns.max(last_ns), top));
        }
    }

    /// What stands above the holder at `at_ns`.
    pub(crate) fn above_at(&self, at_ns: u64) -> Option<HostInterrupt> {
        let after = self.above.partition_point(|(from_ns, _)| *from_ns <= at_ns);
        self.above[..after].last().and_then(|(_, above)| *above)
    }
}
