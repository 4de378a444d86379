//! Stages of interrupts and timers, added up by vector.

use super::{IrqStage, TimerStage, Told};
use crate::keyed::Key;
use base::Histogram;

/// A vector of a vCPU's local APIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vector(pub u8);

impl Key for Vector {
    fn word(&self) -> u64 {
        self.0.into()
    }
}

/// Virtual interrupts of one vector.
#[derive(Debug, Clone, Default)]
pub struct InterruptSums {
    irq: [Histogram; IrqStage::ALL.len()],
    timer: [Histogram; TimerStage::ALL.len()],
    /// From the local APIC's accepting them to the guest's running with them.
    pub to_entry_ns: Histogram,
    /// Accepts of one that was pending already.
    pub merged: u64,
    /// Those that the processor delivered without an injection.
    pub posted: u64,
    /// Timers whose lateness, as KVM measured it, is not what the stages say.
    pub contradicted: u64,
    /// Timers during which the guest's counter was changed.
    pub moved: u64,
    /// How far the stages that a guest's own trace tells may be off, at most.
    pub clock_error_ns: u64,
}

impl InterruptSums {
    pub fn irq(&self, stage: IrqStage) -> &Histogram {
        &self.irq[stage as usize]
    }

    /// One stage of them, as interrupts of the vCPU's timer.
    pub fn timer(&self, stage: TimerStage) -> &Histogram {
        &self.timer[stage as usize]
    }

    /// Adds a stage that a guest's own trace tells.
    pub fn add_guest(&mut self, length_ns: u64, error_ns: u64) {
        self.irq[IrqStage::Guest as usize].record(length_ns);
        self.clock_error_ns = self.clock_error_ns.max(error_ns);
    }

    pub fn add_timer(&mut self, stage: TimerStage, length_ns: u64) {
        self.timer[stage as usize].record(length_ns);
    }

    #[inline]
    pub fn add(&mut self, told: Told) {
        match told {
            Told::Irq(stage, from_ns, to_ns) => self.irq[stage as usize].record(to_ns.saturating_sub(from_ns)),
            Told::Timer(stage, _, length_ns) => self.timer[stage as usize].record(length_ns),
            Told::Delivered { accepted_ns, entered_ns } => {
                self.to_entry_ns.record(entered_ns.saturating_sub(accepted_ns));
            }
            Told::Merged(_) => self.merged += 1,
            Told::Posted(_) => self.posted += 1,
            Told::Contradicted(_) => self.contradicted += 1,
            Told::Moved(_) => self.moved += 1,
        }
    }

    pub fn distributions(&mut self) -> impl Iterator<Item = &mut Histogram> {
        self.irq.iter_mut().chain(&mut self.timer).chain([&mut self.to_entry_ns])
    }
}

impl Told {
    /// The time by which it is inside of a window or not.
    pub fn at_ns(&self) -> u64 {
        match *self {
            Told::Irq(_, from_ns, _) => from_ns,
            Told::Delivered { accepted_ns, .. } => accepted_ns,
            Told::Timer(_, at_ns, _)
            | Told::Merged(at_ns)
            | Told::Posted(at_ns)
            | Told::Contradicted(at_ns)
            | Told::Moved(at_ns) => at_ns,
        }
    }
}
