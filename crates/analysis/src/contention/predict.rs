//! What share of a CPU would each thread get after a move?
//!
//! In: what threads ran and waited, and where. Out: a modelled share for each before and after the move, so that model is
//! held against model.
//! ```text
//! threads that want most choose first: the least wanted CPU of those they may use
//! on each CPU: who wants less than an equal part gets what it wants, the rest is shared equally   (max-min fairness)
//! ```
//! Equal parts are what the fair scheduler gives threads of equal weight (Documentation/scheduler/sched-design-CFS.rst,
//! sched-eevdf.rst). What a thread wants is at least what it ran and waited; interrupts, SMT siblings and NUMA distance are
//! not part of the model, so it gives a direction, and shares, never a throughput.

use base::CpuSet;
use host::sched::Load;

/// Sums of shortfall closer than this are the same: two hundredths of a CPU.
const SAME: f64 = 0.02;
/// How much more a moved thread's lack counts.
const MOVED_WEIGHT: f64 = 2.0;

/// Ways of placing threads that are tried one by one: some tens of milliseconds.
const MOST_WAYS: usize = 1_024;

/// A thread, and the CPUs it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The thread's id.
    pub tid: u32,
    /// The CPUs.
    pub cpus: CpuSet,
}

/// Where a move leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Threads would get more of what they want.
    Better,
    /// They would get less.
    Worse,
    /// About the same.
    Same,
}

/// What a move would change, by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Shares that all threads want and do not get, in CPUs, as things are; moved threads count twice.
    pub shortfall_now: f64,
    /// The same after the move.
    pub shortfall_after: f64,
    /// For each moved thread: its id, its share now and after the move.
    pub shares: Vec<(u32, f64, f64)>,
}

impl Prediction {
    /// Better, worse or the same.
    pub fn direction(&self) -> Direction {
        match self.shortfall_after - self.shortfall_now {
            change if change > SAME => Direction::Worse,
            change if change < -SAME => Direction::Better,
            _ => Direction::Same,
        }
    }
}

/// What `moves` would change; a thread that is not among `loads` changes nothing.
pub fn predict(loads: &[Load], moves: &[Move]) -> Prediction {
    let wanted: Vec<&Load> = loads.iter().filter(|load| load.demand() > 0.0).collect();
    let now = shares(&wanted, &[]);
    let after = shares(&wanted, moves);
    let is_moved = |load: &Load| moves.iter().any(|one| one.tid == load.id.tid);
    let weight = |load: &Load| if is_moved(load) { MOVED_WEIGHT } else { 1.0 };
    let shortfall = |shares: &[f64]| -> f64 {
        wanted.iter().zip(shares).map(|(load, share)| weight(load) * (load.demand() - share)).sum()
    };
    let moved = wanted.iter().zip(now.iter().zip(&after));
    Prediction {
        shortfall_now: shortfall(&now),
        shortfall_after: shortfall(&after),
        shares: moved
            .filter(|(load, _)| is_moved(load))
            .map(|(load, (now, after))| (load.id.tid, *now, *after))
            .collect(),
    }
}

/// The moves of `tids` to single CPUs of `online` that the model prefers, if they are better than staying; threads that stay
/// are not among them. All ways are tried where there are few, else one CPU for all.
pub fn best_moves(loads: &[Load], tids: &[u32], online: &CpuSet) -> Option<(Vec<Move>, Prediction)> {
    let cpus: Vec<u32> = online.iter().collect();
    let ways = u32::try_from(tids.len()).ok().and_then(|threads| cpus.len().checked_pow(threads));
    let exact = ways.filter(|ways| *ways <= MOST_WAYS);
    let to = |way: usize| -> Vec<Move> {
        let cpu = |index: usize| match exact {
            Some(_) => cpus[way / cpus.len().pow(index as u32) % cpus.len()],
            None => cpus[way],
        };
        let moved = tids.iter().enumerate();
        moved.map(|(index, tid)| Move { tid: *tid, cpus: CpuSet::one(cpu(index)) }).collect()
    };
    let tried = (0..exact.unwrap_or(cpus.len())).map(|way| (to(way), predict(loads, &to(way))));
    let (mut moves, prediction) = tried.min_by(|(_, a), (_, b)| a.shortfall_after.total_cmp(&b.shortfall_after))?;
    let stays = |one: &Move| loads.iter().any(|load| load.id.tid == one.tid && load.allowed == one.cpus);
    moves.retain(|one| !stays(one));
    (prediction.direction() == Direction::Better).then_some((moves, prediction))
}

