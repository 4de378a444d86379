//! Placements for this machine: its threads as the solver's units, and the solver's plans as lines with commands.
//!
//! A vCPU is a unit. The emulator, its vhost workers and iothreads without pins of their own are one, because libvirt gives
//! them one set (`emulatorpin`); without libvirt each thread gets its mask by itself.

use super::model::{Demand, Wishes};
use super::solver::{Goal, Plan, REMOTE_DISTANCE, Room, Task, Unit, plans};
use base::Change;
use base::CpuSet;
use host::Machine;
use host::machine::{Domain, Role, Thread};
use std::collections::BTreeMap;

/// Placements that are shown.
const MOST_SHOWN: usize = 4;

/// What could be done, best first.
#[derive(Debug, Default)]
pub struct Proposal {
    /// What was asked of the solver.
    pub task: Task,
    /// Whose units these are.
    pub subjects: Vec<Subject>,
    /// Plans that do not score worse than what holds now, then those that were rejected.
    pub plans: Vec<Plan>,
}

/// What a unit of the solver stands for.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The VM.
    pub vm: String,
    /// `vcpu 3`, `emulator and 8 vhost`.
    pub name: String,
    /// Its role; `Emulator` for helpers together.
    pub role: Role,
    /// Its threads.
    pub tids: Vec<i32>,
    /// Whether libvirt manages it.
    pub managed: bool,
    /// Sum of bounds of what its threads want.
    pub demand: (f64, f64),
}

impl Proposal {
    /// Placements for all VMs of a machine; none where CPUs or threads were not told.
    pub fn of(machine: &Machine, wishes: &Wishes) -> Self {
        let online = machine.topology.online.without(&wishes.reserve);
        let (mut task, mut subjects) = (Task { goal: wishes.goal, ..Task::default() }, Vec::new());
        let isolated = machine.topology.isolated.clone().unwrap_or_default();
        for (cpu, about) in machine.topology.cpus.iter().filter(|(cpu, _)| online.contains(**cpu)) {
            let taken = taken(machine, *cpu);
            task.cpus.push(Room { cpu: *cpu, core: about.core, node: about.node.unwrap_or(0), taken });
        }
        for (from, node) in &machine.nodes {
            task.distances.extend(node.distances.iter().map(|(to, distance)| ((*from, *to), *distance)));
        }
        for (vm, domain) in machine.domains.iter().enumerate() {
            let kept = wishes.keep.contains(&domain.name);
            let threads: Vec<&Thread> = machine.threads_of(&domain.name).collect();
            let home = home(machine, domain, &threads);
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
            for (role, group) in groups {
                let demands: Vec<Demand> = group.iter().map(|thread| Demand::of(thread)).collect();
                let sum = |of: fn(&Demand) -> f64| demands.iter().map(of).sum::<f64>();
                task.units.push(Unit {
                    vm,
                    single: matches!(role, Role::Vcpu(_)),
                    threads: group.len() as u32,
                    demand: sum(|demand| demand.likely),
                    now: group[0].affinity.as_ref().map(|set| set.value.clone()),
                    home,
                    kept,
                });
                subjects.push(Subject {
                    vm: domain.name.clone(),
                    name: name(role, &group),
                    role,
                    tids: group.iter().filter_map(|thread| thread.tid).collect(),
                    managed: domain.whole.is_some() || !domain.vcpu_pins.is_empty() || !domain.emulator_pins.is_empty(),
                    demand: (sum(|demand| demand.low), sum(|demand| demand.high)),
                });
            }
        }
        // Balancing does not reach isolated CPUs: a set of several would stay on one of them, so helpers keep off.
        let helpers_only: CpuSet = task.all().without(&isolated);
        if helpers_only.is_empty() && !task.cpus.is_empty() {
            return Self { task, subjects, plans: Vec::new() };
        }
        let plans = plans(&task);
        Self { task, subjects, plans }
    }

