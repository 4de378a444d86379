//! What does the model of shares expect of typed changes, thread by thread?
//!
//! ```text
//! Machine: threads, CPUs, use of each --> contenders --\
//! changes --> threads and interrupts that move ---------> Expected --> direction
//! ```
//! The solver scores units, of which one may be many threads, and prices more than CPU time. `apply` asks how much CPU each
//! thread will get, and refuses what makes that worse; whatever is proposed has passed the same question first.

use super::model::Demand;
use super::proposal::ran;
use crate::facts::shares::{Contender, Cpus, Direction, Expected, Move};
use base::{Change, CpuSet, Setting};
use host::Machine;
use host::machine::{Role, Thread};

/// A machine as the model has it.
pub(super) struct Expectations<'a> {
    machine: &'a Machine,
    cpus: Cpus,
    threads: Vec<Contender>,
}

impl<'a> Expectations<'a> {
    pub(super) fn of(machine: &'a Machine) -> Self {
        let contender = |thread: &Thread| {
            let (tid, cpus) = (u32::try_from(thread.tid?).ok()?, thread.affinity.as_ref()?.value.clone());
            Some(Contender::new(tid, Some(thread.role), Demand::of(thread).likely, cpus))
        };
        Self {
            machine,
            cpus: Cpus::of(&machine.topology, &machine.cpu_use, machine.threads.iter().filter_map(ran)),
            threads: machine.threads.iter().filter_map(contender).collect(),
        }
    }

    /// True if `apply` would refuse these changes, as this machine is.
    pub(super) fn refuses(&self, changes: &[Change]) -> bool {
        self.expected(changes).direction() == Direction::Worse
    }

    fn expected(&self, changes: &[Change]) -> Expected {
        let (mut moves, mut interrupts) = (Vec::new(), Vec::new());
        for change in changes {
            let cpus = &change.to;
            match &change.setting {
                Setting::TaskAffinity(thread) => moves.extend(moved(Some(thread.tid), cpus)),
                Setting::VcpuPin { domain, vcpu, .. } => {
                    moves.extend(self.of_domain(domain, cpus, |role| role == Role::Vcpu(*vcpu)));
                }
                Setting::IothreadPin { domain, iothread, .. } => {
                    moves.extend(self.of_domain(domain, cpus, |role| role == Role::IoThread(*iothread)));
                }
                Setting::EmulatorPin { domain, .. } => {
                    let follows = |role| matches!(role, Role::Emulator | Role::Vhost | Role::Other);
                    moves.extend(self.of_domain(domain, cpus, follows));
                }
                Setting::IrqAffinity { irq } => interrupts.extend(self.interrupt(*irq, cpus)),
                // Whom these give CPU time to is not known.
                Setting::PmdMask
                | Setting::TaskPolicy(_)
                | Setting::SysfsWrite { .. }
                | Setting::Sysctl { .. }
                | Setting::ModuleOption { .. } => {}
            }
        }
        Expected::of(&self.cpus, &self.threads, &self.machine.cpu_use, &moves, &interrupts)
    }

    fn of_domain(&self, domain: &str, cpus: &str, wanted: impl Fn(Role) -> bool) -> Vec<Move> {
        let threads = self.machine.threads_of(domain).filter(|thread| wanted(thread.role));
        threads.filter_map(|thread| moved(thread.tid, cpus)).collect()
    }

    /// The CPUs that an interrupt leaves and those that it is to use.
    fn interrupt(&self, number: u32, cpus: &str) -> Option<(CpuSet, CpuSet)> {
        let irq = self.machine.irqs.iter().find(|irq| irq.number == number)?;
        let asked = irq.affinity.as_ref().map(|asked| &asked.value);
        let from = irq.effective.as_ref().filter(|cpus| !cpus.is_empty()).or(asked)?;
        Some((from.clone(), CpuSet::parse(cpus)?))
    }
}

fn moved(tid: Option<i32>, cpus: &str) -> Option<Move> {
    Some(Move { tid: u32::try_from(tid?).ok()?, cpus: CpuSet::parse(cpus)? })
}
