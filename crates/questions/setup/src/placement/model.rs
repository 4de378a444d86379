//! The words for placements: a machine, what its threads want, and what could be done.

use super::below::Cap;
use super::culprits::Verdicts;
use super::proposal::Proposal;
use super::solver::Goal;
use base::CpuSet;
use base::Level;
use facts::shares::demand;
use facts::starvation::is_starved;
use host::Machine;
use host::machine::{Domain, Role, Thread};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use facts::starvation::{FLOOR as BUSY, STARVED};

/// Steal above this makes every other number of the CPU unstable.
pub(crate) const UNSTABLE_STEAL: f64 = 0.05;

/// CPUs that were waited for beyond what the model finds missing, from which on it is said: our own threshold.
const UNEXPLAINED: f64 = 0.25;

/// A CPU that is idle for at least so much of the time has room: our own threshold.
pub(crate) const ROOM: f64 = 0.5;

/// A CPU of helpers that is idle for at least so much of the time has room for others: our own threshold.
const NEARLY_IDLE: f64 = 0.9;

/// What the user fixes and wishes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wishes {
    pub goal: Goal,
    /// What stays where it is: domains, the interrupts of a NIC by its name, `irq34`, `irqs`, `pmd`, `kernel`.
    pub keep: Vec<String>,
    /// CPUs that get no thread of a VM.
    pub reserve: CpuSet,
    /// Polling threads that the switch of the host is to have, in place of those that it has.
    pub polling: Option<AskedPolling>,
}

/// A number of polling threads that somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedPolling {
    pub threads: u32,
    /// Who asks: an option, a plan's file.
    pub from: String,
}

impl Wishes {
    /// Whether what has this name stays where it is.
    pub fn keeps(&self, name: &str) -> bool {
        self.keep.iter().any(|kept| kept == name)
    }
}

pub struct Model {
    /// Its name in the recording: `L0`.
    pub id: String,
    pub level: Level,
    pub machine: Arc<Machine>,
    pub proposal: Proposal,
    /// Who kept its starved threads from running.
    pub(crate) verdicts: Verdicts,
    /// True if it was pasted rather than read from files.
    pub pasted: bool,
    /// Limits of the VMs one level below, one of which this machine may be.
    pub(crate) caps_below: Vec<Cap>,
}

/// How much CPU a thread wants: known, or between two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Demand {
    /// At least.
    pub low: f64,
    pub likely: f64,
    /// At most.
    pub high: f64,
}

impl Demand {
    /// By what it ran and waited; a thread of which neither is known may want nothing or a whole CPU.
    pub(crate) fn of(thread: &Thread) -> Self {
        let run = thread.run_share.as_ref().map(|run| run.value);
        let wait = thread.wait_share.as_ref().map(|wait| wait.value);
        match (run, wait) {
            (Some(run), Some(wait)) => Self { low: run, likely: demand(run, wait), high: (run + wait).min(1.0) },
            (Some(run), None) => Self { low: run, likely: run, high: 1.0 },
            _ => {
                let likely = match thread.role {
                    // A polling thread takes its CPU whole, packets or none.
                    Role::Pmd => 1.0,
                    Role::Vcpu(_) => 0.5,
                    Role::Vhost => 0.3,
                    Role::Emulator | Role::IoThread(_) | Role::Other => 0.1,
                };
                Self { low: 0.0, likely, high: 1.0 }
            }
        }
    }
}

/// What quotas leave of the wishes of the threads under them.
pub(super) struct Quotas<'a> {
    machine: &'a Machine,
    /// CPUs that the threads of each group with a quota want together.
    wanted: BTreeMap<&'a str, f64>,
}

impl<'a> Quotas<'a> {
    pub(super) fn of(machine: &'a Machine) -> Self {
        let mut wanted: BTreeMap<&str, f64> = BTreeMap::new();
        for thread in machine.threads.iter().filter(|_| !machine.quotas.is_empty()) {
            let demand = Demand::of(thread).likely;
            machine.quotas_of(thread).for_each(|(path, _)| *wanted.entry(path).or_default() += demand);
        }
        Self { machine, wanted }
    }

    /// What a thread can use of what it wants: each group's quota goes to its threads by their wishes.
    pub(super) fn demand(&self, thread: &Thread) -> Demand {
        let part = |(path, quota): (&String, &host::machine::Quota)| match self.wanted.get(path.as_str()) {
            Some(wanted) if *wanted > quota.cpus.value => quota.cpus.value / wanted,
            _ => 1.0,
        };
        let part = self.machine.quotas_of(thread).map(part).fold(1.0, f64::min);
        let all = Demand::of(thread);
        // What it ran already was within.
        let low = all.low.min(all.likely);
        Demand { low, likely: (part * all.likely).max(low), high: (part * all.high).max(low) }
    }
}

