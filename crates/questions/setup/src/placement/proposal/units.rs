//! A machine's threads and interrupts as the solver's units.
//!
//! A vCPU is a unit. The emulator, its vhost workers and iothreads without pins of their own are one, because libvirt gives
//! them one set (`emulatorpin`); without libvirt each thread gets its mask by itself. A polling thread is a unit, and so is
//! each interrupt that comes often or is a NIC's; the kernel's own work that is tied to no CPU is one.

use super::irqs::{self, Attributed};
use super::real_time::beside_helpers;
use crate::placement::held::{covered, held};
use crate::placement::model::{BUSY, Demand, Quotas, Wishes};
use crate::placement::solver::{Goal, Kind, Room, Task, Unit};
use base::CpuSet;
use base::setting::ThreadId;
use facts::shares::taken;
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
const BY_HAND: &str = "not moved: workers of this VM are pinned by hand, and emulatorpin would move them";
const OWN: &str = "not moved: its pin is right, and the wider masks of other VMs that take its CPU in are not";
const UNREAD: &str = "not moved: pmd-cpu-mask was not read, so nothing would undo it";

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
    let quotas = Quotas::of(machine);
    for (vm, domain) in machine.domains.iter().enumerate() {
        task.scattered.extend(domain.shows_groups().then_some(vm));
        of_domain(machine, &quotas, vm, domain, wishes.keeps(&domain.name)).into_iter().for_each(&mut add);
    }
    polling(machine, wishes).into_iter().for_each(&mut add);
    let attributed = irqs::attributed(machine);
    irqs::units(machine, wishes, &attributed).into_iter().for_each(&mut add);
    kernel(machine, wishes.keeps("kernel")).into_iter().for_each(&mut add);
    task.cpus = rooms(machine, wishes, &attributed);
    let known = task.units.iter().zip(&subjects).enumerate();
    let idle = known.filter(|(_, (unit, of))| unit.kind == Kind::Helpers && of.demand.1 <= BUSY);
    task.idle = idle.map(|(unit, _)| unit).collect();
    if wishes.reserve.is_empty() && !matches!(wishes.goal, Goal::Density | Goal::Power) {
        hold(machine, &mut task, &mut subjects);
    }
    (task, subjects)
}

/// What VMs hold by their pins. Such a VM stays where the mask of another one takes its CPUs in: that one may go elsewhere.
fn hold(machine: &Machine, task: &mut Task, subjects: &mut [Subject]) {
    let held = held(machine);
    let number = |vm: &str| machine.domains.iter().position(|domain| domain.name == vm);
    task.held = held.iter().filter_map(|(cpu, vm)| Some((*cpu, number(vm)?))).collect();
    let vcpus = machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    let taken_in = vcpus.fold(CpuSet::default(), |all, thread| all.or(&covered(machine, &held, thread)));
    let is_right = |unit: &Unit, subject: &Subject| {
        let own = |cpu: u32| held.get(&cpu) == Some(&subject.vm.as_str());
        let is_own = unit.now.as_ref().is_some_and(|now| now.meets(&taken_in) && now.iter().all(own));
        // Helpers that hardly run are in nobody's way there.
        is_own && (unit.kind == Kind::Vcpu || unit.kind == Kind::Helpers && unit.demand <= BUSY)
    };
    for (unit, subject) in task.units.iter_mut().zip(&mut *subjects) {
        if !unit.kept && is_right(unit, subject) {
            (unit.kept, subject.kept) = (true, OWN);
        }
    }
    for at in beside_helpers(machine, task, subjects) {
        (task.units[at].kept, subjects[at].kept) = (true, super::real_time::STAYS);
    }
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
        package: about.package.or(about.node).unwrap_or(0),
        cache: about.last_cache,
        taken: (taken.get(cpu).copied().unwrap_or(0.0) - attributed.on_cpu(*cpu)).max(0.0),
        reserved: wishes.reserve.contains(*cpu),
        isolated: isolated.contains(*cpu),
    };
    online.map(room).collect()
}

