//! Polling threads of Open vSwitch: each takes its CPU whole, so that whoever shares it gets what is left.

use crate::placement::model::Model;
use crate::shared::Hit;
use base::number::{list, many, percent};
use base::{CpuSet, Severity};
use host::machine::{Pmd, Role, Thread};

/// Polling threads with the one CPU that each has.
fn polling(model: &Model) -> impl Iterator<Item = (&Thread, u32, &str)> {
    let pmds = model.machine.threads.iter().filter(|thread| thread.role == Role::Pmd);
    pmds.filter_map(|thread| {
        let set = thread.affinity.as_ref().filter(|set| set.value.len() == 1)?;
        Some((thread, set.value.first()?, set.place.as_str()))
    })
}

/// Polling threads on the CPUs or cores of pinned vCPUs.
pub fn shared(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let mut same: Vec<Hit> = Vec::new();
    for (pmd, cpu, place) in polling(model) {
        let core = topology.cpus.get(&cpu).map(|about| topology.of_core(about.core)).unwrap_or_default();
        let vcpus = model.machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)));
        for vcpu in vcpus {
            let Some(set) = vcpu.affinity.as_ref().filter(|set| !topology.online.is_within(&set.value)) else {
                continue;
            };
            let (how, severity) = if set.value.contains(cpu) {
                ("on the same CPU", Severity::High)
            } else if set.value.meets(&core) {
                ("on the sibling in the same core", Severity::Medium)
            } else {
                continue;
            };
            let vm = vcpu.vm.as_deref().unwrap_or("a VM");
            let index = same.iter().position(|hit| hit.subject == vm).unwrap_or_else(|| {
                same.push(Hit::new(vm, severity, ""));
                same.len() - 1
            });
            let old = std::mem::replace(&mut same[index], Hit::new("", severity, ""));
            let ran = |thread: &Thread| {
                thread.run_share.as_ref().map_or(String::new(), |run| format!(", ran {}", percent(run.value)))
            };
            let what = format!(
                "{} of {vm} may run on {}{}; {} polls on CPU {cpu}{}, {how}",
                vcpu.role,
                set.value,
                ran(vcpu),
                pmd.name,
                ran(pmd)
            );
            same[index] = old.seen(what, format!("{}, {place}", set.place));
            same[index].severity = same[index].severity.max(severity);
        }
    }
    for hit in &mut same {
        let count = many(hit.evidence.len() as u64, "vCPU");
        hit.title = match hit.severity {
            Severity::High => format!("polling threads take CPUs of {count} of {}", hit.subject),
            _ => format!("polling threads share cores with {count} of {}", hit.subject),
        };
        masked(model, hit);
    }
    same
}

/// A mask of as many CPUs as now, on the nodes that have polling threads, without cores of vCPUs.
fn masked(model: &Model, hit: &mut Hit) {
    let topology = &model.machine.topology;
    let now: CpuSet = polling(model).map(|(_, cpu, _)| cpu).collect();
    let of_vcpus = topology.cores_of(&model.of_vcpus());
    let free = |cpu: &u32| topology.cpus.get(cpu).is_some_and(|about| !of_vcpus.contains(&about.core));
    let mut wanted = CpuSet::default();
    for node in topology.nodes_of(&now) {
        let here = topology.nodes().remove(&node).unwrap_or_default();
        let count = now.and(&here).len();
        // Those that are fine stay; a core has one polling thread, while there are cores.
        let mut cpus: Vec<u32> = here.and(&topology.online).iter().filter(free).collect();
        let is_first =
            |cpu: &u32| topology.cpus.get(cpu).and_then(|about| topology.of_core(about.core).first()) == Some(*cpu);
        cpus.sort_by_key(|cpu| (!now.contains(*cpu), !is_first(cpu), *cpu));
        cpus.into_iter().take(count).for_each(|cpu| wanted.insert(cpu));
    }
    if wanted.len() < now.len() || wanted == now {
        hit.fix.push(
            "kvmscope check   # no free cores on their nodes: fewer polling threads, or vCPUs elsewhere".to_owned(),
        );
        return;
    }
    let set = |cpus: &CpuSet| format!("ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask={}", mask(cpus));
    hit.fix.push(format!("{}   # CPUs {wanted}", set(&wanted)));
    hit.undo.push(match &model.machine.switch.pmd_mask {
        Some(old) => set(&old.value),
        None => "ovs-vsctl remove Open_vSwitch . other_config pmd-cpu-mask".to_owned(),
    });
}

