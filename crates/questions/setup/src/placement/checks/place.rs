//! Where things are: nodes of vCPUs and NICs, interrupts on the CPUs of vCPUs.

use super::starved::with_victims;
use crate::placement::culprits::{Reporter, Verdict, cpus_named, frequent, name as named, starves};
use crate::placement::model::{BUSY, Demand, Model};
use crate::placement::proposal::{Subject, What};
use crate::placement::solver::Kind;
use base::number::{bytes, list, many, percent};
use base::shell::quoted;
use base::{Change, CpuSet, Evidence, Severity};
use facts::rule::Hit;
use host::machine::{Domain, Irq, Node, Role, Thread};
use tongue::bootloader::{booted_with, parameter};

/// A CPU that is idle for more than this has room for its interrupts: our own threshold.
const ROOM: f64 = 0.2;

const MOST_TOLD: usize = 8;

/// Domains whose vCPUs are bound to several nodes though one node has room for what they want.
pub(crate) fn spans(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let nodes = topology.nodes();
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let masks = model.vcpus(domain).filter_map(|thread| thread.affinity.as_ref());
        let masks: Vec<_> = masks.filter(|set| !topology.online.is_within(&set.value)).collect();
        let all = masks.iter().fold(CpuSet::default(), |all, set| all.or(&set.value));
        let of = topology.nodes_of(&all);
        let wanted: f64 = model.vcpus(domain).map(|thread| Demand::of(thread).high).sum();
        let fits = nodes.values().any(|cpus| cpus.len() as f64 >= wanted && cpus.len() >= model.vcpus(domain).count());
        let memory = |node: u32| model.machine.nodes.get(&node).and_then(|node| node.total_bytes);
        let fits_memory = domain
            .memory_bytes
            .is_none_or(|bytes| nodes.keys().any(|node| memory(*node).is_none_or(|there| there >= bytes)));
        // A guest that is shown nodes was spread on purpose.
        let shown = domain.guest_nodes > 1;
        if of.len() > 1 && fits && fits_memory && !shown {
            let names: Vec<String> = of.iter().map(u32::to_string).collect();
            let title =
                format!("the vCPUs of {} are spread over nodes {}; they fit on one node", domain.name, list(&names));
            let emulator = model.machine.threads_of(&domain.name).find(|thread| thread.role == Role::Emulator);
            let pid = domain.pid.or(emulator.and_then(|thread| thread.pid));
            // Within a set that they share the scheduler chooses: only what lies far away, or a thread that waits, says that it chose badly.
            let is_shared = masks.iter().all(|set| topology.nodes_of(&set.value).len() > 1);
            let is_known = model.machine.vm_memory.contains_key(&domain.name);
            let is_calm = model.vcpus(domain).all(|thread| thread.wait_share.is_some() && !starves(thread));
            let severity = if is_shared && is_calm && !is_known { Severity::Info } else { Severity::Medium };
            let hit = Hit::new(&domain.name, severity, title);
            let hit = pid.into_iter().fold(hit, |hit, pid| hit.filling("PID", pid));
            let mut hit =
                hit.seen(format!("bound to {all} in all"), masks.first().map_or("", |set| set.place.as_str()));
            hit.changes = to_one_node(model, domain);
            hits.push(hit);
        }
    }
    hits
}

/// What the advised placement types for the vCPUs of a domain, where that brings them all to one node.
fn to_one_node(model: &Model, domain: &Domain) -> Vec<Change> {
    let proposal = &model.proposal;
    let Some(plan) = proposal.advised() else { return Vec::new() };
    let units = proposal.task.units.iter().zip(&proposal.subjects).zip(&plan.places);
    let own = units.filter(|((unit, of), _)| unit.kind == Kind::Vcpu && of.vm == domain.name);
    let places = own.fold(CpuSet::default(), |all, (_, place)| all.or(place));
    if model.machine.topology.nodes_of(&places).len() != 1 {
        return Vec::new();
    }
    proposal.part(|unit, of| unit.kind == Kind::Vcpu && of.vm == domain.name)
}

