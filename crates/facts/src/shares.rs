//! Who gets how much CPU? One model for all who ask: the solver of placements, what `check` proposes, what `apply` expects of
//! a change, and `lab netns`.
//!
//! In: CPUs with their cores and what of each is taken; claims, each for so much time on some of them. Out: what each claim
//! gets on each CPU.
//! ```text
//! interrupts    run first, an equal part on each CPU that they may use
//! threads       those with the fewest CPUs first; each fills the emptiest of its CPUs, as the scheduler's balancing does
//! on each CPU   max-min fairness: who wants less than an equal part gets what it wants, the rest is shared equally
//! core          a busy sibling takes 1 - SMT_YIELD / 2 of a CPU
//! ```
//! Equal parts are what CFS and EEVDF give to equal weights (Documentation/scheduler/sched-design-CFS.rst, sched-eevdf.rst,
//! Linux 6.12). Distance to memory takes no CPU time: it makes the time worth less, which is for the solver to price.

mod interrupts;
mod most;
mod predict;
#[cfg(test)]
mod tests;

pub use interrupts::Interrupts;
pub use most::missing_at_best;
pub use predict::{Contender, Direction, Expected, Move, Prediction, best_moves, predict};

use base::CpuSet;
use base::cpus::MOST_CPUS;
use host::machine::{CpuUse, Topology};
use std::collections::BTreeMap;

/// What two busy threads of one core do together, as one core's work: recalled from common practice, not measured here.
pub const SMT_YIELD: f64 = 1.25;

/// A polling thread that lacks CPU time holds up every VM behind it, so its lack counts this much more: our own weight.
pub const POLLING_WEIGHT: f64 = 2.0;

/// A thread that waited less than this part of its wish was woken a little late, and wants no more than it ran: our own limit.
const LATE: f64 = 0.05;

/// No CPU has this number.
const NOWHERE: u32 = u32::MAX;

/// CPUs by their position, with what is looked up in them again and again.
#[derive(Debug, Clone, Default)]
pub struct Cpus {
    /// Position of each CPU, by its number.
    position: Vec<u32>,
    /// Core of each CPU, numbered from 0.
    pub core: Vec<usize>,
    pub cores: usize,
    /// What of each CPU is gone before any claim.
    pub taken: Vec<f64>,
}

/// So much CPU time is wanted on any of these CPUs.
pub struct Claim<'a> {
    pub demand: f64,
    /// Where it may run.
    pub cpus: &'a CpuSet,
    /// True if it runs before all threads.
    pub interrupt: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Lack {
    pub cpus: f64,
    /// The same times the part of its wish that it lacks: where every CPU is full somebody lacks something whatever moves,
    /// and one thread without any is worse than two with half.
    pub starved: f64,
}

impl Lack {
    /// What a claim of `demand` lacks that gets `share`.
    pub fn of(demand: f64, share: f64) -> Self {
        let cpus = (demand - share).max(0.0);
        Self { cpus, starved: if demand > 0.0 { cpus * (1.0 - share / demand).max(0.0) } else { 0.0 } }
    }
}

impl Cpus {
    /// CPUs by number, core and what of them is taken, in this order.
    pub fn new(cpus: impl IntoIterator<Item = (u32, u32, f64)>) -> Self {
        let (mut all, mut known) = (Self::default(), BTreeMap::new());
        for (cpu, core, taken) in cpus.into_iter().filter(|(cpu, _, _)| *cpu < MOST_CPUS) {
            let index = cpu as usize;
            all.position.resize(all.position.len().max(index + 1), NOWHERE);
            all.position[index] = all.core.len() as u32;
            let next = known.len();
            all.core.push(*known.entry(core).or_insert(next));
            all.taken.push(taken);
        }
        all.cores = known.len();
        all
    }

    /// A machine's CPUs that run, as they were used while threads ran for such shares of the time on the CPUs where they were
    /// last seen. Where nobody told which CPUs share a core, none does.
    pub fn of(topology: &Topology, usage: &BTreeMap<u32, CpuUse>, threads: impl Iterator<Item = (u32, f64)>) -> Self {
        let taken = taken(usage, threads);
        let online = topology.cpus.iter().filter(|(cpu, _)| topology.online.contains(**cpu));
        let known: Vec<(u32, u32)> = online.map(|(cpu, about)| (*cpu, about.core)).collect();
        let known = if known.is_empty() { usage.keys().map(|cpu| (*cpu, *cpu)).collect() } else { known };
        Self::new(known.into_iter().map(|(cpu, core)| (cpu, core, taken.get(&cpu).copied().unwrap_or(0.0))))
    }

    /// Positions of those of `set` that there are.
    pub fn positions<'a>(&'a self, set: &'a CpuSet) -> impl Iterator<Item = usize> + 'a {
        set.iter().filter_map(|cpu| {
            let position = self.position.get(cpu as usize).copied().filter(|position| *position != NOWHERE)?;
            Some(position as usize)
        })
    }

