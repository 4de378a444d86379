//! Numbers for causes, so that a piece needs not hold its own.

use super::model::{By, Cause, LostIn};
use std::sync::Arc;
use walk::events::host_interrupts::HostInterrupt;
use walk::keyed::{Key, Keyed};

/// Places of the causes that are not known yet: each state by itself.
pub(super) const HANDLING: u32 = 0;
pub(super) const USERSPACE: u32 = 1;
pub(super) const BLOCKED: u32 = 2;
pub(super) const PREEMPTED: u32 = 3;
pub(super) const WAKE_DELAY: u32 = 4;

/// Their states, by these places.
const OPEN: [LostIn; 5] = [LostIn::Handling, LostIn::Userspace, LostIn::Blocked, LostIn::Preempted, LostIn::WakeDelay];

/// All causes of a trace, in the order in which they were met.
#[derive(Clone)]
pub(super) struct Causes {
    all: Vec<Cause>,
    /// One more than their places.
    numbers: Keyed<Cause, u32>,
}

impl Default for Causes {
    fn default() -> Self {
        let mut causes = Self { all: Vec::new(), numbers: Keyed::default() };
        for state in OPEN {
            causes.place(state, By::Unknown);
        }
        causes
    }
}

impl Causes {
    pub(super) fn place(&mut self, state: LostIn, by: By) -> u32 {
        let cause = Cause { state, by };
        let number = self.numbers.at(cause);
        if *number == 0 {
            self.all.push(cause);
            *number = self.all.len() as u32;
        }
        *number - 1
    }

    /// The place of the cause that is known now of a piece whose own was `open`.
    #[inline]
    pub(super) fn known(&mut self, open: u32, by: By) -> u32 {
        self.place(self.all[open as usize].state, by)
    }

    pub(super) fn into_all(self) -> Arc<[Cause]> {
        self.all.into()
    }
}

impl Key for Cause {
    #[inline]
    fn word(&self) -> u64 {
        let by = match self.by {
            By::Task(tid) => tid as u64,
            By::Interrupt(HostInterrupt::Irq(number)) => number.map_or(0, u64::from),
            By::Interrupt(HostInterrupt::Softirq(number)) => number.map_or(0, u64::from),
            By::Interrupt(HostInterrupt::Vector(name)) => name.len() as u64,
            By::Exit(reason) => u64::from(reason.code),
            By::Interrupt(HostInterrupt::Nmi) | By::Throttled | By::Stopped | By::Unknown => 0,
        };
        by << 3 | self.state as u64
    }
}
