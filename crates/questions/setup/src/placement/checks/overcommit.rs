//! CPUs of which more is wanted than they have: one cause, with all that starve by it.

use super::idle_policy;
use super::nova;
use super::slice::slices;
use super::starved::with_victims;
use super::weights;
use crate::placement::culprits::{Pool, Reporter, Verdict, cpus_named};
use crate::placement::held::held;
use crate::placement::model::Model;
use base::number::{counted, list, many, percent};
use base::shell::quoted;
use base::{About, Cost, CostKind, CpuSet, Evidence, Needs, Severity};
use facts::rule::Hit;
use facts::starvation::UNIT;
use host::machine::{Role, Thread};
use std::collections::{BTreeMap, BTreeSet};

/// VMs that a title names.
const MOST_NAMED: usize = 3;

/// More that wants to run than CPUs: on the host, or on a set of CPUs that is full. All that starve there have this one cause.
pub(crate) fn overcommit(model: &Model) -> Vec<Hit> {
    let on = |pool| {
        let is_in = |verdict: &&Verdict| {
            let set = model.machine.threads[verdict.victim].affinity.as_ref();
            let pool: &Pool = pool;
            pool.host || set.is_some_and(|set| set.value.is_within(&pool.cpus))
        };
        let victims = model.verdicts.of_reporter(Reporter::Overcommit).filter(is_in);
        overcommitted(model, pool, &victims.collect::<Vec<_>>())
    };
    model.verdicts.pools.iter().map(on).collect()
}

fn overcommitted(model: &Model, pool: &Pool, victims: &[&Verdict]) -> Hit {
    let (cpus, wanted) = (pool.cpus.len(), pool.wanted);
    let others = match pool.others {
        0 => String::new(),
        // Of a set the title names the VMs.
        others if pool.host => format!(" and {}", counted(others, "other thread of a VM", "other threads of VMs")),
        others => format!(" and {}", many(others, "other thread")),
    };
    let threads = format!("{}{others}", many(pool.vcpus, "vCPU"));
    let verb = if pool.vcpus + pool.others == 1 { "wants" } else { "want" };
    let (subject, place) = if pool.host {
        ("host".to_owned(), "the host".to_owned())
    } else {
        (format!("cpus-{}", pool.cpus), cpus_named(&pool.cpus))
    };
    let whose: Vec<String> = pool.vms.iter().cloned().collect();
    let whose = if whose.len() > MOST_NAMED { many(whose.len() as u64, "VM") } else { list(&whose) };
    let title = match pool.is_full() {
        true if pool.host => format!("the host is overcommitted: {threads} {verb} {wanted:.1} CPUs; it has {cpus}"),
        true => format!("{place} are overcommitted: {threads} of {whose} {verb} {wanted:.1} CPUs; these are {cpus}"),
        false => format!("{threads} {verb} {wanted:.1} CPUs; {place} has {cpus}"),
    };
    let isolated = model.machine.topology.isolated.clone().unwrap_or_default();
    let limits =
        model.machine.threads.iter().filter(|thread| thread.vm.as_ref().is_some_and(|vm| pool.vms.contains(vm)));
    let limits = limits.filter_map(|thread| model.machine.limit_of(thread));
    let reach = limits.fold(isolated.without(&pool.cpus), |reach, (_, limit)| reach.and(&limit.value));
    // What a VM is bound to is taken, however idle it was.
    let unused: CpuSet = reach.and(&model.unbound()).iter().filter(|cpu| model.has_room(*cpu)).collect();
    let title = match unused.is_empty() || pool.host {
        true => title,
        false => format!("{title}; {} are isolated and idle: only pins bring threads there", cpus_named(&unused)),
    };
    let severity = if victims.is_empty() { Severity::Medium } else { Severity::High };
    let what = format!(
        "run and wait of {threads} add up to {wanted:.1} CPUs; they are of {}",
        many(pool.vms.len() as u64, "VM")
    );
    let of_pool = |thread: &&Thread| {
        let inside = || thread.affinity.as_ref().is_some_and(|set| set.value.is_within(&pool.cpus));
        matches!(thread.role, Role::Vcpu(_)) && (pool.host || inside())
    };
    let tids = model.machine.threads.iter().filter(of_pool).filter_map(|thread| thread.tid);
    let about = tids.map(|tid| About::Thread { tid });
    let mut hit = Hit::new(subject, severity, title).with(Evidence::in_table(what, "placement.threads").about(about));
    if let Some(idle) = pool.idle {
        hit = hit.seen(
            format!(
                "{} {} idle for {} of the time",
                cpus_named(&pool.cpus),
                if cpus == 1 { "was" } else { "were" },
                percent(idle)
            ),
            "proc/stat",
        );
    }
    hit = with_victims(model, hit, victims);
    if !victims.is_empty() {
        let short = victims.iter().map(|verdict| verdict.waited).sum();
        hit.cost = Cost::of(CostKind::Measured, short, UNIT);
    }
    if !pool.host {
        // Other CPUs may have room.
        hit.changes = model.proposal.part(|_, of| pool.vms.contains(&of.vm));
    }
    if !hit.changes.is_empty() {
        return hit;
    }
    let own = format!("PLC-OVERCOMMIT@{}", hit.subject);
    let slice = slices(model).into_iter().find(|slice| slice.explains.contains(&own));
    // Of a partition's CPUs nobody knows that they will be given back.
    if let Some(slice) = slice.filter(|slice| !slice.undo.is_empty()) {
        hit.fix.push(format!(
            "kvmscope check   # after PLC-SLICE@{}: with its other CPUs these are enough",
            slice.subject
        ));
        return hit;
    }
    let mut vms: BTreeMap<&str, usize> = BTreeMap::new();
    let vcpus = vcpus_of(model, pool).filter_map(|thread| thread.vm.as_deref());
    vcpus.for_each(|vm| *vms.entry(vm).or_default() += 1);
    // Who has less weight than others gets what these leave: fewer vCPUs would not help it.
    let weight = |vm: &str| weights::of_vm(model, vm);
    let most = vms.keys().filter_map(|vm| weight(vm)).max();
    let yields = |vm: &str| weight(vm).zip(most).is_some_and(|(own, most)| own < most);
    for vm in vms.keys().filter(|vm| yields(vm)) {
        let (own, most) = (weight(vm).unwrap_or_default(), most.unwrap_or_default());
        hit.title.push_str(&format!("; {vm} has a weight of {own} beside {most}"));
        let vm = quoted(vm);
        hit.fix.push(format!(
            "virsh schedinfo {vm} --live --config --set cpu_shares={most}   # it has {own}: it gets what VMs with more weight leave"
        ));
        hit.undo.push(format!("virsh schedinfo {vm} --live --config --set cpu_shares={own}"));
    }
    let others =
        |vm: &str| vcpus_of(model, pool).filter(move |thread| thread.vm.as_deref() != Some(vm)).max_by(ran_less);
    let is_lowest = |vm: &&str| {
        let of_it = |verdict: &&Verdict| {
            Some(&model.machine.threads[verdict.victim]).filter(|own| own.vm.as_deref() == Some(*vm))
        };
        let victim = victims.iter().find_map(of_it);
        victim.zip(others(vm)).is_some_and(|(victim, rival)| idle_policy::yields(model, victim, rival))
    };
    let lowest: Vec<&str> = vms.keys().copied().filter(is_lowest).collect();
    lowest.iter().for_each(|vm| idle_policy::as_usual(model, vm, &mut hit));
    vms.retain(|vm, _| !lowest.contains(vm));
    // A VM that gets all it wants is not asked to do with less; nor one that has little because a slice above it weighs little.
    let lighter: BTreeSet<&str> = victims.iter().filter_map(|verdict| weights::lighter(model, verdict)).collect();
    hit.fix.extend(lighter.iter().map(|group| format!("kvmscope check   # after PLC-WEIGHT@{group}: who waits then")));
    let starves = |vm: &str| {
        let of_it = |verdict: &&Verdict| model.machine.threads[verdict.victim].vm.as_deref() == Some(vm);
        victims.is_empty()
            || victims.iter().copied().filter(of_it).any(|verdict| weights::lighter(model, verdict).is_none())
    };
    vms.retain(|vm, count| *count > 1 && !yields(vm) && starves(vm));
    // Who has CPUs for itself by its pins is not the one that is too many, as long as others float.
    let own: BTreeSet<&str> = held(&model.machine).into_values().collect();
    if vms.keys().any(|vm| !own.contains(vm)) {
        vms.retain(|vm, _| !own.contains(vm));
    }
    if moved_by_nova(model, &vms, wanted - cpus as f64, &mut hit) {
        return hit;
    }
    for (vm, count) in vms {
        let vm = quoted(vm);
        hit.fix.push(format!("virsh setvcpus {vm} N --config   # fewer than {count}, from the next start"));
        hit.undo.push(format!("virsh setvcpus {vm} {count} --config"));
    }
    if hit.fix.is_empty() {
        hit.fix.push("kvmscope check --goal density   # which VMs could go to another host".to_owned());
    }
    hit
}

