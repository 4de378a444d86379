//! vCPUs on the threads of one core: they take from each other what no run queue shows.

use super::few_cores;
use super::pins::who;
use super::shape::{self, Formed};
use crate::placement::culprits::{cpus_named, only_cpu};
use crate::placement::model::{BUSY, Demand, Model};
use crate::placement::solver::Kind;
use base::number::{counted, list, many};
use base::shell::quoted;
use base::{Change, Cost, CostKind, CpuSet, Evidence, Severity};
use facts::rule::Hit;
use facts::shares::room_beside;
use host::machine::{Domain, Role, Thread};
use std::collections::BTreeMap;

/// vCPUs of one domain that share cores which others do not need: by their pins, or by their set.
pub(crate) fn shared(model: &Model) -> Vec<Hit> {
    siblings(model).into_iter().chain(few_cores::sets(model)).collect()
}

/// vCPUs of one domain on threads of one core, while the guest is shown no threads.
pub(crate) fn siblings(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        if domain.topology.as_ref().is_some_and(|shown| shown.value.threads > 1) {
            continue;
        }
        let mut cores: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
        for thread in model.vcpus(domain) {
            if let Some(cpu) = only_cpu(thread).and_then(|cpu| topology.cpus.get(&cpu)) {
                cores.entry(cpu.core).or_default().push(thread);
            }
        }
        cores.retain(|_, threads| {
            let mut cpus: Vec<Option<u32>> = threads.iter().map(|thread| only_cpu(thread)).collect();
            cpus.sort_unstable();
            cpus.dedup();
            cpus.len() > 1
        });
        if cores.is_empty() {
            continue;
        }
        let count: usize = cores.values().map(Vec::len).sum();
        let title =
            format!("{count} vCPUs of {} run on sibling threads of {}", domain.name, many(cores.len() as u64, "core"));
        let lacks: Option<Vec<f64>> = cores.values().map(|threads| lack(threads, only_cpu)).collect();
        let short = lacks.map(|lacks| lacks.iter().sum::<f64>());
        let severity = if short.is_some_and(|short| short < BUSY) { Severity::Info } else { Severity::Medium };
        let mut hit = Hit::new(&domain.name, severity, title).of_domain(&domain.name);
        if let Some(short) = short {
            hit = hit.with(Evidence::in_table(
                format!(
                    "together they are {short:.2} CPUs short of what they want, by what two busy siblings do (modelled)"
                ),
                "placement.threads",
            ));
        }
        let name = quoted(&domain.name);
        match shape::formed(model, domain) {
            Formed::Mixed(sharing, alone) => {
                hit.severity = Severity::Info;
                hit.title = format!(
                    "no topology fits the pins of {}: {sharing} of its vCPUs share {}, {alone} have one of their own",
                    domain.name,
                    many(cores.len() as u64, "core")
                );
                hit.fix.push(
                    "kvmscope check --json   # table proposal: placements by which all of them share cores, or none"
                        .to_owned(),
                );
            }
            Formed::Threads(threads) => {
                let element = shape::element(model, domain, threads);
                hit.changes = if hit.severity == Severity::Info { Vec::new() } else { apart(model, domain) };
                if hit.changes.is_empty() {
                    hit.fix.push(format!("virsh edit {name}   # {element}, or pin to separate cores"));
                    hit.undo.push(format!("virsh edit {name}   # the <cpu> element as it was"));
                } else {
                    hit.fix.push(format!("# or, with the pins as they are, show the guest what they form: {element}"));
                }
            }
            Formed::Reordered(threads, moves) => {
                let (pins, back) = shape::pinning(domain, &moves);
                let element = shape::element(model, domain, threads);
                hit.fix.extend(pins);
                hit.fix.push(format!("virsh edit {name}   # {element}, or pin to separate cores"));
                hit.undo.extend(back);
                hit.undo.push(format!("virsh edit {name}   # the <cpu> element as it was"));
            }
            Formed::Unknown | Formed::Cores => {
                hit.fix.push(format!(
                    "virsh vcpupin {name}   # pin every vCPU to one CPU: then a topology can say which share a core"
                ));
            }
        }
        for (core, threads) in &cores {
            let names: Vec<String> = threads.iter().map(|thread| thread.role.to_string()).collect();
            let used: f64 = threads.iter().map(|thread| Demand::of(thread).low).sum();
            let known = threads.iter().filter(|thread| thread.run_share.is_some()).count();
            let used = match known {
                0 => "what they used is unknown".to_owned(),
                all if all == threads.len() => format!("they used {used:.2} CPUs"),
                _ => format!("they used at least {used:.2} CPUs"),
            };
            let what = format!("{} on CPUs {}, one core; {used}", list(&names), topology.of_core(*core));
            hit = hit.seen(what, &topology.place);
        }
        let shown = match &domain.topology {
            Some(shown) => ("the guest sees one thread per core".to_owned(), shown.place.clone()),
            None => ("the guest's topology is unknown".to_owned(), "unknown".to_owned()),
        };
        hits.push(hit.seen(shown.0, shown.1));
    }
    hits
}

