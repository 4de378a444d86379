//! Which thread and which interrupt should run where? Placements for a whole host, and how good each is by one stated score.
//!
//! In: a [`Task`]: CPUs with what is taken of them, units that want CPU, a goal. Out: [`Plan`]s in the order in which one
//! would try them, the one that holds now among them.
//! ```text
//! Task --starts--> ideas: helpers alone, interrupts alone, near memory, empty cores, whole nodes, as little as helps
//!        |--improve--> single moves and swaps while the score falls       --exact--> small hosts: all of them
//!        |--prune----> commands that bring nothing are left out
//!        |--caches---> VMs brought to CPUs that share a last-level cache
//!        |--names----> what each does, by its result
//!        |--score----> shortfall, remote memory, caches, interruptions, strangers, what the goal asks, threads moved
//!        |--limits---> what no placement may do, however well it scores
//!        '--rank-----> effect for each command that has to be typed
//! ```
//! Deterministic: no clock, no chance; equal scores are decided by fewer moves and lower CPU numbers.

mod caches;
mod exact;
mod ground;
mod improve;
mod limits;
mod load;
mod names;
mod rank;
mod score;
mod starts;
#[cfg(test)]
mod tests;

pub(crate) use improve::WORTH;
pub use load::{Load, load};
pub(crate) use rank::NOW;
pub use rank::plans;
pub(crate) use rank::{continued, part};
pub use score::Score;

use base::CpuSet;
use facts::shares::{POLLING_WEIGHT, SMT_YIELD};

/// Distance to another node where no firmware told it: what Linux assumes is 20 (`REMOTE_DISTANCE`,
/// include/linux/topology.h, Linux 6.12).
pub(crate) const REMOTE_DISTANCE: u32 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// As much work as possible.
    #[default]
    Throughput,
    /// A CPU of its own for every vCPU, without interrupts and the kernel's own work.
    Latency,
    /// As few cores as possible.
    Density,
    /// As few packages as possible, so that the others can sleep.
    Power,
}

#[derive(Debug, Clone, Default)]
pub struct Task {
    /// CPUs that run, in order.
    pub cpus: Vec<Room>,
    /// Threads, alone or together, and interrupts.
    pub units: Vec<Unit>,
    pub goal: Goal,
    /// Distances between nodes, where told.
    pub distances: std::collections::BTreeMap<(u32, u32), u32>,
    /// VMs whose vCPUs may be behind several caches: their guests know of groups.
    pub scattered: std::collections::BTreeSet<usize>,
    /// Units that are known to hardly run.
    pub idle: std::collections::BTreeSet<usize>,
    /// The VM that has a CPU for itself by its pins, however idle it is.
    pub held: std::collections::BTreeMap<u32, usize>,
}

/// A CPU and what of it is gone before any unit runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Room {
    pub cpu: u32,
    pub core: u32,
    pub node: u32,
    pub package: u32,
    /// Its last-level cache; `None`: not told.
    pub cache: Option<u32>,
    /// Interrupts that are no units, softirqs, steal, other programs: share of the CPU.
    pub taken: f64,
    /// True if no thread of a VM and no polling thread may run there: the user said so.
    pub reserved: bool,
    /// True if the scheduler does not balance it: a set of several CPUs would stay on one of them.
    pub isolated: bool,
}

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A vCPU, which gets one CPU.
    Vcpu,
    /// The threads that manage a VM and carry its packets and disks: a set of CPUs.
    Helpers,
    /// One of them that somebody pinned to one CPU: it gets one again.
    Worker,
    /// A polling thread of a user-space switch, which takes one CPU whole.
    Pmd,
    /// An interrupt, which runs before every thread.
    Irq,
    /// The kernel's own work that is tied to no CPU: a set of them.
    Housekeeping,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Number of its VM; `None`: it is of the host.
    pub vm: Option<usize>,
    pub kind: Kind,
    pub threads: u32,
    /// Commands that moving it takes. All polling threads together take one.
    pub commands: u32,
    /// CPUs that they want together.
    pub demand: f64,
    /// Where they may run now; `None`: not told.
    pub now: Option<CpuSet>,
    /// The node of their memory, or of the device.
    pub home: Option<u32>,
    /// True if they stay where they are.
    pub kept: bool,
    /// CPUs beyond which its cgroup sends it to none; `None`: no limit is known.
    pub limit: Option<CpuSet>,
    /// The one CPU that it uses of the set it has now: isolated CPUs, between which nothing moves it.
    pub stuck: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub idea: String,
    /// True if it is proven that none scores better.
    pub(crate) proven: bool,
    /// CPUs of each unit, in the task's order.
    pub places: Vec<CpuSet>,
    /// True for each unit that shares its CPUs with no other by intent.
    pub exclusive: Vec<bool>,
    pub score: Score,
    /// What each unit gets, in CPUs.
    pub shares: Vec<f64>,
    pub commands: u32,
    /// How many points the score is lower than what holds now, for each command; 0 for what holds now.
    pub effect: f64,
}