/// The units of a domain: each vCPU, its helpers together, and helpers that have CPUs of their own.
fn of_domain(machine: &Machine, quotas: &Quotas<'_>, vm: usize, domain: &Domain, kept: bool) -> Vec<(Unit, Subject)> {
    let threads: Vec<&Thread> = machine.threads_of(&domain.name).collect();
    let home = home(machine, domain, &threads);
    let managed = domain.whole.is_some() || !domain.vcpu_pins.is_empty() || !domain.emulator_pins.is_empty();
    let mask = |thread: &Thread| thread.affinity.as_ref().map(|set| set.value.clone());
    let emulator = threads.iter().find(|thread| thread.role == Role::Emulator).and_then(|thread| mask(thread));
    let emulator = emulator.or_else(|| Some(domain.emulator_pin()?.value.clone()));
    // A worker that was pinned by hand is placed by itself: the emulator's pin does not say where it is.
    let by_hand = |thread: &Thread| {
        let own = mask(thread).filter(|_| thread.role == Role::Vhost || !managed && thread.role != Role::Emulator)?;
        let emulator = emulator.as_ref()?;
        (own != *emulator && (managed || own.len() == 1)).then_some(own)
    };
    let inside = |own: &CpuSet| managed && emulator.as_ref().is_some_and(|emulator| own.is_within(emulator));
    let any_by_hand = managed && threads.iter().any(|thread| by_hand(thread).is_some());
    let mut groups: Vec<(Role, Option<CpuSet>, Vec<&Thread>)> = Vec::new();
    for thread in &threads {
        let (role, own) = match thread.role {
            Role::Vcpu(_) => (thread.role, None),
            // An iothread of libvirt has a pin of its own, which is not the emulator's.
            Role::IoThread(_) if managed => (thread.role, None),
            Role::Vhost | Role::IoThread(_) if by_hand(thread).is_some() => (thread.role, by_hand(thread)),
            Role::Emulator | Role::Vhost | Role::IoThread(_) => (Role::Emulator, None),
            Role::Pmd | Role::Other => continue,
        };
        // One CPU is one worker's; those on a set of CPUs go together.
        let alone = own.as_ref().is_some_and(|own| own.len() == 1);
        match groups.iter_mut().find(|(known, set, _)| !alone && *known == role && *set == own) {
            Some((.., group)) => group.push(thread),
            None => groups.push((role, own, vec![thread])),
        }
    }
    let unit = |(role, own, group): (Role, Option<CpuSet>, Vec<&Thread>)| {
        let libvirts = managed && own.is_none();
        let threads: Vec<_> = group.iter().filter_map(|thread| Some((thread.id()?, mask(thread)))).collect();
        let nameless = !libvirts && threads.is_empty();
        // The pin of the emulator may take with it whoever was pinned by hand, now or on the way back.
        let by_hand = match &own {
            Some(own) => inside(own),
            None => role == Role::Emulator && any_by_hand,
        };
        let demands: Vec<Demand> = group.iter().map(|thread| quotas.demand(thread)).collect();
        let sum = |of: fn(&Demand) -> f64| demands.iter().map(of).sum::<f64>();
        let masks = group.iter().filter_map(|thread| mask(thread)).reduce(|all, set| all.or(&set));
        // Where nobody read a mask, libvirt's pin is the one in force: it sets it when the VM starts.
        let now = masks.or_else(|| pinned(domain, role).filter(|_| libvirts).cloned());
        let has_one = now.as_ref().is_some_and(|now| now.len() == 1);
        let unit = Unit {
            vm: Some(vm),
            kind: match role {
                Role::Vcpu(_) => Kind::Vcpu,
                Role::Vhost | Role::IoThread(_) if has_one => Kind::Worker,
                _ => Kind::Helpers,
            },
            threads: group.len() as u32,
            commands: if libvirts { 1 } else { threads.len().max(1) as u32 },
            demand: sum(|demand| demand.likely),
            limit: limit(machine, &group).or_else(|| near_memory(machine, domain, role, now.as_ref())),
            stuck: now.as_ref().and_then(|now| stuck(machine, now, &group)),
            home: if domain.guest_nodes > 1 { cell(machine, domain, role, now.as_ref()) } else { home },
            now,
            kept: kept || nameless || by_hand,
        };
        let subject = Subject {
            vm: domain.name.clone(),
            name: name(role, &group, own.is_some()),
            role,
            what: if libvirts { What::Pin } else { What::Tasks },
            from: before(domain, role, &threads).map(CpuSet::to_string),
            threads,
            demand: (sum(|demand| demand.low), sum(|demand| demand.high)),
            kept: match (kept, nameless) {
                (true, _) => ASKED,
                (false, true) => NAMELESS,
                (false, false) => BY_HAND,
            },
        };
        (unit, subject)
    };
    groups.into_iter().map(unit).collect()
}