/// What the advised placement types for the vCPUs of a domain, where that leaves none of them on a core with another.
fn apart(model: &Model, domain: &Domain) -> Vec<Change> {
    let (proposal, topology) = (&model.proposal, &model.machine.topology);
    let Some(plan) = proposal.advised() else { return Vec::new() };
    let units = proposal.task.units.iter().zip(&proposal.subjects).zip(&plan.places);
    let own = units.filter(|((unit, of), _)| unit.kind == Kind::Vcpu && of.vm == domain.name);
    let places: Vec<&CpuSet> = own.map(|(_, place)| place).collect();
    let cores: Vec<u32> =
        places.iter().flat_map(|place| place.iter()).filter_map(|cpu| Some(topology.cpus.get(&cpu)?.core)).collect();
    let mut different = cores.clone();
    different.sort_unstable();
    different.dedup();
    if different.len() != cores.len() || places.iter().any(|place| place.len() != 1) {
        return Vec::new();
    }
    let changes = proposal.part(|unit, of| unit.kind == Kind::Vcpu && of.vm == domain.name);
    if proposal.gain(&changes).is_some_and(|gain| gain >= BUSY) { changes } else { Vec::new() }
}

/// What threads on the CPUs of one core lack beside each other, in CPUs; `None` where what one wants is unknown.
fn lack(threads: &[&Thread], at: impl Fn(&Thread) -> Option<u32>) -> Option<f64> {
    let known = |thread: &&Thread| thread.run_share.is_some() && thread.wait_share.is_some();
    let mut wanted: BTreeMap<u32, f64> = BTreeMap::new();
    for thread in threads {
        *wanted.entry(at(thread)?).or_default() += Demand::of(Some(thread).filter(|thread| known(thread))?).likely;
    }
    let all: f64 = wanted.values().sum();
    Some(wanted.values().map(|wanted| (wanted - room_beside(0.0, all - wanted)).max(0.0)).sum())
}

/// Busy vCPUs of different VMs on threads of one core, while whole cores have nothing to do.
pub(crate) fn strangers(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let isolated = topology.isolated.clone().unwrap_or_default();
    let free = model.unbound().without(&isolated);
    let idle = |cpu: u32| model.machine.cpu_use.get(&cpu).is_none_or(|usage| usage.idle > 1.0 - BUSY);
    let empty = topology.cores().into_values().filter(|cpus| cpus.is_within(&free) && cpus.iter().all(idle));
    let empty: Vec<CpuSet> = empty.collect();
    // Within a set that has as many vCPUs as CPUs, each has one: that which it was last on.
    let full_set = |thread: &Thread| {
        let set = &thread.affinity.as_ref()?.value;
        let same = |other: &&Thread| other.affinity.as_ref().is_some_and(|own| own.value == *set);
        let vcpus = model.machine.threads_of(thread.vm.as_deref()?).filter(|other| matches!(other.role, Role::Vcpu(_)));
        let is_full = set.len() < topology.online.len() && vcpus.filter(same).count() >= set.len();
        is_full.then(|| thread.last_cpu.as_ref().map(|cpu| cpu.value))?.filter(|cpu| set.contains(*cpu))
    };
    let at = |thread: &Thread| only_cpu(thread).or_else(|| full_set(thread));
    let mut cores: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
    for thread in model.machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_))) {
        if let Some(cpu) = at(thread).and_then(|cpu| topology.cpus.get(&cpu)) {
            cores.entry(cpu.core).or_default().push(thread);
        }
    }
    let lack = |threads: &[&Thread]| lack(threads, at).filter(|short| *short >= BUSY);
    cores.retain(|_, threads| {
        let apart = |one: &&Thread| threads.iter().any(|two| one.vm != two.vm && at(one) != at(two));
        threads.iter().any(apart) && lack(threads).is_some()
    });
    if cores.is_empty() || empty.is_empty() {
        return Vec::new();
    }
    let mut vms: Vec<String> = cores.values().flatten().filter_map(|thread| thread.vm.clone()).collect();
    vms.sort_unstable();
    vms.dedup();
    let short: f64 = cores.values().filter_map(|threads| lack(threads)).sum();
    let title = format!(
        "busy vCPUs of {} are on sibling threads of {}, and {} idle",
        list(&vms),
        many(cores.len() as u64, "core"),
        counted(empty.len() as u64, "core is", "cores are")
    );
    let mut hit = Hit::new(vms.join("+"), Severity::Medium, title);
    for (core, threads) in &cores {
        let names: Vec<String> = threads.iter().map(|thread| who(thread, "")).collect();
        hit = hit.seen(format!("CPUs {} are one core: {}", topology.of_core(*core), list(&names)), &topology.place);
    }
    let idle = empty.iter().fold(CpuSet::default(), |all, cpus| all.or(cpus));
    hit = hit.seen(format!("no thread of a VM is bound to {}, and they were idle", cpus_named(&idle)), "proc/stat");
    hit.cost = Cost::of(CostKind::Modelled, short, "CPUs short beside busy siblings");
    hit.changes = model.proposal.part(|unit, of| unit.kind == Kind::Vcpu && vms.contains(&of.vm));
    if hit.changes.is_empty() {
        hit.fix.push(model.proposal.why_none());
    }
    vec![hit]
}
