//! What would each thread get after a move?
//!
//! In: what threads want, and where ([`Contender`]), and which of them move. Out: a modelled share for each before and after
//! the move, so that model is held against model: a direction and shares, never a throughput.

use super::{Claim, Cpus, Interrupts, Lack, POLLING_WEIGHT, demand};
use base::CpuSet;
use host::machine::{CpuUse, Role, role_of};
use host::sched::Load;
use std::collections::BTreeMap;

/// Sums of what is lacked that are closer than this are the same: five hundredths of a CPU, which threads that hardly run want
/// in one look and not in the next, or a hundredth of the sum. Our own limits.
const SAME: f64 = 0.05;
const SAME_PART: f64 = 0.01;

/// Ways of placing threads that are tried one by one: some tens of milliseconds.
const MOST_WAYS: usize = 1_024;

/// A thread that wants a CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    /// The thread's id.
    pub tid: u32,
    /// The share of a CPU that it wants.
    pub demand: f64,
    /// How much its lack counts.
    pub weight: f64,
    /// The CPUs that it may use.
    pub cpus: CpuSet,
}

impl Contender {
    pub fn new(tid: u32, role: Option<Role>, demand: f64, cpus: CpuSet) -> Self {
        let weight = if role == Some(Role::Pmd) { POLLING_WEIGHT } else { 1.0 };
        Self { tid, demand, weight, cpus }
    }
}

impl From<&Load> for Contender {
    fn from(load: &Load) -> Self {
        let role = role_of(&load.name).map(|(role, _)| role);
        Self::new(load.id.tid, role, demand(load.run, load.wait), load.allowed.clone())
    }
}

/// A thread, and the CPUs it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The thread's id.
    pub tid: u32,
    pub cpus: CpuSet,
}

/// Where a change leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Threads would get more of what they want.
    Better,
    /// They would get less.
    Worse,
    Same,
}

/// What moves of threads would change, by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// CPUs that all threads want and do not get, as things are and after the moves.
    pub short: [f64; 2],
    /// The same with the weights of threads, and more for those that get little of what they want.
    pub weighted: [f64; 2],
    /// For each moved thread: its id, its share now and after the move.
    pub shares: Vec<(u32, f64, f64)>,
}

impl Prediction {
    /// Better, worse or the same.
    pub fn direction(&self) -> Direction {
        let [now, after] = self.weighted;
        let same = SAME.max(SAME_PART * now);
        match after - now {
            change if change > same => Direction::Worse,
            change if change < -same => Direction::Better,
            _ => Direction::Same,
        }
    }
}

/// What a change of a machine leads to, as far as there is a model: threads that move, interrupts that move.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expected {
    /// Of threads; `None`: none moves.
    pub threads: Option<Prediction>,
    pub interrupts: Vec<Interrupts>,
}

impl Expected {
    /// What follows if these threads move, and interrupts, given as the CPUs that they leave and those that they may use then.
    pub fn of(
        cpus: &Cpus,
        threads: &[Contender],
        usage: &BTreeMap<u32, CpuUse>,
        moves: &[Move],
        interrupts: &[(CpuSet, CpuSet)],
    ) -> Self {
        let moved = interrupts.iter().filter_map(|(from, to)| Interrupts::moved(usage, from, to));
        let threads = (!moves.is_empty()).then(|| predict(cpus, threads, moves));
        Self { threads, interrupts: moved.collect() }
    }

    /// Worse if any part of it is; this is what `apply` refuses, and what `check` therefore does not propose.
    pub fn direction(&self) -> Direction {
        let threads = self.threads.iter().map(Prediction::direction);
        let all: Vec<Direction> = threads.chain(self.interrupts.iter().map(Interrupts::direction)).collect();
        let any = |direction| all.contains(&direction);
        match (any(Direction::Worse), any(Direction::Better)) {
            (true, _) => Direction::Worse,
            (false, true) => Direction::Better,
            (false, false) => Direction::Same,
        }
    }
}

/// What `moves` would change; the move of a thread that is not among `threads` changes nothing.
pub fn predict(cpus: &Cpus, threads: &[Contender], moves: &[Move]) -> Prediction {
    let now = Shared::of(cpus, threads, &[]);
    let after = Shared::of(cpus, threads, moves);
    now.against(&after, threads, moves)
}

/// The moves of `tids` to single CPUs of `online` that the model prefers, if they are better than staying; threads that stay
/// are not among them. All ways are tried where there are few, else one CPU for all.
pub fn best_moves(
    cpus: &Cpus,
    threads: &[Contender],
    tids: &[u32],
    online: &CpuSet,
) -> Option<(Vec<Move>, Prediction)> {
    let targets: Vec<u32> = online.iter().collect();
    let ways = u32::try_from(tids.len()).ok().and_then(|threads| targets.len().checked_pow(threads));
    let exact = ways.filter(|ways| *ways <= MOST_WAYS);
    let to = |way: usize| -> Vec<Move> {
        let cpu = |index: usize| match exact {
            Some(_) => targets[way / targets.len().pow(index as u32) % targets.len()],
            None => targets[way],
        };
        let moved = tids.iter().enumerate();
        moved.map(|(index, tid)| Move { tid: *tid, cpus: CpuSet::one(cpu(index)) }).collect()
    };
    let tried = (0..exact.unwrap_or(targets.len())).map(|way| (way, Shared::of(cpus, threads, &to(way))));
    let (way, after) = tried.min_by(|(_, a), (_, b)| a.weighted.total_cmp(&b.weighted))?;
    let mut moves = to(way);
    let prediction = Shared::of(cpus, threads, &[]).against(&after, threads, &moves);
    let stays = |one: &Move| threads.iter().any(|thread| thread.tid == one.tid && thread.cpus == one.cpus);
    moves.retain(|one| !stays(one));
    (prediction.direction() == Direction::Better).then_some((moves, prediction))
}

/// CPUs divided among threads.
struct Shared {
    shares: Vec<f64>,
    short: f64,
    weighted: f64,
}

impl Shared {
    fn of(cpus: &Cpus, threads: &[Contender], moves: &[Move]) -> Self {
        // Threads that may use the same CPUs fill them in the order of their ids, whoever lists them.
        let mut order: Vec<usize> = (0..threads.len()).collect();
        order.sort_unstable_by_key(|at| threads[*at].tid);
        let claims = order.iter().map(|at| {
            let thread = &threads[*at];
            let moved = moves.iter().find(|one| one.tid == thread.tid);
            Claim { demand: thread.demand, cpus: moved.map_or(&thread.cpus, |one| &one.cpus), interrupt: false }
        });
        let mut shares = vec![0.0; threads.len()];
        cpus.divide(claims, |claim, _, share| shares[order[claim]] += share);
        let (mut short, mut weighted) = (0.0, 0.0);
        for (thread, share) in threads.iter().zip(&shares) {
            let lack = Lack::of(thread.demand, *share);
            short += lack.cpus;
            weighted += thread.weight * (lack.cpus + lack.starved);
        }
        Self { shares, short, weighted }
    }

    fn against(&self, after: &Self, threads: &[Contender], moves: &[Move]) -> Prediction {
        let both = threads.iter().zip(self.shares.iter().zip(&after.shares));
        let moved = both.filter(|(thread, _)| moves.iter().any(|one| one.tid == thread.tid));
        Prediction {
            short: [self.short, after.short],
            weighted: [self.weighted, after.weighted],
            shares: moved.map(|(thread, (now, after))| (thread.tid, *now, *after)).collect(),
        }
    }
}