/// Cards and devices whose node is not that of the vCPUs of a domain that uses them.
pub(crate) fn nic(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let masks = model.vcpus(domain).filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
        let all = masks.fold(CpuSet::default(), |all, set| all.or(set));
        let [of_vcpus] = model.machine.topology.nodes_of(&all)[..] else { continue };
        let cards = domain.interfaces.iter().flat_map(|interface| model.machine.cards_of(interface));
        let cards = cards.filter_map(|nic| Some((nic.name.as_str(), nic.node.as_ref()?)));
        let given =
            domain.host_devices.iter().filter_map(|device| model.machine.pci_nodes.get_key_value(&device.value));
        let mut devices: Vec<_> = cards.chain(given.map(|(address, node)| (address.as_str(), node))).collect();
        devices.sort_by_key(|(name, _)| *name);
        devices.dedup_by_key(|(name, _)| *name);
        devices.retain(|(_, node)| node.value != of_vcpus);
        let names: Vec<String> = devices.iter().map(|(name, _)| (*name).to_owned()).collect();
        if names.is_empty() {
            continue;
        }
        let mut nodes: Vec<u32> = devices.iter().map(|(_, node)| node.value).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let there = match nodes[..] {
            [node] => format!("node {node}"),
            _ => "other nodes".to_owned(),
        };
        let title = format!("the vCPUs of {} are on node {of_vcpus}; {} on {there}", domain.name, list(&names));
        let mut hit = Hit::new(&domain.name, Severity::Low, title).of_domain(&domain.name);
        if let [node] = nodes[..] {
            move_there(model, domain, node, &mut hit);
        }
        hits.push(
            devices
                .iter()
                .fold(hit, |hit, (name, node)| hit.seen(format!("{name} is on node {}", node.value), &node.place)),
        );
    }
    hits
}

/// The whole VM to the node of its card, where that has idle CPUs for all vCPUs and free memory of its kind. It starts there: memory of a
/// running VM that is bound, or on huge pages, stays.
fn move_there(model: &Model, domain: &Domain, node: u32, hit: &mut Hit) {
    let machine = &model.machine;
    let there = machine.topology.nodes().remove(&node).unwrap_or_default();
    let idle: CpuSet = there.and(&model.spare()).iter().filter(|cpu| model.has_room(*cpu)).collect();
    let (vcpus, memory) = (model.vcpus(domain).count(), domain.memory_bytes);
    let told = machine.nodes.get(&node);
    let free = |of: &Node| match domain.huge_pages {
        true => of.huge_pages.iter().map(|(kib, _, free)| kib * 1_024 * free).max(),
        false => of.free_bytes,
    };
    let fits = told.and_then(free).zip(memory).is_some_and(|(free, wanted)| free >= wanted);
    if vcpus == 0 || idle.len() < vcpus || !fits {
        return;
    }
    let cpus: CpuSet = idle.iter().take(vcpus).collect();
    let name = quoted(&domain.name);
    hit.evidence.push(Evidence::new(
        format!(
            "{} of node {node} {} idle, and it has {} free",
            cpus_named(&cpus),
            if vcpus == 1 { "is" } else { "are" },
            bytes(told.and_then(free).unwrap_or_default() as f64)
        ),
        format!("sys/devices/system/node/node{node}"),
    ));
    hit.fix.push(format!(
        "virsh edit {name}   # <numatune><memory mode='strict' nodeset='{node}'/></numatune>, and its vCPUs to {} of node {node}, from its next start",
        cpus_named(&cpus)
    ));
    hit.undo.push(format!("virsh edit {name}   # <numatune> as it was"));
}

/// Emulators and workers that are bound to another node than their vCPUs, while the CPUs of that node have room.
pub(crate) fn helpers(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let isolated = topology.isolated.clone().unwrap_or_default();
    let idle = |cpu: &u32| model.machine.cpu_use.get(cpu).is_none_or(|usage| usage.idle > 0.5);
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let masks = model.vcpus(domain).filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
        let [home] = topology.nodes_of(&masks.fold(CpuSet::default(), |all, set| all.or(set)))[..] else { continue };
        let near = topology.nodes().remove(&home).unwrap_or_default();
        let far: Vec<&Thread> = model
            .helpers(domain)
            .filter(|thread| {
                thread.affinity.as_ref().is_some_and(|set| !set.value.is_empty() && !set.value.meets(&near))
            })
            .collect();
        let ran: f64 = far.iter().filter_map(|thread| Some(thread.run_share.as_ref()?.value)).sum();
        let free: CpuSet = near.and(&model.unbound()).without(&isolated).iter().filter(idle).collect();
        // Where the node is full, the other one is the better place.
        let Some(mask) =
            far.first().and_then(|thread| thread.affinity.as_ref()).filter(|_| ran > BUSY && !free.is_empty())
        else {
            continue;
        };
        let nodes: Vec<String> = topology.nodes_of(&mask.value).iter().map(u32::to_string).collect();
        let title = format!(
            "{} of {} run on node {}, its vCPUs on node {home}",
            many(far.len() as u64, "helper thread"),
            domain.name,
            list(&nodes)
        );
        let mut hit = Hit::new(&domain.name, Severity::Low, title);
        for thread in far.iter().take(MOST_TOLD) {
            let set = thread.affinity.as_ref().map(|set| (set.value.to_string(), set.place.as_str()));
            let (set, place) = set.unwrap_or_default();
            let ran = percent(thread.run_share.as_ref().map_or(0.0, |run| run.value));
            hit = hit.seen(format!("{} may run on {set} and ran {ran}", named(thread)), place);
        }
        let told = format!("{} of node {home} have no thread of a VM, and room", cpus_named(&free));
        hit = hit.seen(told, &topology.place);
        if let Some((nodes, _)) = &domain.memory_nodes {
            hit = hit.seen(format!("its memory is bound to node {nodes}"), "libvirt, numatune");
        }
        hit.changes = model.proposal.part(|unit, of| unit.kind == Kind::Helpers && of.vm == domain.name);
        if hit.changes.is_empty() {
            hit.fix.push(
                "kvmscope check --json   # table proposal: placements with the helpers near their vCPUs".to_owned(),
            );
        }
        hits.push(hit);
    }
    hits
}

