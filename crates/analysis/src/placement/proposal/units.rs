//! A machine's threads and interrupts as the solver's units.
//!
//! A vCPU is a unit. The emulator, its vhost workers and iothreads without pins of their own are one, because libvirt gives
//! them one set (`emulatorpin`); without libvirt each thread gets its mask by itself. A polling thread is a unit, and so is
//! each interrupt that comes often or is a NIC's; the kernel's own work that is tied to no CPU is one.

use super::irqs::{self, Attributed};
use crate::facts::shares::taken;
use crate::placement::model::{Demand, Wishes};
use crate::placement::solver::{Kind, Room, Task, Unit};
use base::CpuSet;
use base::setting::ThreadId;
use host::Machine;
use host::machine::{Domain, Role, Thread};
use std::collections::BTreeMap;

/// CPUs that may run the kernel's work queues which are tied to none (Documentation/core-api/workqueue.rst, Linux 6.12).
pub(super) const WORKQUEUES: &str = "sys/devices/virtual/workqueue/cpumask";

/// What a unit of the solver stands for.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The VM; empty for what is of the host.
    pub vm: String,
    /// `vcpu 3`, `emulator and 8 vhost`, `irq 34 eth0-rx-1`.
    pub name: String,
    /// Its role; `Emulator` for helpers together, `Other` for what is no thread.
    pub role: Role,
    /// What is changed to move it.
    pub what: What,
    /// Its threads, each with the CPUs it may run on now.
    pub threads: Vec<(ThreadId, Option<CpuSet>)>,
    /// What stands now where the change is made, if a change of the unit sets one value. `None`: nobody read it.
    pub from: Option<String>,
    /// Sum of bounds of what its threads want.
    pub demand: (f64, f64),
    /// Why it stays, if it is kept.
    pub kept: &'static str,
}

/// What is changed to move a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A pin that libvirt manages.
    Pin,
    /// The mask of each thread.
    Tasks,
    /// The mask of an interrupt.
    Irq(u32),
    /// The mask of all polling threads.
    PmdMask,
    /// The mask of the kernel's work queues.
    Workqueues,
}

const ASKED: &str = "kept, as you asked";
const NAMELESS: &str = "not moved: its thread id is unknown";

/// The task of the solver, and whose its units are.
pub(super) fn units(machine: &Machine, wishes: &Wishes) -> (Task, Vec<Subject>) {
    let (mut task, mut subjects) = (Task { goal: wishes.goal, ..Task::default() }, Vec::new());
    for (from, node) in &machine.nodes {
        task.distances.extend(node.distances.iter().map(|(to, distance)| ((*from, *to), *distance)));
    }
    let mut add = |(unit, subject): (Unit, Subject)| {
        task.units.push(unit);
        subjects.push(subject);
    };
    for (vm, domain) in machine.domains.iter().enumerate() {
        of_domain(machine, vm, domain, wishes.keeps(&domain.name)).into_iter().for_each(&mut add);
    }
    polling(machine, wishes.keeps("pmd")).into_iter().for_each(&mut add);
    let attributed = irqs::attributed(machine);
    irqs::units(machine, wishes, &attributed).into_iter().for_each(&mut add);
    kernel(machine, wishes.keeps("kernel")).into_iter().for_each(&mut add);
    task.cpus = rooms(machine, wishes, &attributed);
    (task, subjects)
}

fn rooms(machine: &Machine, wishes: &Wishes, attributed: &Attributed) -> Vec<Room> {
    let topology = &machine.topology;
    let is_unit = |thread: &&Thread| thread.role == Role::Pmd || thread.vm.is_some() && thread.role != Role::Other;
    let taken = taken(&machine.cpu_use, machine.threads.iter().filter(is_unit).filter_map(ran));
    let isolated = topology.isolated.clone().unwrap_or_default();
    let online = topology.cpus.iter().filter(|(cpu, _)| topology.online.contains(**cpu));
    let room = |(cpu, about): (&u32, &host::machine::Cpu)| Room {
        cpu: *cpu,
        core: about.core,
        node: about.node.unwrap_or(0),
        taken: (taken.get(cpu).copied().unwrap_or(0.0) - attributed.on_cpu(*cpu)).max(0.0),
        reserved: wishes.reserve.contains(*cpu),
        isolated: isolated.contains(*cpu),
    };
    online.map(room).collect()
}