/// A set as one number in hexadecimal, as Open vSwitch takes it.
fn mask(cpus: &CpuSet) -> String {
    let digit = |index: u32| (0..4).map(|bit| u32::from(cpus.contains(index * 4 + bit)) << bit).sum::<u32>();
    let digits: String = (0..=cpus.last().unwrap_or(0) / 4).rev().map(|index| format!("{:x}", digit(index))).collect();
    format!("0x{digits}")
}

/// Polling threads that serve a card of another node, where queues are known to be busy or not known to be idle.
pub fn remote(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let mut hits = Vec::new();
    for pmd in &machine.switch.pmds {
        let of_cpu = machine.topology.cpus.get(&pmd.cpu).and_then(|cpu| cpu.node).or(pmd.node);
        let far = pmd.queues.iter().filter_map(|queue| {
            let node = machine.switch.port(&queue.port)?.node.as_ref()?;
            (Some(node.value) != of_cpu && queue.enabled && queue.usage != Some(0.0)).then_some((queue, node))
        });
        let far: Vec<_> = far.collect();
        let (Some((_, first)), Some(of_cpu)) = (far.first(), of_cpu) else { continue };
        let names: Vec<String> = far.iter().map(|(queue, _)| format!("{} queue {}", queue.port, queue.queue)).collect();
        let title = format!(
            "the polling thread on CPU {} (node {of_cpu}) serves {} of node {}",
            pmd.cpu,
            list(&names),
            first.value
        );
        let mut hit = Hit::new(format!("pmd-c{:02}", pmd.cpu), Severity::Medium, title);
        for (queue, node) in &far {
            let usage = queue.usage.map_or("an unknown share".to_owned(), percent);
            hit =
                hit.seen(format!("{} queue {} takes {usage} of CPU {}", queue.port, queue.queue, pmd.cpu), &pmd.place);
            hit = hit.seen(format!("{} is on node {}", queue.port, node.value), &node.place);
        }
        nearer(model, pmd, &far[0].0.port, first.value, &mut hit);
        hits.push(hit);
    }
    hits
}

/// What brings a queue to its node: a polling thread there, or one more in the mask.
fn nearer(model: &Model, pmd: &Pmd, port: &str, node: u32, hit: &mut Hit) {
    let topology = &model.machine.topology;
    // A CPU that a vCPU shares is no better place: PLC-PMD takes the polling thread away from there.
    let taken = model.of_vcpus();
    let there = |other: &&Pmd| {
        topology.cpus.get(&other.cpu).and_then(|cpu| cpu.node) == Some(node) && !taken.contains(other.cpu)
    };
    let queue = pmd.queues.iter().find(|queue| queue.port == port).map_or(0, |queue| queue.queue);
    match model.machine.switch.pmds.iter().find(there) {
        Some(near) => {
            hit.fix
                .push(format!("ovs-vsctl set Interface {port} other_config:pmd-rxq-affinity=\"{queue}:{}\"", near.cpu));
            hit.undo.push(format!("ovs-vsctl remove Interface {port} other_config pmd-rxq-affinity"));
        }
        None => hit.fix.push(format!(
            "ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=MASK   # with a CPU of node {node} in it"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_numbers() {
        assert_eq!(mask(&CpuSet::parse("2,5").unwrap()), "0x24");
        assert_eq!(mask(&CpuSet::parse("12-13,40-41").unwrap()), "0x30000003000");
    }
}