/// Interrupts on CPUs of vCPUs and of threads that starve by them, where they are many and softirqs run there; where one look
/// tells no rates, those that may come nowhere else. Those of one card are one finding.
pub(crate) fn irqs(model: &Model) -> Vec<Hit> {
    let mut of_vcpus = model.of_vcpus();
    if let Some(isolated) = model.machine.topology.isolated.as_ref().filter(|set| !set.is_empty()) {
        // The CPUs that are not isolated are there for interrupts; a vCPU on them is PLC-HOUSEKEEPING's.
        of_vcpus = of_vcpus.and(isolated);
    }
    let mut found: Vec<(&Irq, Hit)> = Vec::new();
    let victims = || model.verdicts.of_reporter(Reporter::Irq);
    let counted = model.machine.irqs.iter().any(|irq| !irq.per_s.is_empty());
    for irq in &model.machine.irqs {
        if !counted {
            found.extend(bound(model, irq, &of_vcpus).map(|hit| (irq, hit)));
            continue;
        }
        let there = irq.per_s.keys().filter_map(|cpu| {
            let (_, rate) = frequent(&model.machine, *cpu).find(|(other, _)| other.number == irq.number)?;
            let victims: Vec<&Verdict> = victims().filter(|verdict| verdict.cpus.contains(*cpu)).collect();
            (of_vcpus.contains(*cpu) || !victims.is_empty()).then_some((*cpu, rate, victims))
        });
        let worst = there.max_by(|a, b| a.2.len().cmp(&b.2.len()).then(a.1.total_cmp(&b.1)));
        found.extend(worst.map(|(cpu, rate, victims)| (irq, often(model, irq, (cpu, rate), &victims))));
    }
    by_card(model, found)
}

/// An interrupt that comes often to a CPU of a vCPU, or of threads that starve by it.
fn often(model: &Model, irq: &Irq, (cpu, rate): (u32, f64), victims: &[&Verdict]) -> Hit {
    let usage = model.machine.cpu_use.get(&cpu).copied();
    let (severity, who) = match victims {
        [] if usage.is_none_or(|usage| usage.idle > ROOM) => (Severity::Low, "where a vCPU is pinned".to_owned()),
        [] => (Severity::Medium, "where a vCPU is pinned".to_owned()),
        [one] => (Severity::High, format!("where {} starved", named(&model.machine.threads[one.victim]))),
        several => (Severity::High, format!("where {} starved", many(several.len() as u64, "thread"))),
    };
    let title = format!("interrupt {} ({}) fires {rate:.0} times per second on CPU {cpu}, {who}", irq.number, irq.name);
    let mut hit = Hit::new(format!("irq{}", irq.number), severity, title)
        .seen(format!("{rate:.0} per second on CPU {cpu}"), "proc/interrupts");
    if let Some(usage) = usage {
        hit = hit.seen(
            format!(
                "softirqs took {} of CPU {cpu}, interrupts {}; it was idle for {}",
                percent(usage.softirq),
                percent(usage.irq),
                percent(usage.idle)
            ),
            "proc/stat",
        );
    }
    let mut hit = with_victims(model, hit, victims);
    moved(model, irq, &mut hit);
    if irq.is_managed() {
        // Where it may not move, who waits for it does.
        let waits = |of: &Subject| {
            let mut threads = victims.iter().map(|verdict| &model.machine.threads[verdict.victim]);
            threads.any(|thread| thread.vm.as_deref() == Some(&of.vm) && thread.role == of.role)
        };
        hit.changes = model.proposal.part(|_, of| waits(of));
    }
    hit
}