/// Whether threads of a role carry a domain's packets and disks or manage it.
pub(in crate::placement) fn is_helper(role: Role) -> bool {
    matches!(role, Role::Vhost | Role::Emulator | Role::IoThread(_))
}

impl Model {
    /// Threads that carry a domain's packets and disks or manage it: everything but its vCPUs.
    pub fn helpers<'a>(&'a self, domain: &'a Domain) -> impl Iterator<Item = &'a Thread> {
        self.machine.threads_of(&domain.name).filter(|thread| is_helper(thread.role))
    }

    pub fn vcpus<'a>(&'a self, domain: &'a Domain) -> impl Iterator<Item = &'a Thread> {
        self.machine.threads_of(&domain.name).filter(|thread| matches!(thread.role, Role::Vcpu(_)))
    }

    /// CPUs that threads were measured to wait for in all, where the model finds far fewer missing as things are.
    pub fn unexplained(&self) -> Option<f64> {
        let of_vms = self.machine.threads.iter().filter(|thread| thread.vm.is_some());
        let shares =
            of_vms.filter_map(|thread| Some((thread.run_share.as_ref()?.value, thread.wait_share.as_ref()?.value)));
        let waited: f64 = shares.filter(|(run, wait)| is_starved(*run, *wait)).map(|(_, wait)| wait).sum();
        let missing = self.proposal.missing(self.proposal.now()?);
        (waited > missing + UNEXPLAINED).then_some(waited)
    }

    /// CPUs that no thread of a VM is bound to, of those that run. A mask of all CPUs binds nobody.
    pub(crate) fn unbound(&self) -> CpuSet {
        let online = &self.machine.topology.online;
        let bound = self.machine.threads.iter().filter(|thread| thread.role != Role::Other);
        let masks =
            bound.filter_map(|thread| Some(&thread.affinity.as_ref()?.value)).filter(|set| !online.is_within(set));
        masks.fold(online.clone(), |free, set| free.without(set))
    }

    /// CPUs that could take more work: no thread of a VM is bound to them, nothing is isolated there, and no placement on the same
    /// page sends a thread to them.
    pub(crate) fn spare(&self) -> CpuSet {
        let isolated = self.machine.topology.isolated.clone().unwrap_or_default();
        self.not_placed(self.unbound().without(&isolated))
    }

    /// Those of these CPUs to which no placement on the page sends a vCPU or a polling thread.
    fn not_placed(&self, cpus: CpuSet) -> CpuSet {
        let units = &self.proposal.task.units;
        let placed = self.proposal.better().into_iter().flat_map(|plan| units.iter().zip(&plan.places));
        let placed = placed.filter(|(unit, place)| unit.kind.is_pinned() && unit.now.as_ref() != Some(place));
        placed.fold(cpus, |free, (_, place)| free.without(place))
    }

    /// CPUs that are nearly idle, and to which helpers alone are bound.
    pub(crate) fn of_idle_helpers(&self) -> CpuSet {
        let polling = self.machine.threads.iter().filter(|thread| thread.role == Role::Pmd);
        let polling = polling.filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
        let taken = polling.chain(&self.machine.topology.isolated).fold(self.of_vcpus(), |all, set| all.or(set));
        let is_idle = |cpu: &u32| self.machine.cpu_use.get(cpu).is_some_and(|usage| usage.idle >= NEARLY_IDLE);
        self.not_placed(self.machine.topology.online.without(&taken)).iter().filter(is_idle).collect()
    }

    /// Whether a CPU was seen to have room.
    pub(crate) fn has_room(&self, cpu: u32) -> bool {
        self.machine.cpu_use.get(&cpu).is_some_and(|usage| usage.idle >= ROOM)
    }

    /// CPUs that vCPUs of any domain are bound to.
    pub fn of_vcpus(&self) -> CpuSet {
        let vcpus = self.machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)));
        let masks = vcpus.filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
        // A mask of all CPUs binds to none; which are all is not always known.
        let online = &self.machine.topology.online;
        masks.filter(|set| online.is_empty() || !online.is_within(set)).fold(CpuSet::default(), |all, set| all.or(set))
    }
}
