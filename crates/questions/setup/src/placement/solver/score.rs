//! How good is a placement? A sum of prices, each in the answer.
//!
//! Remote memory costs half of what the distance bounds: `(1 - 10 / distance) / 2` of what runs there. An interrupt on the
//! CPU of a pinned vCPU makes it leave the guest each time, beside the time that it takes.

use super::caches::{APART, Together};
use super::ground::Ground;
use super::limits::{BREACH, breaches};
use super::load::spread;
use super::{Goal, Kind};
use base::CpuSet;
use facts::shares::Lack;

/// The prices of a placement; the lower, the better.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Score {
    /// CPUs wanted and not got, counted twice, and four times where a polling thread lacks them.
    pub(crate) shortfall: f64,
    /// The same times the part of its wish that each lacks: a unit that gets nothing counts twice.
    pub starved: f64,
    /// CPUs' worth of work that remote memory may cost.
    pub remote: f64,
    /// CPUs' worth of work that is behind another last-level cache than most of its VM, of VMs that fit behind one.
    pub apart: f64,
    /// CPUs' worth of interrupts on CPUs of vCPUs and polling threads, of those on sets as far as they are there.
    pub interrupted: f64,
    /// CPUs' worth of interrupts on a CPU, each as often as CPUs' worth of others are there: what comes at once waits for each other.
    pub crowded: f64,
    /// CPUs' worth of helpers on CPUs of pinned vCPUs and polling threads, if they use their sets evenly, as they may; and a
    /// hundredth for each such CPU.
    pub(crate) exposed: f64,
    /// Cores whose threads serve different VMs.
    pub strangers: f64,
    /// Polling threads, counted four times, and for goal latency vCPUs, that share a CPU with somebody.
    pub shared: f64,
    /// For goal latency: CPUs of vCPUs and polling threads on which the kernel's own work may run.
    pub disturbed: f64,
    /// Cores (goal density) or packages (goal power) that are used.
    pub spread: f64,
    /// Units on CPUs that the user reserved.
    pub reserved: f64,
    /// Threads and interrupts that would move.
    pub moved: f64,
    /// Units that break a limit, which no placement that is shown does.
    pub broken: f64,
    pub total: f64,
}

/// One CPU's worth of work in points of the score.
pub(super) const POINTS: f64 = 1_000.0;

/// What a core (goal density) and a package (goal power) cost, in points.
pub(super) const CORE: f64 = 50.0;
pub(super) const PACKAGE: f64 = 200.0;

/// What uses a CPU, counted over all units.
#[derive(Clone, Copy, Default)]
struct Users {
    pinned: u32,
    floating: u32,
    /// vCPUs on sets, each by the part of its set that this CPU is.
    passing: f64,
    helpers: u32,
    irqs: u32,
    /// CPUs' worth of them.
    interrupts: f64,
    kernel: bool,
}

impl Score {
    /// The score of a placement, and what each unit gets.
    pub(super) fn of(ground: &Ground<'_>, places: &[CpuSet]) -> (Self, Vec<f64>) {
        let (task, load) = (ground.task, spread(ground, places));
        let users = users(ground, places);
        let mut score = Self::default();
        let mut vms: Vec<Option<usize>> = vec![None; ground.cpus.cores];
        let mut strangers = vec![false; ground.cpus.cores];
        for (index, (unit, place)) in task.units.iter().zip(places).enumerate().filter(|(_, (_, set))| !set.is_empty())
        {
            let lack = Lack::of(unit.demand, load.shares[index]);
            score.shortfall += unit.kind.weight() * lack.cpus;
            score.starved += unit.kind.weight() * lack.starved;
            let (mut held, mut passed) = (0_u32, 0.0);
            let only = (place.len() == 1 && unit.kind.is_pinned()).then_some(unit.vm).flatten();
            for cpu in ground.positions(place) {
                held += u32::from(users[cpu].pinned > 0);
                passed += if users[cpu].pinned > 0 { 1.0 } else { users[cpu].passing.min(1.0) };
                if let Some(vm) = only {
                    let core = ground.cpus.core[cpu];
                    strangers[core] |= vms[core].is_some_and(|other| other != vm);
                    vms[core] = Some(vm);
                }
            }
            score.remote += unit.kind.weight() * load.remote[index];
            match unit.kind {
                Kind::Irq => {
                    let here = unit.demand / place.len() as f64;
                    score.interrupted += here * passed;
                    score.crowded +=
                        ground.positions(place).map(|cpu| here * (users[cpu].interrupts - here)).sum::<f64>();
                }
                Kind::Helpers | Kind::Worker => {
                    // Who hardly runs is in nobody's way by the CPUs that he may use.
                    let each = if task.goal != Goal::Latency && task.idle.contains(&index) { 0.0 } else { 0.01 };
                    score.exposed += f64::from(held) * (unit.demand / place.len() as f64 + each);
                }
                _ => {}
            }
            let alone = |users: Users| users.pinned == 1 && users.floating + users.helpers + users.irqs == 0;
            let private = || place.len() == 1 && ground.positions(place).all(|cpu| alone(users[cpu]));
            let wants = unit.kind == Kind::Pmd || unit.kind == Kind::Vcpu && task.goal == Goal::Latency;
            if wants && !private() {
                score.shared += if unit.kind == Kind::Pmd { 4.0 } else { 1.0 };
            }
            if unit.kind != Kind::Housekeeping && unit.kind != Kind::Irq && !unit.kept {
                let reserved = ground.positions(place).any(|cpu| task.cpus[cpu].reserved);
                score.reserved += f64::from(u8::from(reserved));
            }
            score.moved += f64::from(u32::from(unit.now.as_ref() != Some(place)) * unit.threads);
        }
        score.apart = Together::of(ground, places).apart();
        score.broken = f64::from(breaches(ground, places));
        score.strangers = strangers.iter().filter(|strangers| **strangers).count() as f64;
        let of_goal = of_goal(ground, &users, &mut score);
        score.total = score.prices().iter().map(|(_, points)| points).sum::<f64>() + of_goal;
        (score, load.shares)
    }

