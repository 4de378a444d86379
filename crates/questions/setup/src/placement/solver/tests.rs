//! Hosts made by chance, and what must hold on all of them.

use super::*;
use crate::placement::solver::ground::Ground;
use proptest::prelude::*;

/// Numbers that look like chance and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % below.max(1)
    }

    fn share(&mut self, most: u32) -> f64 {
        f64::from(self.below(most + 1)) / 100.0
    }
}

/// What a host of the tests has.
#[derive(Debug, Clone)]
struct Shape {
    cores: u32,
    siblings: u32,
    nodes: u32,
    /// vCPUs and vhost workers of each VM.
    vms: Vec<(u32, u32)>,
    irqs: u32,
    pmds: u32,
    /// Of ten CPUs so many are reserved, so many isolated.
    set_aside: (u32, u32),
}

/// A host by chance: every third CPU number is missing, siblings stand half of all CPUs apart.
fn task(shape: &Shape, goal: Goal, seed: u64) -> Task {
    let mut chance = Chance(seed | 1);
    let mut task = Task { goal, ..Task::default() };
    for sibling in 0..shape.siblings {
        for core in 0..shape.cores {
            let cpu = (sibling * shape.cores + core) * 3 / 2;
            let (reserved, isolated) = (chance.below(10) < shape.set_aside.0, chance.below(10) < shape.set_aside.1);
            let taken = chance.share(29);
            let node = core % shape.nodes;
            let cache = Some(core % shape.nodes + core / shape.nodes / 2 * shape.nodes);
            task.cpus.push(Room { cpu, core, node, package: node, cache, taken, reserved, isolated });
        }
    }
    let list: Vec<u32> = task.all().iter().collect();
    let some = |first: u32, count: u32| -> CpuSet {
        list.iter().copied().cycle().skip(first as usize).take(count as usize).collect()
    };
    let many = list.len() as u32;
    let unit = |vm, kind, threads, demand, now, home, kept| Unit {
        vm,
        kind,
        threads,
        commands: 1,
        demand,
        now,
        home,
        kept,
        limit: None,
        stuck: None,
    };
    for (vm, (vcpus, workers)) in shape.vms.iter().enumerate() {
        let home = Some(chance.below(shape.nodes));
        for _ in 0..*vcpus {
            let now = match chance.below(3) {
                0 => None,
                1 => Some(task.all()),
                _ => Some(some(chance.below(many), 1)),
            };
            let (demand, kept) = (chance.share(100), chance.below(10) == 0);
            task.units.push(unit(Some(vm), Kind::Vcpu, 1, demand, now, home, kept));
        }
        let now = Some(some(chance.below(many), 1 + chance.below(8)));
        let demand = f64::from(*workers) * chance.share(59);
        task.units.push(unit(Some(vm), Kind::Helpers, workers + 1, demand, now, home, false));
    }
    for _ in 0..shape.pmds {
        let now = Some(some(chance.below(many), 1));
        task.units.push(unit(None, Kind::Pmd, 1, 1.0, now, Some(chance.below(shape.nodes)), chance.below(10) == 0));
    }
    for _ in 0..shape.irqs {
        let now = Some(some(chance.below(many), 1 + chance.below(2) * 3));
        let (demand, home) = (chance.share(30), Some(chance.below(shape.nodes)));
        task.units.push(unit(None, Kind::Irq, 1, demand, now, home, chance.below(10) == 0));
    }
    task.units.push(unit(None, Kind::Housekeeping, 1, 0.0, Some(task.all()), None, false));
    task
}

fn goals() -> impl Strategy<Value = Goal> {
    prop_oneof![Just(Goal::Throughput), Just(Goal::Latency), Just(Goal::Density), Just(Goal::Power)]
}

