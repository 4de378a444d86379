//! Hosts made by chance, and what must hold on all of them.

use super::*;
use proptest::prelude::*;

/// A host of `cores` cores on `nodes` nodes with `siblings` threads each, and VMs upon it.
fn task(cores: u32, siblings: u32, nodes: u32, vms: &[(u32, u32)], goal: Goal, seed: u64) -> Task {
    let mut state = seed | 1;
    let mut chance = |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % below.max(1)
    };
    let mut task = Task { goal, ..Task::default() };
    // Siblings stand half of all CPUs apart, and every third CPU number is missing: it is off.
    for sibling in 0..siblings {
        for core in 0..cores {
            let (cpu, node) = ((sibling * cores + core) * 3 / 2, core % nodes);
            task.cpus.push(Room { cpu, core, node, taken: f64::from(chance(30)) / 100.0 });
        }
    }
    let all = task.all();
    let list: Vec<u32> = all.iter().collect();
    let some = |first: u32, count: u32| -> CpuSet {
        list.iter().copied().cycle().skip(first as usize).take(count as usize).collect()
    };
    for (vm, (vcpus, workers)) in vms.iter().enumerate() {
        for _ in 0..*vcpus {
            let now = match chance(3) {
                0 => None,
                1 => Some(all.clone()),
                _ => Some(some(chance(all.len() as u32), 1)),
            };
            let demand = f64::from(chance(101)) / 100.0;
            task.units.push(Unit {
                vm,
                single: true,
                threads: 1,
                demand,
                now,
                home: Some(chance(nodes)),
                kept: chance(10) == 0,
            });
        }
        let now = Some(some(chance(all.len() as u32), 1 + chance(8)));
        let demand = f64::from(*workers) * f64::from(chance(60)) / 100.0;
        task.units.push(Unit {
            vm,
            single: false,
            threads: workers + 1,
            demand,
            now,
            home: Some(chance(nodes)),
            kept: false,
        });
    }
    task
}

fn goals() -> impl Strategy<Value = Goal> {
    prop_oneof![Just(Goal::Throughput), Just(Goal::Latency), Just(Goal::Density), Just(Goal::Power)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_stay_on_the_host_and_do_not_harm(
        cores in 1_u32..17, siblings in 1_u32..3, nodes in 1_u32..5, goal in goals(), seed: u64,
        vms in prop::collection::vec((1_u32..9, 0_u32..9), 1..6),
    ) {
        let task = task(cores, siblings, nodes, &vms, goal, seed);
        let (first, again) = (plans(&task), plans(&task));
        prop_assert_eq!(&first, &again, "twice the same");
        let now = first.iter().find(|plan| plan.idea == "as it is now").unwrap();
        prop_assert!(first[0].score.total <= now.score.total + 1e-9);
        for plan in &first {
            for (index, place) in plan.places.iter().enumerate() {
                prop_assert!(!place.is_empty() && place.is_within(&task.all()), "{place} of {}", task.all());
                prop_assert!(plan.shares[index] <= task.units[index].demand + 1e-9, "nobody gets more than he asks");
                let other_meets = |other: usize| other != index && plan.places[other].meets(place);
                prop_assert!(!plan.exclusive[index] || !(0..plan.places.len()).any(other_meets), "exclusive means alone");
                if task.units[index].kept && let Some(now) = &task.units[index].now {
                    prop_assert_eq!(place, now, "what is kept stays");
                }
            }
        }
    }
}

#[test]
fn large_hosts_obey_as_well() {
    for (cores, siblings) in [(1, 2), (128, 2), (256, 2)] {
        let vms = vec![(4, 4); if cores > 1 { 100 } else { 1 }];
        let task = task(cores, siblings, 4.min(cores), &vms, Goal::Throughput, 7);
        let plans = plans(&task);
        let now = plans.iter().find(|plan| plan.idea == "as it is now").unwrap();
        assert!(plans[0].score.total <= now.score.total);
        assert!(plans.iter().flat_map(|plan| &plan.places).all(|place| place.is_within(&task.all())));
    }
}

#[test]
fn latency_gives_each_vcpu_a_cpu_of_its_own_where_there_are_enough() {
    let room = |cpu| Room { cpu, core: cpu, node: 0, taken: 0.0 };
    let unit = |single| Unit {
        vm: 0,
        single,
        threads: 1,
        demand: 0.3,
        now: Some((0..2).collect()),
        home: Some(0),
        kept: false,
    };
    let task = Task {
        cpus: (0..6).map(room).collect(),
        units: vec![unit(true), unit(true), unit(true), unit(false)],
        goal: Goal::Latency,
        ..Task::default()
    };
    let best = &plans(&task)[0];
    assert_eq!(best.score.shared, 0.0);
    assert_eq!(best.exclusive, [true, true, true, false]);
}

#[test]
fn a_free_remote_core_beats_a_contended_local_one_and_a_busy_one_does_not() {
    let room = |cpu, node, taken| Room { cpu, core: cpu, node, taken };
    let now = Some(CpuSet::one(0));
    let vcpu = Unit { vm: 0, single: true, threads: 1, demand: 1.0, now: now.clone(), home: Some(0), kept: true };
    let helper = Unit { vm: 0, single: false, threads: 1, demand: 0.5, now, home: Some(0), kept: false };
    let mut task = Task { cpus: vec![room(0, 0, 0.0), room(1, 1, 0.0)], units: vec![vcpu, helper], ..Task::default() };
    assert_eq!(plans(&task)[0].places[1], CpuSet::one(1));
    task.cpus[1].taken = 1.0;
    assert_eq!(plans(&task)[0].places[1], CpuSet::one(0), "the destination is busy: the move is predicted as worse");
}

#[test]
fn small_hosts_get_the_best_of_all_placements() {
    let task = task(4, 1, 2, &[(3, 2)], Goal::Throughput, 11);
    let best = &plans(&task)[0];
    let cpus: Vec<CpuSet> = task.all().iter().map(CpuSet::one).collect();
    for way in 0..cpus.len().pow(3) {
        let mut places = best.places.clone();
        for (unit, place) in places.iter_mut().enumerate().take(3) {
            if !task.units[unit].kept {
                *place = cpus[way / cpus.len().pow(unit as u32) % cpus.len()].clone();
            }
        }
        assert!(best.score.total <= Score::of(&task, &places).0.total + 1e-9, "{places:?}");
    }
}

#[test]
fn siblings_that_are_both_busy_share_a_core() {
    let room = |cpu, core| Room { cpu, core, node: 0, taken: 0.0 };
    let unit = || Unit { vm: 0, single: true, threads: 1, demand: 1.0, now: None, home: None, kept: false };
    let task = Task { cpus: vec![room(0, 0), room(1, 0)], units: vec![unit(), unit()], ..Task::default() };
    let shares = load(&task, &[CpuSet::one(0), CpuSet::one(1)]).shares;
    assert_eq!(shares, [SMT_YIELD / 2.0, SMT_YIELD / 2.0]);
}