/// vCPUs of the VMs that want these CPUs.
fn vcpus_of<'a>(model: &'a Model, pool: &'a Pool) -> impl Iterator<Item = &'a Thread> {
    let is_vcpu = |thread: &&Thread| matches!(thread.role, Role::Vcpu(_));
    let wants = |thread: &&Thread| thread.vm.as_ref().is_some_and(|vm| pool.vms.contains(vm));
    model.machine.threads.iter().filter(is_vcpu).filter(wants)
}

fn ran_less(one: &&Thread, other: &&Thread) -> std::cmp::Ordering {
    let ran = |thread: &Thread| thread.run_share.as_ref().map_or(0.0, |run| run.value);
    ran(one).total_cmp(&ran(other))
}

/// Instances of Nova go to another host while they run, where fewer vCPUs would be another flavor and a restart for each of them.
/// True if all are Nova's.
fn moved_by_nova(model: &Model, vms: &BTreeMap<&str, usize>, over: f64, hit: &mut Hit) -> bool {
    let servers: Option<Vec<String>> = vms.keys().map(|vm| nova::server(model, vm)).collect();
    let Some(first) = servers.as_ref().and_then(|servers| servers.first()) else {
        return false;
    };
    nova::migrates(hit, first, &format!("this or others of these, until {over:.0} CPUs less are wanted here"));
    hit.fix.push(
        "grep cpu_allocation_ratio /etc/nova/nova.conf   # how many vCPUs nova puts on one CPU here: lower, so that no others come instead"
            .to_owned(),
    );
    hit.needs = Some(Needs::Nothing);
    true
}