/// From 2 CPUs to 512; large hosts have few VMs, so that a debug build is quick.
fn shapes() -> impl Strategy<Value = Shape> {
    let small = (1_u32..17, prop::collection::vec((1_u32..9, 0_u32..9), 0..6));
    let large = (64_u32..257, prop::collection::vec((1_u32..5, 0_u32..5), 1..12));
    (prop_oneof![7 => small, 1 => large], 1_u32..3, 1_u32..5, 0_u32..9, 0_u32..4, (0_u32..4, 0_u32..4)).prop_map(
        |((cores, vms), siblings, nodes, irqs, pmds, set_aside)| {
            let siblings = if cores == 1 { 2 } else { siblings };
            Shape { cores, siblings, nodes: nodes.min(cores), vms, irqs, pmds, set_aside }
        },
    )
}

/// What must hold of every plan of a task.
fn hold(task: &Task) -> Result<(), TestCaseError> {
    let (first, again) = (plans(task), plans(task));
    prop_assert_eq!(&first, &again, "twice the same");
    let now = first.iter().find(|plan| plan.idea == NOW).unwrap();
    prop_assert!(first[0].score.total <= now.score.total + 1e-9, "never worse than what it replaces");
    prop_assert!(first.iter().filter(|plan| plan.proven).count() <= 1, "one is the best of all");
    let limits = |plan: &&Plan| plan.idea != NOW && plan.score.broken > 0.0 && plan.score.total < now.score.total;
    prop_assert!(first.iter().find(limits).is_none(), "no gain is worth a limit");
    for plan in &first {
        for (index, place) in plan.places.iter().enumerate() {
            let unit = &task.units[index];
            prop_assert!(!place.is_empty() && place.is_within(&task.all()), "{place} of {}", task.all());
            prop_assert!(plan.shares[index] <= unit.demand + 1e-9, "nobody gets more than he asks");
            let other_meets = |other: usize| {
                other != index && task.units[other].kind != Kind::Housekeeping && plan.places[other].meets(place)
            };
            prop_assert!(!plan.exclusive[index] || !(0..plan.places.len()).any(other_meets), "exclusive means alone");
            if unit.kept
                && let Some(now) = &unit.now
            {
                prop_assert_eq!(place, now, "what is kept stays");
            }
            if plan.idea != NOW && !unit.kept {
                let allowed = task.allowed_to(unit);
                let reserved: CpuSet = task.cpus.iter().filter(|room| room.reserved).map(|room| room.cpu).collect();
                let of_vm = matches!(unit.kind, Kind::Vcpu | Kind::Pmd | Kind::Helpers);
                prop_assert!(
                    !of_vm || !place.meets(&reserved) || allowed.meets(&reserved),
                    "{place}, reserved {reserved}"
                );
                let now = unit.now.as_ref().map_or_else(|| task.all(), |now| now.and(&task.all()));
                let stays = *place == if of_vm { now.without(&reserved) } else { now };
                prop_assert!(
                    stays || place.is_within(&allowed),
                    "{}: {unit:?} on {place}, allowed {allowed}, reserved {reserved}",
                    plan.idea
                );
            }
        }
    }
    for plan in &first {
        let missing: f64 = task.units.iter().zip(&plan.shares).map(|(unit, share)| unit.demand - share).sum();
        prop_assert!(missing >= task.missing_at_least() - 1e-9, "{missing}, at least {}", task.missing_at_least());
    }
    let effects: Vec<f64> = first.iter().take_while(|plan| plan.idea != NOW).map(|plan| plan.effect).collect();
    prop_assert!(effects.windows(2).all(|pair| pair[0] >= pair[1]), "most for each command first: {effects:?}");
    Ok(())
}

