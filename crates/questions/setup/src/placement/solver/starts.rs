//! Placements to begin with: one thing after the other, the most demanding first, where it costs least.

use super::caches::{APART, Together};
use super::ground::Ground;
use super::limits::{BREACH, Occupied};
use super::score::{CORE, PACKAGE, POINTS};
use super::{Goal, Kind};
use base::CpuSet;
use facts::shares::{SMT_YIELD, room_beside};

/// What is on each CPU while a placement grows.
struct Floor {
    taken: Vec<f64>,
    wanted: Vec<f64>,
    pinned: Vec<u32>,
    irqs: Vec<f64>,
    of_core: Vec<f64>,
    core_used: Vec<bool>,
    package_used: Vec<bool>,
    occupied: Occupied,
    together: Together,
}

impl Floor {
    fn of(ground: &Ground<'_>) -> Self {
        let count = ground.task.cpus.len();
        let taken = ground.cpus.taken.clone();
        let mut of_core = vec![0.0; ground.cpus.cores];
        (0..count).for_each(|cpu| of_core[ground.cpus.core[cpu]] += taken[cpu]);
        Self {
            taken,
            wanted: vec![0.0; count],
            pinned: vec![0; count],
            irqs: vec![0.0; count],
            of_core,
            core_used: vec![false; ground.cpus.cores],
            package_used: vec![false; ground.packages],
            occupied: Occupied::nothing(ground),
            together: Together::nothing(ground),
        }
    }

    fn add(&mut self, ground: &Ground<'_>, unit: usize, place: &CpuSet) {
        let about = &ground.task.units[unit];
        self.occupied.add(ground, unit, place);
        self.together.add(ground, unit, place);
        let used = ground.used(unit, place);
        let part = about.demand / used.len().max(1) as f64;
        for cpu in ground.positions(&used) {
            match about.kind {
                Kind::Irq => {
                    self.taken[cpu] += part;
                    self.irqs[cpu] += part;
                }
                Kind::Housekeeping => continue,
                _ => self.wanted[cpu] += part,
            }
            self.pinned[cpu] += u32::from(place.len() == 1 && about.kind.is_pinned());
            self.of_core[ground.cpus.core[cpu]] += part;
            self.core_used[ground.cpus.core[cpu]] = true;
            self.package_used[ground.package[cpu]] = true;
        }
    }

    /// What one more unit on this CPU costs: what it and its neighbours then lack, and what the goal asks.
    fn price(&self, ground: &Ground<'_>, unit: usize, cpu: usize, empty_cores: bool) -> f64 {
        let (task, about) = (ground.task, &ground.task.units[unit]);
        let (core, weight) = (ground.cpus.core[cpu], about.kind.weight());
        let siblings = (self.of_core[core] - self.wanted[cpu] - self.taken[cpu]).clamp(0.0, 1.0);
        let room = room_beside(self.taken[cpu], siblings);
        let lacks = |wanted: f64| (wanted - room).max(0.0);
        let here = lacks(self.wanted[cpu] + about.demand) - lacks(self.wanted[cpu]);
        let beside = (1.0 - SMT_YIELD / 2.0) * about.demand * siblings;
        let mut price = weight * (here + beside + about.demand * ground.lost(unit, cpu));
        if self.together.is_away(ground, unit, cpu) {
            price += APART / POINTS * about.demand;
        }
        if empty_cores {
            price += 0.75 * siblings * about.demand;
        }
        let held = self.pinned[cpu] > 0;
        price += match about.kind {
            Kind::Irq if held => 0.05 + 0.5 * about.demand,
            Kind::Pmd if held || self.wanted[cpu] > 0.0 => 2.0,
            Kind::Vcpu | Kind::Pmd => 0.5 * self.irqs[cpu],
            _ => 0.0,
        };
        if task.goal == Goal::Latency && (held || about.kind.is_pinned() && self.irqs[cpu] > 0.0) {
            price += 0.5;
        }
        price += match task.goal {
            Goal::Density if !self.core_used[core] => CORE / POINTS,
            Goal::Power if !self.package_used[ground.package[cpu]] => PACKAGE / POINTS,
            Goal::Density | Goal::Power => 0.0,
            Goal::Throughput | Goal::Latency => 0.01 * self.wanted[cpu],
        };
        let has = ground.was(unit).contains(task.cpus[cpu].cpu);
        if !has && self.occupied.forbids(ground, unit, cpu) || self.occupied.disturbs(ground, unit, cpu) {
            price += BREACH;
        }
        let stays = about.now.is_some() && ground.was(unit).len() == 1 && has;
        if !stays && ground.is_anothers(unit, cpu) {
            price += BREACH;
        }
        price - 0.001 * f64::from(u8::from(stays))
    }
}