/// What the cgroups of all these threads leave them, where that is less than all CPUs.
fn limit(machine: &Machine, threads: &[&Thread]) -> Option<CpuSet> {
    let limits = threads.iter().filter_map(|thread| Some(machine.limit_of(thread)?.1.value.clone()));
    let limit = limits.reduce(|all, limit| all.and(&limit))?;
    (!limit.is_empty() && !machine.topology.online.is_within(&limit)).then_some(limit)
}

/// The isolated CPU on which threads stay that may use several: the scheduler moves none between them.
fn stuck(machine: &Machine, now: &CpuSet, threads: &[&Thread]) -> Option<u32> {
    let running = now.and(&machine.topology.online);
    let isolated = machine.topology.isolated.as_ref()?;
    let last = threads.iter().filter_map(|thread| Some(thread.last_cpu.as_ref()?.value));
    let last = last.into_iter().find(|cpu| running.contains(*cpu));
    (running.len() > 1 && running.is_within(isolated)).then(|| last.or_else(|| running.first())).flatten()
}

/// What an undo has to restore with one command: the list that libvirt was asked for, as long as the threads have it; else the
/// one mask that all of them have.
fn before<'a>(domain: &'a Domain, role: Role, threads: &'a [(ThreadId, Option<CpuSet>)]) -> Option<&'a CpuSet> {
    let all_have = |pin: &CpuSet| threads.iter().all(|(_, cpus)| cpus.as_ref().is_none_or(|cpus| cpus == pin));
    pinned(domain, role).filter(|pin| all_have(pin)).or_else(|| same(threads))
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

/// Polling threads of Open vSwitch, each on its CPU: as threads, else as the switch lists them. Where another number is asked for, those
/// that do not run yet have no place, and of fewer the last one has none either: its place is not taken for granted.
fn polling(machine: &Machine, wishes: &Wishes) -> Vec<(Unit, Subject)> {
    let asked = wishes.polling.as_ref().map(|asked| asked.threads as usize);
    let kept = asked.is_none() && wishes.keeps("pmd");
    let threads = machine.threads.iter().filter(|thread| thread.role == Role::Pmd);
    let mut polling: Vec<(Option<CpuSet>, Option<ThreadId>, f64)> = threads
        .filter_map(|thread| {
            let cpus = thread.affinity.as_ref()?.value.clone();
            let demand = if thread.run_share.is_some() { Demand::of(thread).likely } else { 1.0 };
            Some((Some(cpus), thread.id(), demand))
        })
        .collect();
    if polling.is_empty() {
        polling = machine.switch.pmd_cpus().iter().map(|cpu| (Some(CpuSet::one(cpu)), None, 1.0)).collect();
    }
    let tid = |thread: &Option<ThreadId>| thread.as_ref().map(|thread| thread.tid);
    let first = |cpus: &Option<CpuSet>| cpus.as_ref().and_then(CpuSet::first);
    polling.sort_by(|a, b| first(&a.0).cmp(&first(&b.0)).then(tid(&a.1).cmp(&tid(&b.1))));
    if let Some(asked) = asked.filter(|asked| *asked != polling.len()) {
        polling.truncate(asked);
        if polling.len() == asked
            && let Some((now, ..)) = polling.last_mut()
        {
            *now = None;
        }
        // The solver is no use beyond the CPUs of the host.
        polling.resize(asked.min(machine.topology.online.len()), (None, None, 1.0));
    }
    let from = machine.switch.mask_in_force();
    let kept = kept || from.is_none() && asked.is_none();
    let of_ports = port_node(machine);
    let unit = |(index, (now, thread, demand)): (usize, (Option<CpuSet>, Option<ThreadId>, f64))| {
        let home = first(&now).and_then(|cpu| served_node(machine, cpu)).or(of_ports.filter(|_| now.is_none()));
        let threads = thread.into_iter().map(|thread| (thread, now.clone())).collect();
        let unit = Unit {
            vm: None,
            kind: Kind::Pmd,
            threads: 1,
            commands: 1,
            demand,
            now,
            home,
            kept,
            limit: None,
            stuck: None,
        };
        let subject = Subject {
            vm: String::new(),
            name: format!("pmd {index}"),
            role: Role::Pmd,
            what: What::PmdMask,
            threads,
            from: from.clone(),
            demand: (demand, 1.0),
            kept: if wishes.keeps("pmd") { ASKED } else { UNREAD },
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

/// The node of the switch's ports, if all that tell one are of the same.
fn port_node(machine: &Machine) -> Option<u32> {
    let ports = machine.switch.bridges.iter().flat_map(|bridge| &bridge.ports);
    let mut nodes: Vec<u32> = ports.filter_map(|port| Some(port.node.as_ref()?.value)).collect();
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
        limit: None,
        stuck: None,
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

/// The node of a VM's memory: told, else where more than half of its pages were counted, else where most of its pinned vCPUs are,
/// because memory comes from where it is touched.
fn home(machine: &Machine, domain: &Domain, threads: &[&Thread]) -> Option<u32> {
    if let Some((nodes, _)) = &domain.memory_nodes
        && nodes.len() == 1
    {
        return nodes.first();
    }
    if let Some(counted) = machine.vm_memory.get(&domain.name) {
        let all: u64 = counted.value.values().sum();
        if let Some((node, _)) = counted.value.iter().find(|(_, bytes)| **bytes > all / 2) {
            return Some(*node);
        }
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

/// CPUs of the node that a VM's memory may not leave, for helpers that are there: from another one each access crosses the link.
fn near_memory(machine: &Machine, domain: &Domain, role: Role, now: Option<&CpuSet>) -> Option<CpuSet> {
    let is_bound = |(_, mode): &&(CpuSet, String)| matches!(mode.as_str(), "strict" | "bind" | "restrictive");
    let (nodes, _) = domain.memory_nodes.as_ref().filter(is_bound).filter(|(nodes, _)| nodes.len() == 1)?;
    let near = machine.topology.nodes().remove(&nodes.first()?)?;
    (!matches!(role, Role::Vcpu(_)) && now?.is_within(&near)).then_some(near)
}

/// The node of a vCPU of a guest that is shown nodes of its own: that of its cell's memory, else where it is pinned. Helpers serve all
/// cells.
fn cell(machine: &Machine, domain: &Domain, role: Role, now: Option<&CpuSet>) -> Option<u32> {
    if let Role::Vcpu(vcpu) = role
        && let Some(cell) = domain.cells.values().find(|cell| cell.vcpus.contains(vcpu))
        && let Some(nodes) = cell.nodes.as_ref().filter(|nodes| nodes.value.len() == 1)
    {
        return nodes.value.first();
    }
    let nodes = now.filter(|_| matches!(role, Role::Vcpu(_))).map(|now| machine.topology.nodes_of(now))?;
    if let [node] = nodes[..] { Some(node) } else { None }
}

fn name(role: Role, group: &[&Thread], by_hand: bool) -> String {
    match group {
        [thread] if by_hand => return thread.tid.map_or(role.to_string(), |tid| format!("{role} {tid}")),
        _ if role != Role::Emulator => return role.to_string(),
        _ => {}
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