#[test]
fn where_every_cpu_is_set_aside_nothing_goes_where_it_may_not() {
    let shape =
        Shape { cores: 1, siblings: 2, nodes: 1, vms: vec![(2, 0), (1, 0)], irqs: 1, pmds: 0, set_aside: (3, 3) };
    hold(&task(&shape, Goal::Throughput, 8_630_113_792_981_904_626)).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_stay_on_the_host_and_do_not_harm(shape in shapes(), goal in goals(), seed: u64) {
        hold(&task(&shape, goal, seed))?;
    }

    #[test]
    fn small_hosts_get_the_best_of_all_placements(
        cores in 1_u32..4, nodes in 1_u32..3, vcpus in 1_u32..4, irqs in 0_u32..2, goal in goals(), seed: u64,
    ) {
        let siblings = if cores < 3 { 2 } else { 1 };
        let shape = Shape {
            cores, siblings, nodes: nodes.min(cores), vms: vec![(vcpus, 2)], irqs, pmds: 0, set_aside: (1, 0),
        };
        let task = task(&shape, goal, seed);
        let least = plans(&task).iter().map(|plan| plan.score.total).fold(f64::INFINITY, f64::min);
        let ground = Ground::of(&task);
        let brute = brute_force(&ground, &mut ground.start(), 0);
        prop_assert!((least - brute).abs() < 1e-6 || least < brute, "{least} found, {brute} is possible");
    }
}

/// The lowest score of all ways to place the units from `unit` on: each on every CPU, helpers on every set of CPUs.
fn brute_force(ground: &Ground<'_>, places: &mut Vec<CpuSet>, unit: usize) -> f64 {
    let Some(about) = ground.task.units.get(unit) else {
        return Score::of(ground, &starts::housekeeping(ground, places.clone())).0.total;
    };
    let old = places[unit].clone();
    let mut least = brute_force(ground, places, unit + 1);
    if about.kept || about.kind == Kind::Housekeeping {
        return least;
    }
    let allowed: Vec<u32> = ground.allowed(unit).iter().collect();
    for bits in 1..1_u32 << allowed.len() {
        if about.kind == Kind::Helpers || bits.count_ones() == 1 {
            places[unit] = (0..allowed.len()).filter(|bit| bits >> bit & 1 == 1).map(|bit| allowed[bit]).collect();
            least = least.min(brute_force(ground, places, unit + 1));
        }
    }
    places[unit] = old;
    least
}

#[test]
fn the_smallest_and_the_largest_hosts_obey_as_well() {
    const ALL: &[Goal] = &[Goal::Throughput, Goal::Latency, Goal::Density, Goal::Power];
    let large = vec![(4, 4); 12];
    for (cores, siblings, vms, goals) in
        [(1, 2, vec![(2, 1)], ALL), (2, 1, vec![(3, 4), (1, 0)], ALL), (256, 2, large, &ALL[1..3])]
    {
        let shape = Shape { cores, siblings, nodes: 4.min(cores), vms, irqs: 8, pmds: 1, set_aside: (1, 1) };
        for goal in goals {
            hold(&task(&shape, *goal, 7)).unwrap_or_else(|error| panic!("{cores} cores, {goal:?}: {error}"));
        }
    }
}

fn room(cpu: u32, core: u32, node: u32) -> Room {
    Room { cpu, core, node, package: node, ..Room::default() }
}

fn unit(kind: Kind, demand: f64, now: &str) -> Unit {
    let vm = matches!(kind, Kind::Vcpu | Kind::Helpers).then_some(0);
    let now = CpuSet::parse(now).filter(|now| !now.is_empty());
    Unit { vm, kind, threads: 1, commands: 1, demand, now, home: Some(0), kept: false, limit: None, stuck: None }
}

fn of_kind(plan: &Plan, task: &Task, kind: Kind) -> CpuSet {
    let units = task.units.iter().zip(&plan.places).filter(|(unit, _)| unit.kind == kind);
    units.fold(CpuSet::default(), |all, (_, place)| all.or(place))
}

/// Eight cores with two threads each on two nodes, four light VMs of two vCPUs, all on the first CPUs; a NIC's interrupt
/// and the kernel's work are with them.
fn light(goal: Goal) -> Task {
    let mut task = Task { goal, cpus: (0..16).map(|cpu| room(cpu, cpu % 8, cpu % 8 / 4)).collect(), ..Task::default() };
    for vm in 0..4 {
        for vcpu in 0..2 {
            let now = (vm * 2 + vcpu) % 4;
            task.units.push(Unit { vm: Some(vm), ..unit(Kind::Vcpu, 0.2, &now.to_string()) });
        }
        task.units.push(Unit { vm: Some(vm), ..unit(Kind::Helpers, 0.1, "0-3") });
    }
    task.units.push(unit(Kind::Irq, 0.05, "1"));
    task.units.push(unit(Kind::Housekeeping, 0.0, "0-15"));
    task
}

