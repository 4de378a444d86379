//! Which rule reports that a thread was starved? The one whose change would end it.

use super::kinds::{frequent, roams};
use super::{Kind, Verdict};
use crate::placement::held::{covered, held};
use crate::placement::model::{BUSY, UNSTABLE_STEAL, is_helper};
use base::CpuSet;
use host::Machine;
use host::machine::{Fact, Role, Thread};

/// A rule that reports victims; each victim has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reporter {
    /// PLC-OVERCOMMIT.
    Overcommit,
    /// PLC-ISOL.
    Isolation,
    /// PLC-QUOTA.
    Quota,
    /// PLC-BED.
    Bed,
    /// PLC-IRQ.
    Irq,
    /// PLC-PMD.
    Pmd,
    /// PLC-OVERLAP.
    Overlap,
    /// PLC-STACKED.
    Stacked,
    /// PLC-FLOAT, about the VM that may run anywhere, whichever of the two starves.
    Float,
    /// PLC-COVERS, about the VMs whose mask takes in what another one has for itself, whichever of them starves.
    Covers,
    /// PLC-STARVED: what no other rule is about.
    Starved,
}

impl Reporter {
    /// Whether the cause is of another kind than where threads of VMs are pinned.
    pub(crate) fn is_beyond_pins(self) -> bool {
        use Reporter::{Bed, Covers, Float, Irq, Isolation, Overcommit, Overlap, Pmd, Quota, Stacked, Starved};
        match self {
            Overcommit | Isolation | Quota | Bed | Irq | Pmd | Covers => true,
            Overlap | Stacked | Float | Starved => false,
        }
    }
}

/// The one CPU that a thread is bound to.
pub(in crate::placement) fn only_cpu(thread: &Thread) -> Option<u32> {
    let set = &thread.affinity.as_ref()?.value;
    set.first().filter(|_| set.len() == 1)
}

/// The CPU that a vCPU shares with all others that are bound to it, unless it is known to be idle.
pub(in crate::placement) fn stack_of(thread: &Thread) -> Option<u32> {
    let below = |share: &Option<Fact<f64>>| share.as_ref().map(|share| share.value < BUSY);
    let idle = below(&thread.run_share) == Some(true) && below(&thread.wait_share) != Some(false);
    only_cpu(thread).filter(|_| matches!(thread.role, Role::Vcpu(_)) && !idle)
}

pub(super) fn reporter(machine: &Machine, verdict: &Verdict) -> Reporter {
    let Some(winner) = verdict.winner() else { return Reporter::Starved };
    let victim = &machine.threads[verdict.victim];
    let is_vcpu = |thread: &Thread| matches!(thread.role, Role::Vcpu(_));
    let busiest = winner.threads.first().map(|position| &machine.threads[*position]);
    let stacked = busiest.is_some_and(|rival| stack_of(rival).is_some() && stack_of(rival) == stack_of(victim));
    let known =
        |thread: &Thread| thread.vm.as_ref().is_some_and(|vm| machine.domains.iter().any(|domain| domain.name == *vm));
    // What PLC-OVERLAP is about: helpers and vCPUs of a VM whose sets are known and meet.
    let overlaps = |thread: &Thread| {
        let set = |wanted: &dyn Fn(&&Thread) -> bool| {
            let threads = machine.threads.iter().filter(|other| other.vm == thread.vm).filter(wanted);
            let sets = threads.filter_map(|other| Some(&other.affinity.as_ref()?.value));
            sets.fold(CpuSet::default(), |all, set| all.or(set))
        };
        known(thread) && set(&|other| is_helper(other.role)).meets(&set(&|other| is_vcpu(other)))
    };
    // A polling thread that is bound to a CPU of a pinned vCPU.
    let polled = |pmd: &Thread, vcpu: &Thread| {
        let set = vcpu.affinity.as_ref().map(|set| &set.value);
        let on = only_cpu(pmd).is_some_and(|cpu| set.is_some_and(|set| set.contains(cpu)));
        pmd.role == Role::Pmd && is_vcpu(vcpu) && !roams(machine, vcpu) && on
    };
    // A pinned vCPU, and a thread of another VM that need not be there.
    let floats = |pinned: &Thread, other: &Thread| {
        is_vcpu(pinned) && !roams(machine, pinned) && roams(machine, other) && other.role != Role::Vhost && known(other)
    };
    // A vCPU that has its CPU for its VM, and a vCPU of another one that may run there and elsewhere.
    let covers = |pinned: &Thread, other: &Thread| {
        let may_both = only_cpu(pinned).filter(|_| is_vcpu(pinned) && is_vcpu(other) && !roams(machine, other));
        let all = || held(machine);
        may_both.is_some_and(|cpu| known(other) && covered(machine, &all(), other).contains(cpu))
    };
    match winner.kind {
        Kind::Overcommit => Reporter::Overcommit,
        Kind::Isolation => Reporter::Isolation,
        Kind::Quota => Reporter::Quota,
        Kind::Steal if winner.took > UNSTABLE_STEAL * verdict.cpus.len() as f64 => Reporter::Bed,
        Kind::Interrupts if verdict.cpus.iter().any(|cpu| frequent(machine, cpu).next().is_some()) => Reporter::Irq,
        Kind::Polling if busiest.is_some_and(|pmd| polled(pmd, victim)) => Reporter::Pmd,
        Kind::Neighbours if busiest.is_some_and(|vcpu| polled(victim, vcpu)) => Reporter::Pmd,
        Kind::Vcpus | Kind::Neighbours if stacked => Reporter::Stacked,
        Kind::Vcpus if !is_vcpu(victim) && overlaps(victim) => Reporter::Overlap,
        Kind::Helpers if is_vcpu(victim) && overlaps(victim) => Reporter::Overlap,
        Kind::Neighbours if busiest.is_some_and(|rival| floats(victim, rival) || floats(rival, victim)) => {
            Reporter::Float
        }
        Kind::Neighbours if busiest.is_some_and(|rival| covers(victim, rival) || covers(rival, victim)) => {
            Reporter::Covers
        }
        Kind::RealTime
        | Kind::Steal
        | Kind::Interrupts
        | Kind::Polling
        | Kind::Vcpus
        | Kind::Helpers
        | Kind::Neighbours
        | Kind::Programs
        | Kind::Sibling => Reporter::Starved,
    }
}