    /// What the placement pays for, in points; what cores and packages cost for goals density and power is the rest of the total.
    pub fn prices(&self) -> [(&'static str, f64); 13] {
        [
            ("CPUs wanted and not got", POINTS * self.shortfall),
            ("starved threads", POINTS * self.starved),
            ("remote memory", POINTS * self.remote),
            ("threads that share a CPU", 500.0 * self.shared),
            ("interrupts on CPUs of vCPUs", 500.0 * self.interrupted),
            ("interrupts on one CPU", 50.0 * self.crowded),
            ("helpers on CPUs of vCPUs", 500.0 * self.exposed),
            ("behind another last-level cache", APART * self.apart),
            ("cores of several VMs", 20.0 * self.strangers),
            ("CPUs of vCPUs open to the kernel's work", 20.0 * self.disturbed),
            ("threads on reserved CPUs", 2_000.0 * self.reserved),
            ("broken limits", BREACH * POINTS * self.broken),
            ("threads to move", self.moved),
        ]
    }
}

/// Counts what the goal counts, and says what it costs.
fn of_goal(ground: &Ground<'_>, users: &[Users], score: &mut Score) -> f64 {
    let used = |group: &[usize], count: usize| {
        let mut seen = vec![false; count];
        for (cpu, users) in users.iter().enumerate() {
            seen[group[cpu]] |= users.pinned + users.floating + users.helpers + users.irqs > 0;
        }
        seen.into_iter().filter(|seen| *seen).count() as f64
    };
    match ground.task.goal {
        Goal::Throughput => 0.0,
        Goal::Latency => {
            score.disturbed = users.iter().filter(|users| users.pinned > 0 && users.kernel).count() as f64;
            0.0
        }
        Goal::Density => {
            score.spread = used(&ground.cpus.core, ground.cpus.cores);
            CORE * score.spread
        }
        Goal::Power => {
            score.spread = used(&ground.package, ground.packages);
            PACKAGE * score.spread
        }
    }
}

fn users(ground: &Ground<'_>, places: &[CpuSet]) -> Vec<Users> {
    let mut users = vec![Users::default(); ground.task.cpus.len()];
    for (unit, place) in ground.task.units.iter().zip(places) {
        let one = place.len() == 1;
        for cpu in ground.positions(place) {
            let users = &mut users[cpu];
            match unit.kind {
                Kind::Vcpu | Kind::Pmd if one => users.pinned += 1,
                Kind::Vcpu | Kind::Pmd => {
                    users.floating += 1;
                    users.passing += 1.0 / place.len() as f64;
                }
                Kind::Helpers | Kind::Worker => users.helpers += 1,
                Kind::Irq => {
                    users.irqs += 1;
                    users.interrupts += unit.demand / place.len() as f64;
                }
                Kind::Housekeeping => users.kernel = true,
            }
        }
    }
    users
}