/// The plan of least score: what the goal wants most, whatever it takes to type.
fn least(task: &Task) -> Plan {
    plans(task).into_iter().min_by(|a, b| a.score.total.total_cmp(&b.score.total)).unwrap()
}

fn used(plan: &Plan, task: &Task, group: fn(&Room) -> u32) -> usize {
    let all = [Kind::Vcpu, Kind::Helpers, Kind::Irq].map(|kind| of_kind(plan, task, kind));
    let cpus = all.iter().fold(CpuSet::default(), |all, set| all.or(set));
    let groups = task.cpus.iter().filter(|room| cpus.contains(room.cpu)).map(group);
    groups.collect::<std::collections::BTreeSet<_>>().len()
}

#[test]
fn goals_differ() {
    let best = |goal| {
        let task = light(goal);
        let plan = least(&task);
        (task, plan)
    };
    let cores: fn(&Room) -> u32 = |room| room.core;
    let (task, throughput) = best(Goal::Throughput);
    let spread = used(&throughput, &task, cores);
    let (task, density) = best(Goal::Density);
    assert!(used(&density, &task, cores) < spread.min(4), "{} cores of {spread}", used(&density, &task, cores));
    assert!(density.score.shortfall < 0.1, "nobody is starved for it: {:?}", density.score);
    let (task, power) = best(Goal::Power);
    assert_eq!(used(&power, &task, |room| room.node), 1, "{:?}", power.places);
    let (task, latency) = best(Goal::Latency);
    assert_eq!((latency.score.shared, latency.score.disturbed, latency.score.interrupted), (0.0, 0.0, 0.0));
    let vcpus = of_kind(&latency, &task, Kind::Vcpu);
    assert_eq!(vcpus.len(), 8, "each has its own");
    assert!(!of_kind(&latency, &task, Kind::Housekeeping).meets(&vcpus), "the kernel's work is elsewhere");
    let kernel = of_kind(&throughput, &task, Kind::Housekeeping);
    assert_eq!(kernel.len(), 16, "and stays for throughput");
}

#[test]
fn a_free_remote_core_beats_a_contended_local_one_and_a_busy_one_does_not() {
    let vcpu = Unit { kept: true, ..unit(Kind::Vcpu, 1.0, "0") };
    let units = vec![vcpu, unit(Kind::Helpers, 0.5, "0")];
    let mut task = Task { cpus: vec![room(0, 0, 0), room(1, 1, 1)], units, ..Task::default() };
    assert_eq!(plans(&task)[0].places[1], CpuSet::one(1));
    task.cpus[1].taken = 1.0;
    let total = |place: u32| Score::of(&Ground::of(&task), &[CpuSet::one(0), CpuSet::one(place)]).0.total;
    assert!(total(1) > total(0), "the destination is busy: the move is predicted as worse");
    assert!(plans(&task)[0].places[1].contains(0));
}

#[test]
fn interrupts_leave_the_cpus_of_vcpus_and_stay_near_their_device() {
    let mut task = Task { cpus: (0..8).map(|cpu| room(cpu, cpu, cpu / 4)).collect(), ..Task::default() };
    task.units = (0..2).map(|cpu| unit(Kind::Vcpu, 0.9, &cpu.to_string())).collect();
    task.units.push(Unit { home: Some(1), ..unit(Kind::Irq, 0.3, "0") });
    task.units.push(Unit { home: Some(1), kept: true, ..unit(Kind::Irq, 0.2, "1") });
    let plan = &plans(&task)[0];
    assert_eq!(plan.commands, 1, "{:?}", plan.places);
    assert!(plan.places[2].is_within(&CpuSet::parse("4-7").unwrap()), "{:?}", plan.places);
    assert_eq!(plan.places[3], CpuSet::one(1), "it is kept");
    task.cpus.iter_mut().filter(|room| room.cpu >= 4).for_each(|room| room.isolated = true);
    let plan = &plans(&task)[0];
    assert!(plan.places[2].is_within(&CpuSet::parse("2-3").unwrap()), "isolated CPUs get none: {:?}", plan.places);
}

