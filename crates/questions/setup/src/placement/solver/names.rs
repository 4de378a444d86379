//! What a placement does, in words: by where things are then, whatever the search began with.

use super::caches::Together;
use super::ground::Ground;
use super::limits::Occupied;
use super::{Kind, Unit};
use base::CpuSet;
use base::number::{list, many};
use std::collections::BTreeSet;

/// `helpers off the vCPUs' CPUs and 2 vCPUs moved`.
pub(super) fn name(ground: &Ground<'_>, places: &[CpuSet]) -> String {
    let task = ground.task;
    let moved = |unit: &usize| task.units[*unit].now.as_ref() != Some(&places[*unit]);
    let of = |wanted: fn(&Unit) -> bool| -> Vec<usize> {
        (0..places.len()).filter(|unit| wanted(&task.units[*unit])).filter(moved).collect()
    };
    let mut occupied = Occupied::nothing(ground);
    places.iter().enumerate().for_each(|(unit, place)| occupied.add(ground, unit, place));
    let off = |units: &[usize]| {
        let mut cpus = units.iter().flat_map(|unit| ground.positions(&places[*unit]));
        cpus.all(|cpu| !occupied.has_vcpu(cpu))
    };
    let mut parts = Vec::new();
    let vcpus = of(|unit| unit.kind == Kind::Vcpu);
    if !vcpus.is_empty() {
        let count = many(vcpus.len() as u64, "vCPU");
        let whole = |wanted: &dyn Fn(usize) -> bool| vcpus.iter().all(|unit| wanted(*unit));
        let single = whole(&|unit| places[unit].len() == 1);
        let own = |unit: usize| ground.positions(&places[unit]).all(|cpu| occupied.users(cpu) == 1);
        let own_core =
            |unit: usize| ground.positions(&places[unit]).all(|cpu| occupied.users_of_core(ground, cpu) == 1);
        let together = Together::of(ground, places);
        let nearer = together.apart() < Together::of(ground, &ground.now()).apart() - 1e-9;
        let beside = |unit: usize| ground.positions(&places[unit]).all(|cpu| !together.is_away(ground, unit, cpu));
        let to = match (single, single && whole(&own_core), single && whole(&own)) {
            (false, ..) => "on sets of CPUs",
            (_, true, _) => "to cores of their own",
            (_, _, true) => "to CPUs of their own",
            _ => "to other CPUs",
        };
        // Where the host has nodes, that they are on one is the point.
        let of_host: BTreeSet<u32> = task.cpus.iter().map(|cpu| cpu.node).collect();
        let nodes: BTreeSet<u32> =
            vcpus.iter().flat_map(|unit| ground.positions(&places[*unit])).map(|at| task.cpus[at].node).collect();
        let on = match (single, nodes.first()) {
            (false, Some(node)) if nodes.len() == 1 && of_host.len() > 1 => format!(" of node {node}"),
            _ => String::new(),
        };
        let shared = if single && nearer && whole(&beside) { " that share a last-level cache" } else { "" };
        parts.push(format!("{count} {to}{on}{shared}"));
    }
    let helpers = of(|unit| matches!(unit.kind, Kind::Helpers | Kind::Worker));
    if !helpers.is_empty() {
        let away = off(&helpers);
        parts.push(if away { "helpers to CPUs without a pinned vCPU" } else { "helpers to other CPUs" }.to_owned());
    }
    let irqs = of(|unit| unit.kind == Kind::Irq);
    if !irqs.is_empty() {
        let away = if off(&irqs) { "without a pinned vCPU" } else { "of pinned vCPUs" };
        parts.push(format!("{} to CPUs {away}", many(irqs.len() as u64, "interrupt")));
    }
    if !of(|unit| unit.kind == Kind::Pmd).is_empty() {
        parts.push("polling threads to other CPUs".to_owned());
    }
    if !of(|unit| unit.kind == Kind::Housekeeping).is_empty() {
        parts.push("kernel work off the vCPUs' CPUs".to_owned());
    }
    list(&parts)
}