/// Units of these kinds, each on the one CPU that costs least; all others stay, sets where they are.
pub(super) fn singles(ground: &Ground<'_>, start: &[CpuSet], kinds: &[Kind], empty_cores: bool) -> Vec<CpuSet> {
    let (task, mut places) = (ground.task, start.to_vec());
    let mut floor = Floor::of(ground);
    let moves = |unit: &usize| kinds.contains(&task.units[*unit].kind) && !task.units[*unit].kept;
    let stays = |unit: &usize| {
        // Helpers find their CPUs after the vCPUs; where these stay, helpers do so as well.
        let kind = task.units[*unit].kind;
        !moves(unit) && (kind != Kind::Helpers || !kinds.contains(&Kind::Vcpu))
    };
    (0..places.len()).filter(stays).for_each(|unit| floor.add(ground, unit, &places[unit]));
    let mut order: Vec<usize> = (0..places.len()).filter(moves).collect();
    let turn = |kind: Kind| match kind {
        Kind::Pmd => 0,
        Kind::Vcpu => 1,
        Kind::Worker | Kind::Helpers | Kind::Irq | Kind::Housekeeping => 2,
    };
    order.sort_by(|a, b| {
        let (first, second) = (&task.units[*a], &task.units[*b]);
        turn(first.kind).cmp(&turn(second.kind)).then(second.demand.total_cmp(&first.demand)).then(a.cmp(b))
    });
    for unit in order {
        let price = |cpu: &usize| floor.price(ground, unit, *cpu, empty_cores);
        let allowed: Vec<(f64, usize)> = ground.positions(ground.allowed(unit)).map(|cpu| (price(&cpu), cpu)).collect();
        let Some((_, best)) = allowed.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        places[unit] = CpuSet::one(task.cpus[best].cpu);
        floor.add(ground, unit, &places[unit]);
    }
    places
}

/// The few CPUs among these that are cheapest for a unit while everything else stays.
pub(super) fn cheapest(
    ground: &Ground<'_>,
    places: &[CpuSet],
    unit: usize,
    among: &CpuSet,
    count: usize,
) -> Vec<CpuSet> {
    let mut floor = Floor::of(ground);
    (0..places.len()).filter(|other| *other != unit).for_each(|other| floor.add(ground, other, &places[other]));
    let mut priced: Vec<(f64, usize)> =
        ground.positions(among).map(|cpu| (floor.price(ground, unit, cpu, false), cpu)).collect();
    priced.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    priced.iter().take(count).map(|(_, cpu)| CpuSet::one(ground.task.cpus[*cpu].cpu)).collect()
}

/// Every unit of helpers on CPUs without a vCPU: of its home node if they suffice, else of another, else of all. For goals
/// that save cores, just as many CPUs as they need, on cores that are used already.
pub(super) fn helpers(ground: &Ground<'_>, places: Vec<CpuSet>) -> Vec<CpuSet> {
    helpers_on(ground, places, matches!(ground.task.goal, Goal::Density | Goal::Power))
}