#[test]
fn interrupts_that_move_are_spread_over_the_cpus_that_are_free() {
    let mut task = Task { cpus: (0..6).map(|cpu| room(cpu, cpu, 0)).collect(), ..Task::default() };
    task.units = (0..2).map(|cpu| Unit { kept: true, ..unit(Kind::Vcpu, 0.9, &cpu.to_string()) }).collect();
    task.units.extend((0..8).map(|queue| unit(Kind::Irq, 0.12, if queue < 4 { "0" } else { "1" })));
    let plan = least(&task);
    for cpu in 2..6 {
        let here = plan.places[2..].iter().filter(|place| **place == CpuSet::one(cpu)).count();
        assert_eq!(here, 2, "CPU {cpu}: {:?}", plan.places);
    }
}

#[test]
fn polling_threads_get_whole_cpus_and_cost_one_command_together() {
    let mut task = Task { cpus: (0..8).map(|cpu| room(cpu, cpu, 0)).collect(), ..Task::default() };
    task.units = (0..2).map(|cpu| Unit { kept: true, ..unit(Kind::Vcpu, 0.9, &cpu.to_string()) }).collect();
    task.units.extend((0..2).map(|cpu| unit(Kind::Pmd, 1.0, &cpu.to_string())));
    let plan = &plans(&task)[0];
    assert_eq!((plan.commands, plan.score.shared), (1, 0.0), "{:?}", plan.places);
    assert_eq!(plan.exclusive, [false, false, true, true]);
    task.cpus.iter_mut().filter(|room| room.cpu > 4).for_each(|room| room.reserved = true);
    let plan = &plans(&task)[0];
    assert!(of_kind(plan, &task, Kind::Pmd).is_within(&CpuSet::parse("2-4").unwrap()), "{:?}", plan.places);
}

#[test]
fn one_command_that_brings_most_comes_before_ten_that_bring_more() {
    let mut task = Task { cpus: (0..16).map(|cpu| room(cpu, cpu, 0)).collect(), ..Task::default() };
    // Six vCPUs on four CPUs and all helpers upon them: one command frees the helpers, more part the vCPUs.
    task.units = (0..6).map(|vcpu| unit(Kind::Vcpu, 0.6, &(vcpu % 4).to_string())).collect();
    task.units.push(unit(Kind::Helpers, 3.0, "0-3"));
    let plans = plans(&task);
    assert_eq!((plans[0].idea.as_str(), plans[0].commands), ("helpers to CPUs without a pinned vCPU", 1));
    assert!(plans[1].score.total < plans[0].score.total && plans[1].commands > 1, "{:?}", plans[1]);
    let more = |plan: &Plan| plan.commands > 6 && plan.idea != NOW;
    assert!(!plans.iter().any(more), "commands that bring nothing are left out: {plans:?}");
}

#[test]
fn more_vcpus_than_cpus_are_not_pinned_one_by_one() {
    let mut task = Task { cpus: (0..8).map(|cpu| room(cpu, cpu, cpu / 4)).collect(), ..Task::default() };
    for vm in 0..6 {
        let demand = if vm % 2 == 0 { 0.7 } else { 0.1 };
        let of_vm = |_| Unit { vm: Some(vm), home: None, ..unit(Kind::Vcpu, demand, "0-1") };
        task.units.extend((0..3).map(of_vm));
    }
    let plan = least(&task);
    assert!(plan.score.shortfall < 0.5, "{:?}", plan.score);
}