/// One finding for all interrupts of a card, under the name of the one that matters most; the others are evidence.
fn by_card(model: &Model, found: Vec<(&Irq, Hit)>) -> Vec<Hit> {
    let mut cards: Vec<(Option<&str>, Vec<Hit>)> = Vec::new();
    for (irq, hit) in found {
        let card = model.machine.nic_of(irq).map(|nic| nic.name.as_str());
        match cards.iter_mut().find(|(known, _)| card.is_some() && *known == card) {
            Some((_, hits)) => hits.push(hit),
            None => cards.push((card, vec![hit])),
        }
    }
    let one = |(_, mut hits): (Option<&str>, Vec<Hit>)| {
        // The first of equal ones leads.
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.severity));
        let mut hits = hits.into_iter();
        let mut first = hits.next()?;
        for other in hits {
            let place = other.evidence.first().map_or("proc/interrupts", |seen| seen.place.as_str());
            first.evidence.push(Evidence::new(format!("also: {}", other.title), place));
            first.evidence.extend(
                other
                    .evidence
                    .iter()
                    .skip(1)
                    .filter(|seen| !first.evidence.contains(seen))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
            first
                .explains
                .extend(other.explains.into_iter().filter(|id| !first.explains.contains(id)).collect::<Vec<_>>());
            first.changes.extend(other.changes);
            first.fix.extend(other.fix.into_iter().filter(|line| !first.fix.contains(line)).collect::<Vec<_>>());
            first.undo.extend(other.undo.into_iter().filter(|line| !first.undo.contains(line)).collect::<Vec<_>>());
        }
        Some(first)
    };
    cards.into_iter().filter_map(one).collect()
}

/// Where the placement puts an interrupt; where it may not be put at all, why.
fn moved(model: &Model, irq: &Irq, hit: &mut Hit) {
    hit.changes = model.proposal.part(|_, subject| subject.what == What::Irq(irq.number));
    if irq.is_managed() {
        hit.fix.push(managed(irq.number));
    } else if hit.changes.is_empty() {
        hit.fix.push(model.proposal.why_none());
    } else {
        keep_irqbalance_away(model, hit);
        booted(model, hit);
    }
}

/// Where the kernel is booted with a list for interrupts that has CPUs of vCPUs, each new interrupt goes there again.
fn booted(model: &Model, hit: &mut Hit) {
    const NAME: &str = "irqaffinity";
    let line = model.machine.setting("proc/cmdline").unwrap_or_default();
    let Some(now) = parameter(line, NAME) else { return };
    let topology = &model.machine.topology;
    let rest =
        topology.online.without(&model.of_vcpus()).without(topology.isolated.as_ref().unwrap_or(&CpuSet::default()));
    if CpuSet::parse(now).is_none_or(|now| now.is_within(&rest)) || rest.is_empty() {
        return;
    }
    hit.evidence.push(Evidence::new(format!("the kernel was booted with {NAME}={now}"), "proc/cmdline"));
    let [fix, undo] = booted_with(NAME, now, Some(&rest.to_string()));
    hit.fix.push(fix);
    hit.undo.push(undo);
}

/// What is said of an interrupt that refuses another mask.
pub(super) fn managed(number: u32) -> String {
    format!(
        "cat /proc/irq/{number}/effective_affinity_list   # the kernel manages this interrupt and refuses another mask: move \
         the vCPU instead"
    )
}

/// Where irqbalance runs, it would move interrupts back.
pub(super) fn keep_irqbalance_away(model: &Model, hit: &mut Hit) {
    const NAME: &str = "irqbalance";
    if model.machine.threads.iter().any(|thread| thread.name == NAME) {
        hit.fix.push(format!(
            "systemctl stop {NAME}   # or ban these CPUs (IRQBALANCE_BANNED_CPULIST): it moves interrupts back"
        ));
        hit.undo.push(format!("systemctl start {NAME}"));
    } else {
        hit.fix.push(format!("# if {NAME} runs, it moves interrupts back: ban these CPUs (IRQBALANCE_BANNED_CPULIST)"));
    }
}

/// An interrupt of a card that is bound to CPUs of vCPUs, however often it comes.
fn bound(model: &Model, irq: &Irq, of_vcpus: &CpuSet) -> Option<Hit> {
    let nic = model.machine.nic_of(irq)?;
    let affinity = irq.affinity.as_ref().filter(|set| !set.value.is_empty() && set.value.is_within(of_vcpus))?;
    let title = format!(
        "interrupt {} of {} is routed to CPUs of vCPUs ({}); its rate is unknown",
        irq.number, nic.name, affinity.value
    );
    let mut hit = Hit::new(format!("irq{}", irq.number), Severity::Low, title)
        .seen(format!("{} is routed to CPUs {}", irq.name, affinity.value), &affinity.place);
    let came: u64 = irq.counts.iter().filter(|(cpu, _)| of_vcpus.contains(**cpu)).map(|(_, count)| *count).sum();
    if came > 0 {
        hit = hit.seen(format!("it fired there {} since boot", many(came, "time")), "proc/interrupts");
    }
    moved(model, irq, &mut hit);
    Some(hit)
}