    /// Divides all CPUs among `claims`: `got` hears what each gets on a CPU, both by their position. Returns what threads want
    /// of each CPU. A claim without a CPU takes no part.
    pub fn divide<'a>(
        &self,
        claims: impl Iterator<Item = Claim<'a>>,
        mut got: impl FnMut(usize, usize, f64),
    ) -> Vec<f64> {
        let count = self.core.len();
        let mut taken = self.taken.clone();
        let mut threads = Vec::new();
        for (index, claim) in claims.enumerate().filter(|(_, claim)| claim.demand > 0.0 && !claim.cpus.is_empty()) {
            if !claim.interrupt {
                threads.push((claim.cpus.len(), index, claim));
                continue;
            }
            // Which CPU of several the kernel chose was not told: each has its part.
            let part = claim.demand / claim.cpus.len() as f64;
            for cpu in self.positions(claim.cpus) {
                got(index, cpu, part.min((1.0 - taken[cpu]).max(0.0)));
                taken[cpu] += part;
            }
        }
        threads.sort_unstable_by_key(|(cpus, index, _)| (*cpus, *index));
        let mut wanted = vec![0.0; count];
        let mut asked: Vec<Vec<(f64, usize)>> = vec![Vec::new(); count];
        let mut by_load = Vec::new();
        for (_, index, claim) in threads {
            by_load.clear();
            by_load.extend(self.positions(claim.cpus).map(|cpu| (wanted[cpu] + taken[cpu], cpu)));
            for (cpu, amount) in filled(&mut by_load, claim.demand) {
                wanted[cpu] += amount;
                asked[cpu].push((amount, index));
            }
        }
        let mut of_core = vec![0.0; self.cores];
        (0..count).for_each(|cpu| of_core[self.core[cpu]] += wanted[cpu] + taken[cpu]);
        for (cpu, asked) in asked.iter_mut().enumerate() {
            let mut left = room_beside(taken[cpu], of_core[self.core[cpu]] - wanted[cpu] - taken[cpu]);
            asked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let count = asked.len();
            for (before, (amount, index)) in asked.iter().enumerate() {
                let share = amount.min(left / (count - before) as f64);
                got(*index, cpu, share);
                left -= share;
            }
        }
        wanted
    }
}

/// What a CPU has for threads, when its siblings want so much.
pub fn room_beside(taken: f64, siblings: f64) -> f64 {
    (1.0 - taken - (1.0 - SMT_YIELD / 2.0) * siblings.clamp(0.0, 1.0)).max(0.0)
}

/// A demand over CPUs, given as (load, CPU): the emptiest are filled first, to one level.
fn filled(by_load: &mut [(f64, usize)], demand: f64) -> impl Iterator<Item = (usize, f64)> + '_ {
    by_load.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut below, mut level, mut used) = (0.0, 0.0, 0);
    for (count, (load, _)) in by_load.iter().enumerate() {
        if count > 0 && level <= *load {
            break;
        }
        below += load;
        used = count + 1;
        level = (demand + below) / used as f64;
    }
    by_load[..used].iter().map(move |(load, cpu)| (*cpu, (level - load).max(0.0)))
}

/// The share of a CPU that a thread wants which ran and waited for these shares of the time.
pub fn demand(run: f64, wait: f64) -> f64 {
    if wait < LATE * (run + wait) { run } else { (run + wait).min(1.0) }
}

/// What of each CPU is gone before any claim: interrupts, softirqs, steal, and what ran there besides the `threads`, given as
/// the CPU where one was last seen and the share of the time that it ran.
///
/// A thread that wandered is counted where it was seen last and ran elsewhere, so what others seem to have run is cut to what
/// is left over on all CPUs together.
pub fn taken(usage: &BTreeMap<u32, CpuUse>, threads: impl Iterator<Item = (u32, f64)>) -> BTreeMap<u32, f64> {
    let mut ran: BTreeMap<u32, f64> = BTreeMap::new();
    threads.for_each(|(cpu, share)| *ran.entry(cpu).or_default() += share);
    let others = |(cpu, usage): (&u32, &CpuUse)| (usage.busy - ran.get(cpu).copied().unwrap_or(0.0)).max(0.0);
    let seeming: f64 = usage.iter().map(others).sum();
    let known: f64 = usage.keys().filter_map(|cpu| ran.get(cpu)).sum();
    let real = (usage.values().map(|usage| usage.busy).sum::<f64>() - known).max(0.0);
    let part = if seeming > 0.0 { (real / seeming).min(1.0) } else { 0.0 };
    let taken = |(cpu, usage): (&u32, &CpuUse)| {
        let before = usage.irq + usage.softirq + usage.steal;
        (*cpu, (before + part * others((cpu, usage))).clamp(0.0, 1.0))
    };
    usage.iter().map(taken).collect()
}
