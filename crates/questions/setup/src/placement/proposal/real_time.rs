//! vCPUs with a real-time policy: a host is set up around their CPUs, so that others go first.

use super::units::Subject;
use crate::placement::solver::{Kind, Task};
use base::CpuSet;
use host::Machine;

pub(super) const STAYS: &str = "not moved: it has a real-time policy, and only helpers beside it, which can go";

/// Real-time vCPUs with a CPU that only helpers of their own VM may use as well: its CPU is what a host is set up around, so these go.
pub(super) fn beside_helpers(machine: &Machine, task: &Task, subjects: &[Subject]) -> Vec<usize> {
    let units = || task.units.iter().zip(subjects).enumerate();
    let is_real_time = |of: &Subject| {
        let mut own = machine.threads_of(&of.vm).filter(|thread| thread.role == of.role);
        own.any(|thread| matches!(thread.policy, Some(1 | 2)))
    };
    let alone = units().filter(|(_, (unit, of))| unit.kind == Kind::Vcpu && !unit.kept && is_real_time(of));
    let alone = alone.filter_map(|(at, (unit, of))| Some((at, unit.now.as_ref().filter(|now| now.len() == 1)?, of)));
    let is_met = |(at, now, of): &(usize, &CpuSet, &Subject)| {
        let others =
            units().filter(|(other, (unit, _))| other != at && unit.now.as_ref().is_some_and(|set| set.meets(now)));
        let others: Vec<_> =
            others.map(|(_, (unit, other))| unit.kind == Kind::Helpers && !unit.kept && other.vm == of.vm).collect();
        !others.is_empty() && others.iter().all(|is_helper| *is_helper)
    };
    alone.filter(is_met).map(|(at, ..)| at).collect()
}