impl Kind {
    /// Whether one CPU is what it gets.
    pub(crate) fn is_single(self) -> bool {
        matches!(self, Kind::Vcpu | Kind::Worker | Kind::Pmd | Kind::Irq)
    }

    /// Whether it is a thread that wants its CPU for itself.
    pub(crate) fn is_pinned(self) -> bool {
        matches!(self, Kind::Vcpu | Kind::Pmd)
    }

    /// How much a CPU counts that it wants and does not get, beside a CPU's worth of other prices.
    fn weight(self) -> f64 {
        const THREAD: f64 = 2.0;
        match self {
            Kind::Pmd => THREAD * POLLING_WEIGHT,
            Kind::Vcpu | Kind::Helpers | Kind::Worker | Kind::Irq => THREAD,
            Kind::Housekeeping => 0.0,
        }
    }
}

impl Task {
    pub fn all(&self) -> CpuSet {
        self.cpus.iter().map(|room| room.cpu).collect()
    }

    /// CPUs that a unit of this kind may be given; all of them where its rule leaves none.
    pub fn allowed(&self, kind: Kind) -> CpuSet {
        let rule = |room: &&Room| match kind {
            Kind::Vcpu | Kind::Pmd => !room.reserved,
            Kind::Helpers | Kind::Worker => !room.reserved && !room.isolated,
            Kind::Irq | Kind::Housekeeping => !room.isolated,
        };
        let allowed: CpuSet = self.cpus.iter().filter(rule).map(|room| room.cpu).collect();
        match (allowed.is_empty(), kind) {
            (false, _) => allowed,
            // On a host of isolated CPUs only, helpers still keep off what the user reserved.
            (true, Kind::Helpers | Kind::Worker) if self.cpus.iter().any(|room| !room.reserved) => {
                self.allowed(Kind::Vcpu)
            }
            _ => self.all(),
        }
    }

    /// CPUs that a unit may be given: those of its kind; but a vCPU or polling thread that has isolated CPUs keeps to them,
    /// because somebody isolated them for it.
    pub(crate) fn allowed_to(&self, unit: &Unit) -> CpuSet {
        let all = self.allowed(unit.kind);
        let allowed = match &unit.limit {
            // Where a limit leaves nothing of what its kind may have, the limit holds.
            Some(limit) if all.meets(limit) => all.and(limit),
            Some(limit) => limit.clone(),
            None => all,
        };
        let isolated: CpuSet = self.cpus.iter().filter(|room| room.isolated).map(|room| room.cpu).collect();
        let inside = unit.now.as_ref().is_some_and(|now| !now.is_empty() && now.is_within(&isolated));
        if unit.kind.is_pinned() && inside && allowed.meets(&isolated) { allowed.and(&isolated) } else { allowed }
    }

    /// How far one node is from another; 10 is itself.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        let far = if from == to { 10 } else { REMOTE_DISTANCE };
        self.distances.get(&(from, to)).copied().unwrap_or(far).max(10)
    }

    /// CPUs that must be missing in every placement: what all threads want less what all cores can give at most.
    ///
    /// Two siblings that want `s` together get no more than `s`, and no more than `2 - c s`, where `c` is what a busy sibling
    /// takes: `2 / (1 + c)` at most. Of more siblings either all have busy ones beside them, or they want less than 2 CPUs.
    pub(crate) fn missing_at_least(&self) -> f64 {
        const TAKEN: f64 = 1.0 - SMT_YIELD / 2.0;
        let mut threads: std::collections::BTreeMap<u32, u32> = std::collections::BTreeMap::new();
        self.cpus.iter().for_each(|room| *threads.entry(room.core).or_default() += 1);
        let most = |threads: &u32| match threads {
            1 => 1.0,
            2 => 2.0 / (1.0 + TAKEN),
            more => (f64::from(*more) * (1.0 - TAKEN)).max(2.0),
        };
        let most: f64 = threads.values().map(most).sum();
        let wanted = self.units.iter().filter(|unit| unit.kind != Kind::Irq).map(|unit| unit.demand);
        (wanted.sum::<f64>() - most).max(0.0)
    }
}
