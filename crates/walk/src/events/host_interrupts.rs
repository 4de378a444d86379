//! Which interrupt or softirq of the host stands above a task on its CPU?
//!
//! ```text
//! task      ------.                                  .------
//! TIMER           |---.                     .--------|          a softirq
//! irq 24 nvme0q1      |---- local_timer ----|                   hardware interrupts stand above softirqs, never the other way
//! ```
//! Names of softirqs: `show_softirq_name` in include/trace/events/irq.h, Linux 6.12.

use super::roles::{self, ROWS, Role};
use crate::state::State;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::borrow::Cow;
use trace::Event;

/// What takes a CPU from the task that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostInterrupt {
    /// A handler of a hardware interrupt, by its place among the [`Handlers`]; `None` where nothing tells which.
    Irq(Option<u32>),
    /// A vector of the kernel's own, which has no handler to be chosen: `local_timer`.
    Vector(&'static str),
    /// A softirq by its number; `None` where nothing tells which.
    Softirq(Option<u8>),
    /// A non-maskable interrupt.
    Nmi,
}

/// Softirqs by their number.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

impl HostInterrupt {
    /// The state of a vCPU below it.
    pub fn state(self) -> State {
        match self {
            HostInterrupt::Irq(_) | HostInterrupt::Vector(_) => State::Irq,
            HostInterrupt::Softirq(_) => State::Softirq,
            HostInterrupt::Nmi => State::Nmi,
        }
    }

    /// Its kind, as tables name it.
    pub fn kind(self) -> &'static str {
        match self {
            HostInterrupt::Irq(_) => "irq",
            HostInterrupt::Vector(_) => "vector",
            HostInterrupt::Softirq(_) => "softirq",
            HostInterrupt::Nmi => "nmi",
        }
    }

    pub fn unnamed(self) -> Self {
        match self {
            HostInterrupt::Irq(_) | HostInterrupt::Vector(_) => HostInterrupt::Irq(None),
            HostInterrupt::Softirq(_) => HostInterrupt::Softirq(None),
            HostInterrupt::Nmi => HostInterrupt::Nmi,
        }
    }
}

/// Handlers of hardware interrupts that a trace names: lines may be shared, so one number may have several.
#[derive(Debug, Clone, Default)]
pub struct Handlers {
    met: Vec<(u32, String)>,
    by_irq: FxHashMap<u32, SmallVec<[u32; 1]>>,
}

/// More are not told apart: MSI-X gives a device 2,048 interrupts at most, and a file may claim any number.
const MOST_HANDLERS: usize = 1 << 14;

impl Handlers {
    /// What begins with `event`, if something does.
    pub fn begun(&mut self, event: &Event<'_>, role: Role) -> Option<HostInterrupt> {
        match role {
            Role::IrqEntry => Some(HostInterrupt::Irq(self.handler(event))),
            Role::VectorEntry => {
                let row = ROWS.get(usize::from(event.kind))?;
                row.names[0].strip_suffix("_entry").map(HostInterrupt::Vector)
            }
            Role::SoftirqEntry => {
                let number = event.get(roles::softirq::NUMBER).filter(|number| *number < SOFTIRQS.len() as u64);
                Some(HostInterrupt::Softirq(number.map(|number| number as u8)))
            }
            _ => None,
        }
    }

    fn handler(&mut self, event: &Event<'_>) -> Option<u32> {
        let irq = event.get(roles::irq::NUMBER)? as u32;
        let name = event.content(roles::irq::NAME).unwrap_or_default();
        let of_irq = self.by_irq.entry(irq).or_default();
        let known = of_irq.iter().find(|place| self.met[**place as usize].1.as_bytes() == name);
        if let Some(place) = known {
            return Some(*place);
        }
        if self.met.len() >= MOST_HANDLERS {
            return None;
        }
        let place = self.met.len() as u32;
        of_irq.push(place);
        self.met.push((irq, String::from_utf8_lossy(name).into_owned()));
        Some(place)
    }

    /// Its number: of the hardware interrupt, or of the softirq.
    pub fn number(&self, by: HostInterrupt) -> Option<u32> {
        match by {
            HostInterrupt::Irq(place) => self.met.get(place? as usize).map(|(irq, _)| *irq),
            HostInterrupt::Softirq(number) => number.map(u32::from),
            HostInterrupt::Vector(_) | HostInterrupt::Nmi => None,
        }
    }

    /// Its name as the kernel has it, if the trace tells it.
    pub fn name(&self, by: HostInterrupt) -> Option<&str> {
        match by {
            HostInterrupt::Irq(place) => {
                self.met.get(place? as usize).map(|(_, name)| name.as_str()).filter(|name| !name.is_empty())
            }
            HostInterrupt::Vector(name) => Some(name),
            HostInterrupt::Softirq(number) => SOFTIRQS.get(usize::from(number?)).copied(),
            HostInterrupt::Nmi => Some("NMI"),
        }
    }

    /// What people call it: `irq 24 nvme0q1`, `local_timer`, `NET_RX`.
    pub fn title(&self, by: HostInterrupt) -> Cow<'_, str> {
        match (by, self.number(by), self.name(by)) {
            (HostInterrupt::Irq(_), Some(irq), Some(name)) => format!("irq {irq} {name}").into(),
            (HostInterrupt::Irq(_), Some(irq), None) => format!("irq {irq}").into(),
            (_, _, Some(name)) => name.into(),
            (_, _, None) => by.kind().into(),
        }
    }
}

/// What has begun on one CPU and not ended, the latest last.
#[derive(Debug, Clone, Default)]
pub struct Begun(Vec<HostInterrupt>);

/// A hardware interrupt above a softirq makes two; what never ends is damage, or a trace without the ends.
const MOST_BEGUN: usize = 8;

impl Begun {
    /// `by` begins.
    #[inline]
    pub fn begin(&mut self, by: HostInterrupt) {
        if self.0.len() == MOST_BEGUN {
            self.0.remove(0);
        }
        self.0.push(by);
    }

    /// The latest one with this `state` ends.
    #[inline]
    pub fn end(&mut self, state: State) {
        if let Some(place) = self.0.iter().rposition(|by| by.state() == state) {
            self.0.remove(place);
        }
    }

    /// The one that the CPU works on.
    #[inline]
    pub fn top(&self) -> Option<HostInterrupt> {
        self.0.iter().rfind(|by| by.state() == State::Irq).or(self.0.last()).copied()
    }

    /// The CPU changes its task, which it does not inside an interrupt: what seems to be open has ended unseen.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_stands_above_softirqs_and_what_it_met_goes_on() {
        let (softirq, irq) = (HostInterrupt::Softirq(Some(1)), HostInterrupt::Irq(Some(0)));
        let mut begun = Begun::default();
        assert_eq!(begun.top(), None);
        begun.begin(softirq);
        begun.begin(irq);
        assert_eq!(begun.top(), Some(irq));
        begun.begin(HostInterrupt::Softirq(Some(3)));
        assert_eq!(begun.top(), Some(irq), "a softirq does not interrupt it");
        begun.end(State::Irq);
        begun.end(State::Softirq);
        assert_eq!(begun.top(), Some(softirq));
        begun.end(State::Softirq);
        begun.end(State::Softirq);
        assert_eq!(begun.top(), None);
        (0..1_000).for_each(|_| begun.begin(irq));
        assert_eq!(begun.0.len(), MOST_BEGUN, "ends that are missing fill no memory");
    }
}