/// The share each thread gets, in the order of `loads`.
fn shares(loads: &[&Load], moves: &[Move]) -> Vec<f64> {
    let cpus_of =
        |load: &Load| moves.iter().find(|one| one.tid == load.id.tid).map_or(&load.allowed, |one| &one.cpus).clone();
    // Threads that may use one CPU have no choice, and are placed first; then those that want most.
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by(|a, b| {
        let free = |index: &usize| cpus_of(loads[*index]).len() > 1;
        free(a).cmp(&free(b)).then(loads[*b].demand().total_cmp(&loads[*a].demand()))
    });
    let mut on: std::collections::BTreeMap<u32, Vec<usize>> = std::collections::BTreeMap::new();
    for index in order {
        let wanted = |cpu: u32| -> f64 { on.get(&cpu).into_iter().flatten().map(|other| loads[*other].demand()).sum() };
        let cpus = cpus_of(loads[index]);
        let least = cpus.iter().min_by(|a, b| wanted(*a).total_cmp(&wanted(*b))).unwrap_or(loads[index].cpu);
        on.entry(least).or_default().push(index);
    }
    let mut shares = vec![0.0; loads.len()];
    for mut threads in on.into_values() {
        threads.sort_by(|a, b| loads[*a].demand().total_cmp(&loads[*b].demand()));
        let (mut left, mut waiting) = (1.0_f64, threads.len());
        for index in threads {
            let share = loads[index].demand().min(left / waiting as f64);
            shares[index] = share;
            left -= share;
            waiting -= 1;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    fn to(tid: u32, cpu: u32) -> Vec<Move> {
        vec![Move { tid, cpus: CpuSet::from_iter([cpu]) }]
    }

    #[test]
    fn a_move_to_an_idle_cpu_is_better_and_one_onto_a_busy_cpu_is_worse() {
        let loads = [load(1, "spin", 0, 0.5, 0.5), load(2, "vhost", 0, 0.5, 0.4), load(3, "busy", 1, 1.0, 0.0)];
        let idle = predict(&loads, &to(2, 2));
        assert_eq!((idle.direction(), idle.shares.clone()), (Direction::Better, vec![(2, 0.5, 0.9)]));
        let apart = [load(1, "spin", 0, 0.9, 0.0), load(2, "vhost", 2, 0.9, 0.0)];
        let busy = predict(&apart, &to(2, 0));
        assert_eq!(busy.direction(), Direction::Worse);
        assert!((busy.shares[0].2 - 0.5).abs() < 1e-9, "{busy:?}");
        assert_eq!(predict(&loads, &to(99, 0)).direction(), Direction::Same);
    }

    #[test]
    fn where_every_cpu_is_full_the_less_crowded_one_is_better() {
        let spin = |tid, cpu| load(tid, "spin", cpu, 0.5, 0.5);
        let loads = [spin(1, 0), spin(3, 0), spin(4, 0), spin(5, 1), load(2, "vhost", 0, 0.2, 0.8)];
        assert_eq!(predict(&loads, &to(2, 1)).direction(), Direction::Better);
        let back = [spin(1, 0), spin(3, 0), spin(4, 0), spin(5, 1), load(2, "vhost", 1, 0.5, 0.5)];
        assert_eq!(predict(&back, &to(2, 0)).direction(), Direction::Worse);
    }

    #[test]
    fn the_best_cpu_is_the_one_nobody_wants_and_there_may_be_none() {
        let loads = [load(1, "spin", 0, 0.5, 0.5), load(2, "vhost", 0, 0.5, 0.4), load(3, "half", 1, 0.5, 0.0)];
        let best = |tids: &[u32], online: &str| {
            best_moves(&loads, tids, &CpuSet::parse(online).unwrap()).map(|(moves, _)| moves)
        };
        assert_eq!(best(&[2], "0-2"), Some(to(2, 2)));
        assert_eq!(best(&[2], "0-1"), Some(to(2, 1)));
        assert_eq!(best(&[2], "0"), None);
    }

    #[test]
    fn of_two_threads_one_may_better_stay() {
        let loads = [load(1, "spin", 0, 0.4, 0.6), load(2, "a", 0, 0.4, 0.5), load(3, "b", 0, 0.2, 0.7)];
        let (moves, prediction) = best_moves(&loads, &[2, 3], &CpuSet::parse("0-2").unwrap()).unwrap();
        assert_eq!(moves.len(), 2, "each has a CPU for itself: {moves:?}");
        assert!(prediction.shortfall_after < 1e-9);
        let busy = [loads.to_vec(), vec![load(4, "spin", 1, 0.6, 0.4), load(5, "spin", 1, 0.4, 0.6)]].concat();
        let (moves, _) = best_moves(&busy, &[2, 3], &CpuSet::parse("0-2").unwrap()).unwrap();
        assert!(moves.iter().all(|one| !one.cpus.contains(1)), "the full CPU is left alone: {moves:?}");
    }

    #[test]
    fn a_thread_that_may_use_several_cpus_goes_where_there_is_room() {
        let mut free = load(2, "free", 0, 0.5, 0.3);
        free.allowed = CpuSet::parse("0-1").unwrap();
        let both = [load(1, "spin", 0, 1.0, 0.0), free];
        assert!(predict(&both, &[]).shortfall_now < 1e-9);
    }
}