/// The units of a domain: each vCPU, its helpers together, iothreads with pins of their own.
fn of_domain(machine: &Machine, vm: usize, domain: &Domain, kept: bool) -> Vec<(Unit, Subject)> {
    let threads: Vec<&Thread> = machine.threads_of(&domain.name).collect();
    let home = home(machine, domain, &threads);
    let managed = domain.whole.is_some() || !domain.vcpu_pins.is_empty() || !domain.emulator_pins.is_empty();
    let mut groups: Vec<(Role, Vec<&Thread>)> = Vec::new();
    for thread in &threads {
        let role = match thread.role {
            Role::Vcpu(_) => thread.role,
            // An iothread with a pin of its own is placed by itself.
            Role::IoThread(number) if domain.iothread_pins.contains_key(&number) => thread.role,
            Role::Emulator | Role::Vhost | Role::IoThread(_) => Role::Emulator,
            Role::Pmd | Role::Other => continue,
        };
        match groups.iter_mut().find(|(known, _)| *known == role) {
            Some((_, group)) => group.push(thread),
            None => groups.push((role, vec![thread])),
        }
    }
    let unit = |(role, group): (Role, Vec<&Thread>)| {
        let mask = |thread: &Thread| thread.affinity.as_ref().map(|set| set.value.clone());
        let threads: Vec<_> = group.iter().filter_map(|thread| Some((thread.id()?, mask(thread)))).collect();
        let nameless = !managed && threads.is_empty();
        let demands: Vec<Demand> = group.iter().map(|thread| Demand::of(thread)).collect();
        let sum = |of: fn(&Demand) -> f64| demands.iter().map(of).sum::<f64>();
        let unit = Unit {
            vm: Some(vm),
            kind: if matches!(role, Role::Vcpu(_)) { Kind::Vcpu } else { Kind::Helpers },
            threads: group.len() as u32,
            commands: if managed { 1 } else { threads.len().max(1) as u32 },
            demand: sum(|demand| demand.likely),
            now: group.iter().filter_map(|thread| mask(thread)).reduce(|all, set| all.or(&set)),
            home,
            kept: kept || nameless,
        };
        let subject = Subject {
            vm: domain.name.clone(),
            name: name(role, &group),
            role,
            what: if managed { What::Pin } else { What::Tasks },
            from: pinned(domain, role).or_else(|| same(&threads)).map(|cpus| cpus.to_string()),
            threads,
            demand: (sum(|demand| demand.low), sum(|demand| demand.high)),
            kept: if nameless { NAMELESS } else { ASKED },
        };
        (unit, subject)
    };
    groups.into_iter().map(unit).collect()
}

/// The list that `virsh` shows for this role, where libvirt was asked for one.
fn pinned(domain: &Domain, role: Role) -> Option<&CpuSet> {
    let pin = match role {
        Role::Vcpu(vcpu) => domain.vcpu_pin(vcpu),
        Role::IoThread(number) => domain.iothread_pins.get(&number),
        _ => domain.emulator_pin(),
    };
    pin.map(|pin| &pin.value)
}

/// The CPUs of all these threads, if they have the same.
fn same(threads: &[(ThreadId, Option<CpuSet>)]) -> Option<&CpuSet> {
    let (_, first) = threads.first()?;
    threads.iter().all(|(_, cpus)| cpus == first).then_some(first.as_ref()).flatten()
}