/// The same, with just as many CPUs as they need where `saving` says so.
pub(super) fn helpers_on(ground: &Ground<'_>, mut places: Vec<CpuSet>, saving: bool) -> Vec<CpuSet> {
    let task = ground.task;
    let moves = |unit: &usize| task.units[*unit].kind == Kind::Helpers && !task.units[*unit].kept;
    let mut floor = Floor::of(ground);
    (0..places.len()).filter(|unit| !moves(unit)).for_each(|unit| floor.add(ground, unit, &places[unit]));
    let allowed = task.allowed(Kind::Helpers);
    let free: Vec<usize> = ground.positions(&allowed).filter(|cpu| floor.pinned[*cpu] == 0).collect();
    let own = |unit: usize| if task.units[unit].limit.is_some() { ground.allowed(unit) } else { &allowed };
    // CPUs whose core carries no vCPU at all come first.
    let mut busy = vec![false; ground.cpus.cores];
    (0..task.cpus.len()).for_each(|cpu| busy[ground.cpus.core[cpu]] |= floor.pinned[cpu] > 0);
    let quiet: Vec<usize> = free.iter().copied().filter(|cpu| !busy[ground.cpus.core[*cpu]]).collect();
    let mut left = vec![0.0; ground.nodes];
    free.iter().for_each(|cpu| left[ground.node[*cpu]] += (1.0 - floor.taken[*cpu]).max(0.0));
    for unit in (0..places.len()).filter(moves) {
        let demand = task.units[unit].demand;
        if saving {
            places[unit] = just_enough(ground, &floor, unit, own(unit));
            floor.add(ground, unit, &places[unit]);
            continue;
        }
        let of = |cpus: &[usize], node: Option<usize>| -> CpuSet {
            let limit = task.units[unit].limit.as_ref();
            let within = |cpu: &&usize| {
                limit.is_none_or(|limit| limit.contains(task.cpus[**cpu].cpu)) && !ground.is_anothers(unit, **cpu)
            };
            let of_node = cpus.iter().filter(|cpu| node.is_none_or(|node| ground.node[**cpu] == node)).filter(within);
            of_node.map(|cpu| task.cpus[*cpu].cpu).collect()
        };
        let mut nodes: Vec<usize> = (0..ground.nodes).filter(|node| left[*node] > 0.0).collect();
        let far = |node: usize| {
            (0..task.cpus.len()).find(|cpu| ground.node[*cpu] == node).map_or(0.0, |cpu| ground.lost(unit, cpu))
        };
        nodes.sort_by(|a, b| far(*a).total_cmp(&far(*b)).then(a.cmp(b)));
        let fits = nodes.into_iter().find(|node| left[*node] >= demand);
        let sets = fits.map(|node| [of(&quiet, Some(node)), of(&free, Some(node))]).into_iter().flatten();
        let chosen = sets.chain([of(&free, None)]).find(|set| set.len() as f64 >= demand && !set.is_empty());
        places[unit] = match (chosen, fits) {
            (Some(chosen), Some(node)) => {
                left[node] -= demand;
                chosen
            }
            // No CPU is without a vCPU, or too few are: those with most room, of the host.
            _ => just_enough(ground, &floor, unit, own(unit)),
        };
        if fits.is_none() {
            floor.add(ground, unit, &places[unit]);
        }
    }
    places
}

/// The fewest CPUs that have room for a unit, on cores in use before others where that is asked, near its memory first.
fn just_enough(ground: &Ground<'_>, floor: &Floor, unit: usize, allowed: &CpuSet) -> CpuSet {
    let (task, demand) = (ground.task, ground.task.units[unit].demand);
    let room = |cpu: usize| (1.0 - floor.taken[cpu] - floor.wanted[cpu]).max(0.0);
    let opened = |cpu: usize| match task.goal {
        Goal::Density => !floor.core_used[ground.cpus.core[cpu]],
        Goal::Power => !floor.package_used[ground.package[cpu]],
        Goal::Throughput | Goal::Latency => false,
    };
    let barred = |cpu: usize| {
        let occupied = &floor.occupied;
        occupied.forbids(ground, unit, cpu) || occupied.disturbs(ground, unit, cpu) || ground.is_anothers(unit, cpu)
    };
    let mut order: Vec<usize> = ground.positions(allowed).collect();
    order.sort_by(|a, b| {
        let price = |cpu: usize| (barred(cpu), floor.pinned[cpu] > 0 && room(cpu) < demand.min(0.25), opened(cpu));
        let far = |cpu: usize| ground.lost(unit, cpu);
        let away = |cpu: usize| floor.together.is_away(ground, unit, cpu);
        let nearer = far(*a).total_cmp(&far(*b)).then(away(*a).cmp(&away(*b)));
        price(*a).cmp(&price(*b)).then(nearer).then(room(*b).total_cmp(&room(*a))).then(a.cmp(b))
    });
    let (mut set, mut has) = (CpuSet::default(), 0.0);
    for cpu in order {
        if barred(cpu) && !set.is_empty() {
            break;
        }
        set.insert(task.cpus[cpu].cpu);
        has += room(cpu);
        if has >= 1.25 * demand {
            break;
        }
    }
    set
}

