//! What must hold of the model whatever is asked, and what it says of moves that a person can judge.

use super::*;
use proptest::prelude::*;

fn set(list: &str) -> CpuSet {
    CpuSet::parse(list).unwrap()
}

/// CPUs from 0 that share no core.
fn apart(count: u32) -> Cpus {
    Cpus::new((0..count).map(|cpu| (cpu, cpu, 0.0)))
}

fn thread(tid: u32, demand: f64, cpus: &str) -> Contender {
    Contender::new(tid, None, demand, set(cpus))
}

fn to(tid: u32, cpus: &str) -> Vec<Move> {
    vec![Move { tid, cpus: set(cpus) }]
}

/// One claim by chance: its demand in hundredths, the CPUs, whether it is an interrupt.
type Asked = (u32, Vec<u32>, bool);

/// CPUs with cores of one or two and what is taken in hundredths, and claims.
fn hosts(most_cpus: usize) -> impl Strategy<Value = (Vec<u32>, bool, Vec<Asked>)> {
    (1..6_u32, any::<bool>()).prop_flat_map(move |(count, siblings)| {
        let claim = (0_u32..130, prop::collection::vec(0..count, 1..=most_cpus), prop::bool::weighted(0.15));
        (prop::collection::vec(0_u32..60, count as usize), Just(siblings), prop::collection::vec(claim, 0..12))
    })
}

/// What each claim gets on each CPU, and of each CPU what interrupts got.
fn divided(taken: &[u32], siblings: bool, asked: &[Asked]) -> (Cpus, Vec<Vec<f64>>) {
    let core = |cpu: u32| if siblings { cpu / 2 } else { cpu };
    let cpus =
        Cpus::new(taken.iter().enumerate().map(|(cpu, part)| (cpu as u32, core(cpu as u32), f64::from(*part) / 100.0)));
    let sets: Vec<CpuSet> = asked.iter().map(|(_, cpus, _)| cpus.iter().copied().collect()).collect();
    let claims = asked.iter().zip(&sets).map(|((demand, _, interrupt), cpus)| Claim {
        demand: f64::from(*demand) / 100.0,
        cpus,
        interrupt: *interrupt,
    });
    let mut got = vec![vec![0.0; taken.len()]; asked.len()];
    cpus.divide(claims, |claim, cpu, share| got[claim][cpu] += share);
    (cpus, got)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_gets_more_than_asked_and_no_cpu_or_core_gives_more_than_it_has((taken, siblings, asked) in hosts(5)) {
        let (cpus, got) = divided(&taken, siblings, &asked);
        for ((demand, _, _), got) in asked.iter().zip(&got) {
            prop_assert!(got.iter().sum::<f64>() <= f64::from(*demand) / 100.0 + 1e-9);
            prop_assert!(got.iter().all(|share| *share >= 0.0));
        }
        let given = |cpu: usize| got.iter().map(|got| got[cpu]).sum::<f64>();
        for cpu in 0..taken.len() {
            prop_assert!(given(cpu) <= 1.0 - cpus.taken[cpu] + 1e-9, "CPU {cpu} gives {}", given(cpu));
        }
        // Of two siblings that are both asked for all, each has SMT_YIELD / 2.
        let full = |cpu: usize| given(cpu) + cpus.taken[cpu] > 1.0 - 1e-9;
        for cpu in (0..taken.len().saturating_sub(1)).filter(|cpu| siblings && cpu % 2 == 0) {
            let interrupts = asked.iter().any(|(_, _, interrupt)| *interrupt);
            prop_assert!(interrupts || !(full(cpu) && full(cpu + 1)), "two siblings do not work as two cores");
        }
    }

    #[test]
    fn who_gets_less_than_asked_gets_no_less_than_any_other_on_its_cpu((taken, siblings, asked) in hosts(1)) {
        let (_, got) = divided(&taken, siblings, &asked);
        let asked = &asked;
        let threads = |cpu: u32| (0..asked.len()).filter(move |at| !asked[*at].2 && asked[*at].1 == [cpu]);
        for cpu in 0..taken.len() as u32 {
            let share = |at: usize| got[at][cpu as usize];
            for short in threads(cpu).filter(|at| share(*at) < f64::from(asked[*at].0) / 100.0 - 1e-9) {
                prop_assert!(threads(cpu).all(|other| share(other) <= share(short) + 1e-9), "max-min fair");
            }
        }
    }

    #[test]
    fn asking_for_more_gives_no_less_to_the_asker_and_no_more_to_others(
        (taken, siblings, asked) in hosts(1), at: prop::sample::Index, more in 1_u32..50
    ) {
        prop_assume!(!asked.is_empty());
        let at = at.index(asked.len());
        let mut greedy = asked.clone();
        greedy[at].0 += more;
        let sum = |got: &[f64]| got.iter().sum::<f64>();
        let (before, after) = (divided(&taken, siblings, &asked).1, divided(&taken, siblings, &greedy).1);
        for claim in 0..asked.len() {
            let (before, after) = (sum(&before[claim]), sum(&after[claim]));
            // Interrupts take their turn in order, so what one adds another may lack, and never the other way.
            let fair = if claim == at { after >= before - 1e-9 } else { after <= before + 1e-9 };
            prop_assert!(fair, "claim {claim} got {before}, now {after}");
        }
    }
}