/// Polling threads of Open vSwitch, each on its CPU: as threads, else as the switch lists them.
fn polling(machine: &Machine, kept: bool) -> Vec<(Unit, Subject)> {
    let threads = machine.threads.iter().filter(|thread| thread.role == Role::Pmd);
    let mut polling: Vec<(CpuSet, Option<ThreadId>, f64)> = threads
        .filter_map(|thread| {
            let cpus = thread.affinity.as_ref()?.value.clone();
            let demand = if thread.run_share.is_some() { Demand::of(thread).likely } else { 1.0 };
            Some((cpus, thread.id(), demand))
        })
        .collect();
    if polling.is_empty() {
        polling = machine.switch.pmd_cpus().iter().map(|cpu| (CpuSet::one(cpu), None, 1.0)).collect();
    }
    let tid = |thread: &Option<ThreadId>| thread.as_ref().map(|thread| thread.tid);
    polling.sort_by(|a, b| a.0.first().cmp(&b.0.first()).then(tid(&a.1).cmp(&tid(&b.1))));
    let from = machine.switch.mask_in_force();
    let unit = |(index, (now, thread, demand)): (usize, (CpuSet, Option<ThreadId>, f64))| {
        let home = now.first().and_then(|cpu| served_node(machine, cpu));
        let threads = thread.into_iter().map(|thread| (thread, Some(now.clone()))).collect();
        let unit = Unit { vm: None, kind: Kind::Pmd, threads: 1, commands: 1, demand, now: Some(now), home, kept };
        let subject = Subject {
            vm: String::new(),
            name: format!("pmd {index}"),
            role: Role::Pmd,
            what: What::PmdMask,
            threads,
            from: from.clone(),
            demand: (demand, 1.0),
            kept: ASKED,
        };
        (unit, subject)
    };
    polling.into_iter().enumerate().map(unit).collect()
}

/// The node of the ports whose queues a polling thread serves, if they are of one.
fn served_node(machine: &Machine, cpu: u32) -> Option<u32> {
    let pmd = machine.switch.pmds.iter().find(|pmd| pmd.cpu == cpu)?;
    let nodes = pmd.queues.iter().filter_map(|queue| Some(machine.switch.port(&queue.port)?.node.as_ref()?.value));
    let mut nodes: Vec<u32> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    if let [node] = nodes[..] { Some(node) } else { None }
}

/// The kernel's work queues that are tied to no CPU, where their mask was read.
fn kernel(machine: &Machine, kept: bool) -> Option<(Unit, Subject)> {
    let text = machine.setting(WORKQUEUES)?;
    let now = CpuSet::parse_mask(text)?;
    let unit = Unit {
        vm: None,
        kind: Kind::Housekeeping,
        threads: 1,
        commands: 1,
        demand: 0.0,
        now: Some(now.and(&machine.topology.online)),
        home: None,
        kept,
    };
    let subject = Subject {
        vm: String::new(),
        name: "the kernel's workqueues".to_owned(),
        role: Role::Other,
        what: What::Workqueues,
        threads: Vec::new(),
        from: Some(text.to_owned()),
        demand: (0.0, 0.0),
        kept: ASKED,
    };
    Some((unit, subject))
}

/// Where a thread was seen last, and the share of the time that it ran.
pub(in crate::placement) fn ran(thread: &Thread) -> Option<(u32, f64)> {
    Some((thread.last_cpu.as_ref()?.value, thread.run_share.as_ref()?.value))
}

/// The node of a VM's memory: told, else where most of its pages were counted, else where most of its pinned vCPUs are,
/// because memory comes from where it is touched.
fn home(machine: &Machine, domain: &Domain, threads: &[&Thread]) -> Option<u32> {
    if let Some((nodes, _)) = &domain.memory_nodes
        && nodes.len() == 1
    {
        return nodes.first();
    }
    if let Some(counted) = machine.vm_memory.get(&domain.name) {
        let most = counted.value.iter().max_by_key(|(node, bytes)| (**bytes, std::cmp::Reverse(**node)));
        return most.map(|(node, _)| *node);
    }
    let mut count: BTreeMap<u32, u32> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_))) {
        let nodes = thread.affinity.as_ref().map(|set| machine.topology.nodes_of(&set.value)).unwrap_or_default();
        if let [node] = nodes[..] {
            *count.entry(node).or_default() += 1;
        }
    }
    count.into_iter().max_by_key(|(node, count)| (*count, std::cmp::Reverse(*node))).map(|(node, _)| node)
}

fn name(role: Role, group: &[&Thread]) -> String {
    if role != Role::Emulator {
        return role.to_string();
    }
    let count = |wanted: fn(&Role) -> bool| group.iter().filter(|thread| wanted(&thread.role)).count();
    let mut parts = Vec::new();
    if count(|role| matches!(role, Role::Emulator)) > 0 {
        parts.push("emulator".to_owned());
    }
    for (number, what) in [
        (count(|role| matches!(role, Role::Vhost)), "vhost"),
        (count(|role| matches!(role, Role::IoThread(_))), "iothread"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    base::number::list(&parts)
}
