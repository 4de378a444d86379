//! Threads that wait because their group counts for less than the one of those that run meanwhile.

use super::starved::with_victims;
use crate::page::typed;
use crate::placement::culprits::{Kind, Verdict, is_real_time};
use crate::placement::model::{Demand, Model};
use base::number::counted;
use base::{Cost, CostKind, Severity};
use facts::rule::Hit;
use facts::starvation::UNIT;
use host::machine::{Fact, Parting, Role, Thread, is_within_group};
use std::collections::{BTreeMap, BTreeSet};
use tongue::groups::{named, usual, weighs};

/// A group that counts for so much more than another one takes most of what both want: our own limit.
pub(in crate::placement) const HEAVIER: f64 = 2.0;

/// Groups of VMs that got little of a CPU beside a group with more weight, one finding for each of them.
pub(crate) fn outweighed(model: &Model) -> Vec<Hit> {
    let mut groups: BTreeMap<&str, (Parting<'_>, Vec<&Verdict>)> = BTreeMap::new();
    for verdict in model.verdicts.all() {
        if let Some(parting) = parting(model, verdict) {
            groups.entry(parting[0].0).or_insert((parting, Vec::new())).1.push(verdict);
        }
    }
    groups.into_values().map(|(parting, victims)| hit(model, parting, &victims)).collect()
}

/// Where a victim and whoever ran meanwhile are in groups of which the victim's is lighter by far.
fn parting<'a>(model: &'a Model, verdict: &Verdict) -> Option<Parting<'a>> {
    let machine = &model.machine;
    let victim = &machine.threads[verdict.victim];
    let winner = verdict.winner()?;
    let is_full = winner.kind == Kind::Overcommit;
    let rival = match winner.threads.first() {
        Some(position) => &machine.threads[*position],
        None if is_full => busiest(model, victim)?,
        None => return None,
    };
    // A real-time policy comes before all weights.
    if victim.vm.is_none() || is_real_time(victim) || is_real_time(rival) {
        return None;
    }
    // What VMs weigh themselves, where all are short, PLC-OVERCOMMIT says.
    let parting = machine.parting(victim, rival).filter(|[(own, _), _]| !is_full || vm_of(model, own).is_none())?;
    let [own, other] = parting.map(|(_, weight)| weight.value as f64);
    // A group's weight is divided among its threads by what they want (`calc_group_shares`, kernel/sched/fair.c, Linux 6.12).
    let each = |(path, weight): (&str, &Fact<u64>)| weight.value as f64 / wanted(model, path).max(1.0);
    let [own_each, other_each] = parting.map(each);
    (other > own && other >= HEAVIER * own && other_each >= HEAVIER * own_each).then_some(parting)
}

/// The group of a victim by whose weight it gets little, as PLC-WEIGHT says.
pub(super) fn lighter<'a>(model: &'a Model, verdict: &Verdict) -> Option<&'a str> {
    parting(model, verdict).map(|[(own, _), _]| own)
}

/// The vCPU of another VM that ran most.
fn busiest<'a>(model: &'a Model, victim: &Thread) -> Option<&'a Thread> {
    let others = model.machine.threads.iter().filter(|thread| thread.vm.is_some() && thread.vm != victim.vm);
    let vcpus = others.filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    let ran = |thread: &Thread| thread.run_share.as_ref().map_or(0.0, |run| run.value);
    vcpus.max_by(|a, b| ran(a).total_cmp(&ran(b)))
}

fn inside<'a>(model: &'a Model, path: &str) -> impl Iterator<Item = &'a Thread> {
    let is_inside =
        move |thread: &&Thread| thread.time_group.as_deref().is_some_and(|group| is_within_group(group, path));
    model.machine.threads.iter().filter(is_inside)
}

/// CPUs that the threads of a group want together.
fn wanted(model: &Model, path: &str) -> f64 {
    inside(model, path).map(|thread| Demand::of(thread).likely).sum()
}

/// The VM that a group is of, where all its threads are of one. A slice is nobody's, however few are in it.
fn vm_of<'a>(model: &'a Model, path: &str) -> Option<&'a str> {
    let vms: BTreeSet<Option<&str>> = inside(model, path).map(|thread| thread.vm.as_deref()).collect();
    vms.first().copied().flatten().filter(|_| vms.len() == 1 && !path.ends_with(".slice"))
}

/// The weight of a VM beside others: as its group has it, else as it was defined.
pub(super) fn of_vm(model: &Model, vm: &str) -> Option<u64> {
    let group = model.machine.threads_of(vm).find_map(|thread| thread.time_group.as_deref());
    // Its own group is the highest that is of it alone.
    let above = group.into_iter().flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]));
    let own = above.filter(|path| !path.is_empty()).find(|path| vm_of(model, path).is_some());
    let told = own.and_then(|path| model.machine.weights.get(path)).map(|weight| weight.value);
    let domain = || model.machine.domains.iter().find(|domain| domain.name == vm);
    told.or_else(|| domain()?.cpu_shares.as_ref().map(|told| told.value))
}

fn hit(model: &Model, parting: Parting<'_>, victims: &[&Verdict]) -> Hit {
    let [(own, weight), (other, heavier)] = parting;
    let short: f64 = victims.iter().map(|verdict| verdict.waited).sum();
    let name = |path: &str| vm_of(model, path).map_or_else(|| named(path).into_owned(), str::to_owned);
    let title = format!(
        "{} has a CPU weight of {} beside {} of {}: {} there {short:.2} CPUs short",
        name(own),
        weight.value,
        heavier.value,
        name(other),
        counted(victims.len() as u64, "thread is", "threads are"),
    );
    let mut hit = Hit::new(own, Severity::High, title)
        .seen(format!("{own} has the weight {}", weight.value), &weight.place)
        .seen(format!("{other} has the weight {}", heavier.value), &heavier.place);
    hit = with_victims(model, hit, victims);
    hit.cost = Cost::of(CostKind::Measured, short, UNIT);
    let vms = victims.iter().filter_map(|verdict| model.machine.threads[verdict.victim].vm.as_ref());
    hit.explains.extend(vms.map(|vm| format!("PLC-STARVED@{vm}")));
    hit.explains.dedup();
    // Who is lighter than usual is set to it, and who is heavier as well; else the heavier one to what the lighter one has.
    let usual = usual(weight);
    let level = weight.value.max(usual);
    if weight.value < level {
        set(model, parting[0], level, &mut hit);
    }
    if heavier.value > level {
        set(model, parting[1], level, &mut hit);
    }
    if hit.fix.is_empty() {
        hit.fix.push("grep -H . /sys/fs/cgroup/*/cpu.weight   # of both groups: who sets them?".to_owned());
    }
    hit
}

/// What gives a group another weight: in the words of libvirt for a VM, of its owner for others.
fn set(model: &Model, (path, weight): (&str, &Fact<u64>), to: u64, hit: &mut Hit) {
    typed(hit, weighs(path, vm_of(model, path), weight, to));
}