#[test]
fn a_move_to_an_idle_cpu_is_better_and_one_onto_a_busy_cpu_is_worse() {
    let cpus = apart(3);
    let threads = [thread(1, 1.0, "0"), thread(2, 0.9, "0"), thread(3, 1.0, "1")];
    let idle = predict(&cpus, &threads, &to(2, "2"));
    assert_eq!((idle.direction(), idle.shares.clone()), (Direction::Better, vec![(2, 0.5, 0.9)]));
    assert!((idle.short[0] - 0.9).abs() < 1e-9 && idle.short[1].abs() < 1e-9, "{idle:?}");
    let busy = predict(&cpus, &[thread(1, 0.9, "0"), thread(2, 0.9, "2")], &to(2, "0"));
    assert_eq!(busy.direction(), Direction::Worse);
    assert!((busy.shares[0].2 - 0.5).abs() < 1e-9, "{busy:?}");
    assert_eq!(predict(&cpus, &threads, &to(99, "0")).direction(), Direction::Same);
}

#[test]
fn a_sibling_that_is_busy_and_interrupts_make_a_cpu_worth_less() {
    let threads = [thread(1, 1.0, "0"), thread(2, 0.9, "0"), thread(3, 1.0, "2")];
    let direction = |cpus: Cpus, cpu: &str| predict(&cpus, &threads, &to(2, cpu)).direction();
    // CPUs 2 and 3 are one core.
    let cores = || Cpus::new([(0, 0, 0.0), (1, 1, 0.0), (2, 2, 0.0), (3, 2, 0.0)]);
    assert_eq!((direction(cores(), "1"), direction(cores(), "3")), (Direction::Better, Direction::Better));
    let gets = |cpu: &str| predict(&cores(), &threads, &to(2, cpu)).shares[0].2;
    assert!(gets("1") > gets("3"), "a core of its own is better than a busy sibling");
    let interrupted = Cpus::new([(0, 0, 0.0), (1, 1, 0.95), (2, 2, 0.0)]);
    assert_eq!(direction(interrupted, "1"), Direction::Worse, "interrupts run first");
    let full = Cpus::new([(0, 0, 0.0), (1, 1, 1.0)]);
    let idle = [thread(1, 0.012, "0"), thread(2, 0.004, "0")];
    assert_eq!(predict(&full, &idle, &to(1, "1")).direction(), Direction::Same, "it hardly runs anywhere");
}

