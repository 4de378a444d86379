//! Groups whose set of CPUs is what starved threads lack: other CPUs are idle, and no pin reaches them.

use super::starved::with_victims;
use crate::placement::culprits::{Verdict, cpus_named};
use crate::placement::model::Model;
use base::number::{counted, list};
use base::shell::quoted;
use base::{Cost, CostKind, CpuSet, Severity};
use facts::rule::Hit;
use facts::starvation::UNIT;
use std::collections::BTreeMap;

/// A CPU that is idle for at least so much of the time has room: our own threshold.
pub(in crate::placement) const ROOM: f64 = 0.5;

/// Groups of systemd that keep starved threads on full CPUs, while others are idle. Those of Kubernetes have a pool for a reason.
pub(crate) fn slices(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let online = &machine.topology.online;
    let idle = |cpu: &u32| machine.cpu_use.get(cpu).is_some_and(|usage| usage.idle >= ROOM);
    let mut groups: BTreeMap<&str, (&CpuSet, &str, Vec<&Verdict>)> = BTreeMap::new();
    for verdict in model.verdicts.all() {
        let thread = &machine.threads[verdict.victim];
        let Some((path, limit)) = machine.limit_of(thread) else { continue };
        // The group that sets the limit: the highest with the same CPUs.
        let mut top = path;
        while let Some((above, _)) = top.rsplit_once('/')
            && machine
                .cgroups
                .get(above)
                .and_then(|group| group.effective.as_ref())
                .is_some_and(|set| set.value == limit.value)
        {
            top = above;
        }
        let takes_all = thread.affinity.as_ref().is_some_and(|set| limit.value.and(online).is_within(&set.value));
        if online.is_within(&limit.value) || top.contains("kubepods") || !takes_all {
            continue;
        }
        let place =
            machine.cgroups.get(top).and_then(|group| group.effective.as_ref()).map_or("", |set| set.place.as_str());
        groups.entry(top).or_insert((&limit.value, place, Vec::new())).2.push(verdict);
    }
    let mut hits = Vec::new();
    for (path, (limit, place, victims)) in groups {
        let free: CpuSet = online.without(limit).iter().filter(idle).collect();
        let Some(unit) =
            path.rsplit('/').find(|name| [".slice", ".scope", ".service"].iter().any(|kind| name.ends_with(kind)))
        else {
            continue;
        };
        // Idle CPUs within it say that something else keeps the threads off them.
        if free.is_empty() || limit.iter().any(|cpu| idle(&cpu)) {
            continue;
        }
        let short: f64 = victims.iter().map(|verdict| verdict.waited).sum();
        let title = format!(
            "{unit} allows {} alone: {} there {short:.2} CPUs short, while {} {} idle",
            cpus_named(limit),
            counted(victims.len() as u64, "thread is", "threads are"),
            cpus_named(&free),
            if free.len() == 1 { "is" } else { "are" }
        );
        let mut hit = Hit::new(path, Severity::High, title).seen(format!("{path} has CPUs {limit}"), place);
        hit = with_victims(model, hit, &victims);
        let set = |cpus: &CpuSet| format!("systemctl set-property --runtime {} AllowedCPUs={cpus}", quoted(unit));
        hit.first.push(format!("systemctl show -p AllowedCPUs {}   # who set it, and for whom?", quoted(unit)));
        hit.fix.push(set(&limit.or(&free)));
        hit.undo.push(set(limit));
        hit.cost = Cost::of(CostKind::Measured, short, UNIT);
        hit.explains.push(format!("PLC-OVERCOMMIT@cpus-{limit}"));
        let vms: Vec<String> =
            victims.iter().filter_map(|verdict| machine.threads[verdict.victim].vm.clone()).collect();
        hit.explains.extend(vms.iter().map(|vm| format!("PLC-STARVED@{vm}")));
        hit = hit.seen(format!("{} may use no others, whatever their pins are", list(&names(&vms))), place);
        hits.push(hit);
    }
    hits
}

fn names(vms: &[String]) -> Vec<String> {
    let mut names = vms.to_vec();
    names.sort_unstable();
    names.dedup();
    names
}
