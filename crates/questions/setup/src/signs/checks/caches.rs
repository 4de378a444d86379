//! Guests whose cores lie behind several last-level caches, though their threads would fit behind one.

use crate::placements::Model;
use crate::signs::Scene;
use base::number::many;
use base::shell::quoted;
use base::{CpuSet, Severity};
use facts::rule::Hit;
use host::machine::Domain;

pub(in crate::signs) fn apart(scene: &Scene<'_>) -> Vec<Hit> {
    scene
        .models
        .iter()
        .flat_map(|model| model.machine.domains.iter().filter_map(|domain| of_domain(model, domain)))
        .collect()
}

fn of_domain(model: &Model, domain: &Domain) -> Option<Hit> {
    let topology = &model.machine.topology;
    let threads = domain.topology.as_ref().filter(|shown| shown.value.threads > 1)?;
    let known = topology.cpus.values().all(|about| about.last_cache.is_some()) && !topology.cores_unknown;
    let vcpus = model.vcpus(domain).map(|thread| Some(&thread.affinity.as_ref()?.value)).collect::<Option<Vec<_>>>()?;
    let own = vcpus.iter().fold(CpuSet::default(), |all, set| all.or(set));
    // A CPU each, and a core each: one that packs them already is judged by the placement.
    let is_spread = topology.cores_of(&own).len() == vcpus.len() && own.len() == vcpus.len();
    if !known || !is_spread || topology.nodes_of(&own).len() > 1 {
        return None;
    }
    let caches = topology.last_caches();
    let used: Vec<&CpuSet> = caches.values().filter(|cpus| !cpus.and(&own).is_empty()).collect();
    let free = own.or(&model.unbound());
    let room = |cpus: &CpuSet| {
        let cores = topology.cores().into_values().filter(|core| core.is_within(cpus) && core.is_within(&free));
        cores.flat_map(|core| core.iter().collect::<Vec<_>>()).collect::<Vec<u32>>()
    };
    let best = used.iter().filter(|cpus| room(cpus).len() >= vcpus.len()).max_by_key(|cpus| cpus.and(&own).len())?;
    if used.len() < 2 {
        return None;
    }
    let parts = used.iter().map(|cpus| format!("{} on {}", cpus.and(&own).len(), cpus)).collect::<Vec<_>>().join(", ");
    let title = format!(
        "the vCPUs of {} are spread over {} ({parts}); as threads of their cores they fit behind one",
        domain.name,
        many(used.len() as u64, "last-level cache")
    );
    let mut hit = Hit::new(&domain.name, Severity::Medium, title).of_domain(&domain.name);
    hit.level = Some(model.level);
    hit = hit.seen(format!("the guest sees {} threads per core", threads.value.threads), &threads.place);
    hit = hit.seen(
        format!("CPUs {best} share a cache, and have room for {}", many(vcpus.len() as u64, "vCPU")),
        &topology.place,
    );
    let name = quoted(&domain.name);
    let pairs = (0..).zip(room(best)).take(vcpus.len()).map(|(vcpu, cpu)| format!("{vcpu}:{cpu}"));
    let now = (0..vcpus.len()).zip(&vcpus).map(|(vcpu, cpus)| format!("{vcpu}:{cpus}"));
    let typed = |pairs: Vec<String>| {
        format!("for p in {}; do virsh vcpupin {name} ${{p%:*}} ${{p#*:}} --live --config; done", pairs.join(" "))
    };
    hit.fix.push(format!("{}   # vCPU:CPU, a guest core on a host core", typed(pairs.collect())));
    hit.undo.push(typed(now.collect()));
    Some(hit)
}