#[test]
fn where_every_cpu_is_full_the_less_crowded_one_is_better() {
    let spin = |tid, cpu| thread(tid, 1.0, cpu);
    let on = |cpu| [spin(1, "0"), spin(3, "0"), spin(4, "0"), spin(5, "1"), thread(2, 1.0, cpu)];
    let away = predict(&apart(2), &on("0"), &to(2, "1"));
    assert_eq!((away.direction(), away.short), (Direction::Better, [3.0, 3.0]), "as much is lacked, by more of them");
    assert_eq!(predict(&apart(2), &on("1"), &to(2, "0")).direction(), Direction::Worse);
}

#[test]
fn a_polling_thread_counts_more() {
    let threads = [thread(1, 1.0, "0"), Contender::new(2, Some(host::machine::Role::Pmd), 1.0, set("0"))];
    let alone = |tid| predict(&apart(2), &threads, &to(tid, "1")).weighted;
    assert_eq!(alone(1)[0], 0.75 + POLLING_WEIGHT * 0.75);
}

#[test]
fn the_best_cpu_is_the_one_nobody_wants_and_there_may_be_none() {
    let threads = [thread(1, 1.0, "0"), thread(2, 0.9, "0"), thread(3, 0.5, "1")];
    let best = |tids: &[u32], online: &str| best_moves(&apart(3), &threads, tids, &set(online)).map(|(moves, _)| moves);
    assert_eq!(best(&[2], "0-2"), Some(to(2, "2")));
    assert_eq!(best(&[2], "0-1"), Some(to(2, "1")));
    assert_eq!(best(&[2], "0"), None);
}

#[test]
fn of_two_threads_one_may_better_stay() {
    let threads = [thread(1, 1.0, "0"), thread(2, 0.9, "0"), thread(3, 0.9, "0")];
    let (moves, prediction) = best_moves(&apart(3), &threads, &[2, 3], &set("0-2")).unwrap();
    assert_eq!(moves.len(), 2, "each has a CPU for itself: {moves:?}");
    assert!(prediction.weighted[1] < 1e-9);
    let busy = [threads.to_vec(), vec![thread(4, 1.0, "1"), thread(5, 1.0, "1")]].concat();
    let (moves, _) = best_moves(&apart(3), &busy, &[2, 3], &set("0-2")).unwrap();
    assert!(moves.iter().all(|one| !one.cpus.contains(1)), "the full CPU is left alone: {moves:?}");
}

#[test]
fn a_thread_that_may_use_several_cpus_goes_where_there_is_room() {
    let both = [thread(1, 1.0, "0"), thread(2, 0.8, "0-1")];
    assert!(predict(&apart(2), &both, &[]).short[0] < 1e-9);
}

#[test]
fn a_thread_that_wandered_is_not_counted_as_others_too() {
    let used = |busy| CpuUse { busy, idle: 1.0 - busy, ..CpuUse::default() };
    let usage = BTreeMap::from([(0, used(0.5)), (1, used(0.5))]);
    assert_eq!(taken(&usage, [(1, 1.0)].into_iter()), BTreeMap::from([(0, 0.0), (1, 0.0)]), "it ran on both");
    let beside = taken(&usage, [(1, 0.5)].into_iter());
    assert_eq!(beside, BTreeMap::from([(0, 0.5), (1, 0.0)]), "somebody else ran on CPU 0");
    let interrupts = BTreeMap::from([(0, CpuUse { irq: 0.1, softirq: 0.2, steal: 0.1, ..used(0.3) })]);
    assert!((taken(&interrupts, [(0, 0.3)].into_iter())[&0] - 0.4).abs() < 1e-9);
}

#[test]
fn a_wait_of_a_moment_is_no_wish() {
    assert_eq!((demand(0.5, 0.02), demand(0.5, 0.1), demand(0.7, 0.6)), (0.5, 0.6, 1.0));
}