    /// The placement that holds now.
    pub fn now(&self) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.idea == "as it is now")
    }

    /// What to show: the best, and the next ones, as far as they are better than now.
    pub fn better(&self) -> Vec<&Plan> {
        let now = self.now().map_or(f64::INFINITY, |plan| plan.score.total);
        self.plans.iter().filter(|plan| plan.score.total < now - 1e-9).take(MOST_SHOWN).collect()
    }

    /// The plan that moves helpers and nothing else, where it is better than now.
    pub fn helpers_only(&self) -> Option<&Plan> {
        self.better().into_iter().find(|plan| {
            plan.places
                .iter()
                .zip(&self.task.units)
                .all(|(place, unit)| !unit.single || unit.now.as_ref() == Some(place))
        })
    }

    /// The typed change of a unit in a plan; `None`: it stays.
    pub fn changes(&self, plan: &Plan, unit: usize) -> Vec<Change> {
        let (subject, about, place) = (&self.subjects[unit], &self.task.units[unit], &plan.places[unit]);
        if about.now.as_ref() == Some(place) {
            return Vec::new();
        }
        let (domain, cpus) = (subject.vm.clone(), place.to_string());
        let from = about.now.as_ref().map(CpuSet::to_string);
        match subject.role {
            _ if !subject.managed => {
                let one = |tid: &i32| Change::TaskAffinity { tid: *tid, cpus: cpus.clone(), from: from.clone() };
                subject.tids.iter().map(one).collect()
            }
            Role::Vcpu(vcpu) => vec![Change::VcpuPin { domain, vcpu, cpus, from }],
            Role::IoThread(iothread) => vec![Change::IothreadPin { domain, iothread, cpus, from }],
            _ => vec![Change::EmulatorPin { domain, cpus, from }],
        }
    }

    /// Why a unit gets its place, in a line.
    pub fn why(&self, plan: &Plan, unit: usize) -> String {
        let (about, place) = (&self.task.units[unit], &plan.places[unit]);
        if about.kept {
            return "kept, as you asked".to_owned();
        }
        let rooms: Vec<&Room> = self.task.cpus.iter().filter(|room| place.contains(room.cpu)).collect();
        let others: Vec<&str> = (0..plan.places.len())
            .filter(|other| *other != unit && plan.places[*other].meets(place))
            .map(|other| self.subjects[other].name.as_str())
            .collect();
        let company = match &others[..] {
            [] => "alone".to_owned(),
            [other] => format!("with {other}"),
            others => format!("with {} others", others.len()),
        };
        let mut nodes: Vec<u32> = rooms.iter().map(|room| room.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let near = match (about.home, &nodes[..]) {
            (Some(home), [node]) if home == *node => format!(", home node {node}"),
            (Some(home), [node]) => {
                let far = self.task.distances.get(&(home, *node)).copied();
                let far = far.map_or(format!("{REMOTE_DISTANCE} assumed"), |far| far.to_string());
                format!(", node {node}, distance {far} from home")
            }
            _ => String::new(),
        };
        let stays = if about.now.as_ref() == Some(place) { "stays: " } else { "" };
        format!("{stays}{company}{near}")
    }

    /// Names of goals, for the summary.
    pub fn goal(&self) -> &'static str {
        match self.task.goal {
            Goal::Throughput => "throughput",
            Goal::Latency => "latency",
            Goal::Density => "density",
            Goal::Power => "power",
        }
    }
}

/// What of a CPU is gone before any VM's thread runs: interrupts, steal, and programs that are none of theirs.
fn taken(machine: &Machine, cpu: u32) -> f64 {
    let Some(usage) = machine.cpu_use.get(&cpu) else { return 0.0 };
    let of_vms = machine.threads.iter().filter(|thread| thread.vm.is_some() && thread.role != Role::Other);
    let here = of_vms.filter(|thread| thread.last_cpu.as_ref().is_some_and(|last| last.value == cpu));
    let ran: f64 = here.filter_map(|thread| Some(thread.run_share.as_ref()?.value)).sum();
    (usage.irq + usage.softirq + usage.steal + (usage.busy - ran).max(0.0)).clamp(0.0, 1.0)
}

/// The node of a VM's memory: told, else where most of its pinned vCPUs are, because memory comes from where it is touched.
fn home(machine: &Machine, domain: &Domain, threads: &[&Thread]) -> Option<u32> {
    if let Some((nodes, _)) = &domain.memory_nodes
        && nodes.len() == 1
    {
        return nodes.first();
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