#[test]
fn siblings_that_are_both_busy_share_a_core() {
    let units = vec![unit(Kind::Vcpu, 1.0, ""), unit(Kind::Vcpu, 1.0, "")];
    let task = Task { cpus: vec![room(0, 0, 0), room(1, 0, 0)], units, ..Task::default() };
    let shares = load(&task, &[CpuSet::one(0), CpuSet::one(1)]).shares;
    assert_eq!(shares, [SMT_YIELD / 2.0, SMT_YIELD / 2.0]);
    let half = [0.72, 0.72].map(|demand| unit(Kind::Vcpu, demand, ""));
    let easy = Task { units: half.to_vec(), ..task.clone() };
    assert_eq!(load(&easy, &[CpuSet::one(0), CpuSet::one(1)]).shares, [0.72, 0.72], "both get what they want");
    assert_eq!(easy.missing_at_least(), 0.0);
    assert!(task.missing_at_least() > 0.5 && task.missing_at_least() <= 2.0 - SMT_YIELD);
}

/// Two busy vCPUs behind two caches of node 0; node 1 is empty, at distance 11. Beside each vCPU so much of a CPU is free.
fn behind_two_caches(free: f64) -> Task {
    let taken = |cpu: u32| if cpu < 4 && cpu % 2 == 1 { 1.0 - free } else { 0.0 };
    let room = |cpu: u32| Room { cache: Some(cpu / 2), taken: taken(cpu), ..room(cpu, cpu, cpu / 4) };
    let units = ["0", "2"].map(|now| unit(Kind::Vcpu, 0.8, now)).to_vec();
    let distances = [((0, 1), 11), ((1, 0), 11)].into();
    Task { cpus: (0..8).map(room).collect(), units, distances, ..Task::default() }
}

#[test]
fn a_cache_is_worth_less_than_missing_cpus_and_than_another_node() {
    assert_eq!(plans(&behind_two_caches(0.5))[0].idea, NOW, "neither less CPU time nor the empty node is worth it");
    let room = behind_two_caches(1.0);
    let first = &plans(&room)[0];
    assert_eq!((first.score.apart, first.commands), (0.0, 1), "{:?}", first.places);
    assert_eq!(first.idea, "1 vCPU to cores of their own that share a last-level cache");
    let known = Task { scattered: [0].into(), ..room };
    assert_eq!(plans(&known)[0].idea, NOW, "a guest that knows of groups is spread on purpose");
}

#[test]
fn siblings_are_no_way_to_share_a_cache() {
    let room = |cpu: u32| Room { cache: Some(cpu % 4 / 2), ..room(cpu, cpu % 4, 0) };
    let units = ["0", "2"].map(|now| unit(Kind::Vcpu, 0.4, now)).to_vec();
    let mut task = Task { cpus: (0..8).map(room).collect(), units, ..Task::default() };
    task.units.push(Unit { vm: Some(1), kept: true, ..unit(Kind::Vcpu, 0.9, "1") });
    task.units.push(Unit { vm: Some(1), kept: true, ..unit(Kind::Vcpu, 0.9, "3") });
    let first = &plans(&task)[0];
    assert_eq!(first.idea, NOW, "CPUs 4 and 6 are the siblings of the vCPUs' own: {:?}", first.places);
}

#[test]
fn nothing_goes_beyond_the_limit_of_its_cgroup() {
    let limit = CpuSet::parse("0-3").unwrap();
    for goal in [Goal::Throughput, Goal::Latency, Goal::Density, Goal::Power] {
        let mut task = light(goal);
        for unit in task.units.iter_mut().filter(|unit| unit.vm.is_some_and(|vm| vm < 2)) {
            unit.limit = Some(limit.clone());
        }
        for plan in plans(&task) {
            for (unit, place) in task.units.iter().zip(&plan.places).filter(|(unit, _)| unit.limit.is_some()) {
                assert!(
                    place.is_within(&limit),
                    "{goal:?}: {:?} of VM {:?} on {place} ({})",
                    unit.kind,
                    unit.vm,
                    plan.idea
                );
            }
        }
        let free = task
            .units
            .iter()
            .zip(&plans(&task)[0].places)
            .any(|(unit, place)| unit.vm == Some(3) && !place.is_within(&limit));
        assert!(free || matches!(goal, Goal::Density | Goal::Power), "the others may go anywhere");
    }
}
