//! What userspace saw of a test guest: how often it was left, by kind, and how the run ended.

use kvm_ioctls::VcpuExit;
use std::collections::BTreeMap;
use std::fmt;

/// Why KVM handed the guest to userspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    PortWrite,
    PortRead,
    /// It wrote where no memory is.
    MmioWrite,
    /// It read where no memory is.
    MmioRead,
    Halt,
    /// A signal or an interrupt of the host.
    Interrupted,
    Shutdown,
    /// KVM gave up on an instruction or a state.
    InternalError,
    /// The processor refused to enter the guest.
    RefusedEntry,
    Other,
}

impl From<&VcpuExit<'_>> for Exit {
    fn from(exit: &VcpuExit<'_>) -> Self {
        match exit {
            VcpuExit::IoOut(..) => Exit::PortWrite,
            VcpuExit::IoIn(..) => Exit::PortRead,
            VcpuExit::MmioWrite(..) => Exit::MmioWrite,
            VcpuExit::MmioRead(..) => Exit::MmioRead,
            VcpuExit::Hlt => Exit::Halt,
            VcpuExit::Intr => Exit::Interrupted,
            VcpuExit::Shutdown => Exit::Shutdown,
            VcpuExit::InternalError => Exit::InternalError,
            VcpuExit::FailEntry(..) => Exit::RefusedEntry,
            _ => Exit::Other,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Exit::PortWrite => "port write",
            Exit::PortRead => "port read",
            Exit::MmioWrite => "MMIO write",
            Exit::MmioRead => "MMIO read",
            Exit::Halt => "halt",
            Exit::Interrupted => "interrupted by the host",
            Exit::Shutdown => "shutdown (triple fault)",
            Exit::InternalError => "KVM internal error",
            Exit::RefusedEntry => "entry refused by the CPU",
            Exit::Other => "another exit",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// All rounds were run.
    Whole,
    /// The watchdog stopped it.
    Stuck,
    /// KVM or the CPU would not go on, for that reason.
    Failed(String),
}

/// One program's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub program: &'static str,
    pub rounds: u32,
    /// Exits to userspace by kind, the final write to the end port and the watchdog's interruptions left out.
    pub exits: BTreeMap<Exit, u64>,
    pub ended: Ended,
}

/// What a self-check ran.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    /// Each program's run, in order.
    pub outcomes: Vec<Outcome>,
}

impl Outcome {
    /// How often userspace saw `exit`.
    pub fn count(&self, exit: Exit) -> u64 {
        self.exits.get(&exit).copied().unwrap_or(0)
    }
}

impl Ran {
    /// How often userspace saw `exit`, all programs together.
    pub fn count(&self, exit: Exit) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.count(exit)).sum()
    }

    /// The programs that this host did not run to their end.
    pub fn unable(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.ended != Ended::Whole)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} rounds", self.program, self.rounds)?;
        for (exit, count) in &self.exits {
            write!(formatter, ", {count} x {exit}")?;
        }
        match &self.ended {
            Ended::Whole => Ok(()),
            Ended::Stuck => formatter.write_str("; it did not end and was stopped by the watchdog"),
            Ended::Failed(why) => write!(formatter, "; it ended early: {why}"),
        }
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.outcomes.iter().try_for_each(|outcome| writeln!(formatter, "{outcome}"))
    }
}