/// Every VM whole on one node, its threads free on the node's CPUs: where there are more vCPUs than CPUs, pins to single
/// CPUs make some wait while others idle. What is pinned to one CPU stays pinned.
pub(super) fn whole_nodes(ground: &Ground<'_>, start: &[CpuSet]) -> Vec<CpuSet> {
    let (task, mut places) = (ground.task, start.to_vec());
    let mut floor = Floor::of(ground);
    let balanced = task.allowed(Kind::Helpers);
    // Sets are for CPUs that the scheduler balances: a vCPU that keeps to isolated ones stays.
    let of_vm = |unit: &usize| {
        task.units[*unit].vm.is_some()
            && !task.units[*unit].kept
            && matches!(task.units[*unit].kind, Kind::Vcpu | Kind::Helpers)
            && !(task.units[*unit].kind == Kind::Vcpu && ground.was(*unit).len() == 1)
            && ground.allowed(*unit).meets(&balanced)
    };
    (0..places.len()).filter(|unit| !of_vm(unit)).for_each(|unit| floor.add(ground, unit, &places[unit]));
    // What a polling thread polls on is not shared.
    let open = |cpu: &usize| floor.pinned[*cpu] == 0;
    let allowed: Vec<usize> = ground.positions(&balanced).filter(open).collect();
    let mut nodes: Vec<(CpuSet, f64)> = vec![(CpuSet::default(), 0.0); ground.nodes];
    for cpu in &allowed {
        nodes[ground.node[*cpu]].0.insert(task.cpus[*cpu].cpu);
        nodes[ground.node[*cpu]].1 += (1.0 - floor.taken[*cpu]).max(0.0);
    }
    let mut vms: std::collections::BTreeMap<usize, (f64, Vec<usize>)> = std::collections::BTreeMap::new();
    for unit in (0..places.len()).filter(of_vm) {
        let (demand, units) = vms.entry(task.units[unit].vm.unwrap_or_default()).or_default();
        *demand += task.units[unit].demand;
        units.push(unit);
    }
    let mut order: Vec<&(f64, Vec<usize>)> = vms.values().collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (demand, units) in order {
        let price = |node: usize| {
            let lost: f64 = ground
                .positions(&nodes[node].0)
                .next()
                .map_or(0.0, |cpu| units.iter().map(|unit| task.units[*unit].demand * ground.lost(*unit, cpu)).sum());
            (demand - nodes[node].1).max(0.0) + lost - 0.001 * nodes[node].1
        };
        let there = (0..ground.nodes).filter(|node| !nodes[*node].0.is_empty());
        let Some(best) = there.min_by(|a, b| price(*a).total_cmp(&price(*b))) else { continue };
        nodes[best].1 -= demand;
        for unit in units {
            let limit = task.units[*unit].limit.as_ref();
            let inside = limit.map_or_else(|| nodes[best].0.clone(), |limit| nodes[best].0.and(limit));
            // Whose limit lies elsewhere stays.
            if !inside.is_empty() {
                places[*unit] = inside;
            }
        }
    }
    places
}

/// The kernel's own work, off the CPUs of vCPUs and polling threads, if that leaves any.
pub(super) fn housekeeping(ground: &Ground<'_>, mut places: Vec<CpuSet>) -> Vec<CpuSet> {
    let units = || ground.task.units.iter().enumerate();
    let held = units()
        .filter(|(index, unit)| unit.kind.is_pinned() && places[*index].len() == 1)
        .fold(CpuSet::default(), |all, (index, _)| all.or(&places[index]));
    let rest = ground.task.allowed(Kind::Housekeeping).without(&held);
    for (index, _) in units().filter(|(_, unit)| unit.kind == Kind::Housekeeping && !unit.kept) {
        if !rest.is_empty() && places[index].meets(&held) {
            places[index] = rest.clone();
        }
    }
    places
}
