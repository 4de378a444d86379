//! Who kept a thread from running?
//!
//! In: a machine whose threads ran and waited between two samples, how each CPU was used, what quotas took. Out: for each
//! starved thread a [`Verdict`]: its rivals with their numbers, the one that explains most first, and who reports it.
//! ```text
//! starved thread --the CPU that it was last on--> KINDS: a rival of each kind --took--> ranking --winner--> Reporter
//!                  else all that it may use
//! ```
//! A rival explains a wait if it took at least half as much time as was waited: who hardly ran kept none waiting. Two samples
//! show who ran on the same CPU, not who ran at the moment of the wait; that takes a trace (`preemptors`).

mod kinds;
mod pools;
mod report;
mod scene;
mod weigh;

pub(crate) use kinds::is_real_time;
pub(super) use kinds::{MANY_PER_S, MUCH_INTERRUPTED, frequent, is_program};
pub(crate) use pools::Pool;
pub(crate) use report::Reporter;
pub(super) use report::{only_cpu, stack_of};
pub(super) use scene::Scene;
pub(super) use weigh::{explained, is_harmless, sums, weighed};

use base::CpuSet;
use base::number::percent;
use facts::starvation::is_starved;
use host::Machine;
use host::machine::{Role, Thread};
use std::fmt;

/// Part of a wait that a rival must have run for to explain it: our own limit.
pub(super) const EXPLAINS: f64 = 0.5;

base::named! {
    /// What can keep a thread from running, in the order in which equal ones are named: what holds for many threads first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum Kind {
        /// More is wanted of all its CPUs than they have.
        Overcommit = "overcommitted CPUs",
        /// It stays on one of several isolated CPUs.
        Isolation = "isolated CPUs",
        /// The CPU quota of its cgroup.
        Quota = "a CPU quota",
        /// The limit of real-time threads together.
        RealTime = "the limit of real-time threads",
        Steal = "steal",
        /// Interrupts and softirqs of its CPU.
        Interrupts = "interrupts and softirqs",
        /// Polling threads of a switch.
        Polling = "polling threads",
        /// vCPUs of its own VM.
        Vcpus = "vCPUs of the same VM",
        /// Emulator, workers and iothreads of its own VM.
        Helpers = "helpers of the same VM",
        /// Threads of other VMs.
        Neighbours = "threads of other VMs",
        Programs = "other programs",
        /// The other threads of its core: they make a thread slower, and none wait.
        Sibling = "a busy sibling",
    }
}

/// One who may have kept a thread from running.
#[derive(Debug, Clone)]
pub(crate) struct Rival {
    pub kind: Kind,
    /// What it took of the time, as a share of one CPU.
    pub took: f64,
    /// Whether it may have taken less: threads that may run elsewhere as well.
    pub at_most: bool,
    /// Whether it explains the wait whole, whoever ran meanwhile.
    pub is_whole: bool,
    /// Who it is and what it did, as half a sentence.
    pub did: String,
    /// Where; empty: the sentence says it.
    pub on: CpuSet,
    /// Its threads by their position in the machine, the busiest first.
    pub threads: Vec<usize>,
}

impl fmt::Display for Rival {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_whole {
            true => out.write_str(&self.did),
            false => {
                let on = if self.on.is_empty() { String::new() } else { format!(" on {}", cpus_named(&self.on)) };
                write!(out, "{}{on} ({}{} of the time)", self.did, self.up_to(), percent(self.took))
            }
        }
    }
}

impl Rival {
    /// One that took nothing yet.
    fn of(kind: Kind, did: String) -> Self {
        let is_whole = matches!(kind, Kind::Overcommit | Kind::Isolation);
        Self { kind, took: 0.0, at_most: false, is_whole, did, on: CpuSet::default(), threads: Vec::new() }
    }

    fn up_to(&self) -> &'static str {
        if self.at_most { "up to " } else { "" }
    }
}

/// A starved thread, and who may be the cause.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// The position of the thread in the machine.
    pub victim: usize,
    /// How long it waited, as a share of the time.
    pub waited: f64,
    pub cpus: CpuSet,
    /// All rivals of which anything is known, the one that explains most first.
    pub rivals: Vec<Rival>,
    pub(crate) reporter: Reporter,
}

impl Verdict {
    /// The rival that explains the wait.
    pub(crate) fn winner(&self) -> Option<&Rival> {
        self.rivals.first().filter(|rival| self.explains(rival))
    }

    /// What speaks for a rival of this thread, as far as anything does.
    pub(crate) fn speaks_for(&self, rival: &Rival) -> Option<String> {
        let explains = if self.explains(rival) && !rival.is_whole {
            let how = if rival.took < self.waited { "which explains most of" } else { "enough to explain" };
            format!(": {how} a wait of {}", percent(self.waited))
        } else {
            String::new()
        };
        (rival.took > 0.0).then(|| format!("{rival}{explains}"))
    }

    pub(crate) fn speaks_against(&self, rival: &Rival) -> Option<String> {
        let mut against = Vec::new();
        let is_winner = self.winner().is_some_and(|winner| std::ptr::eq(winner, rival));
        if rival.kind == Kind::Sibling {
            against.push("a busy sibling slows a thread and makes none wait".to_owned());
        } else if rival.took == 0.0 {
            against.push("it took nothing".to_owned());
        } else if !self.explains(rival) {
            against.push(format!("it took less than half of the {} that were waited", percent(self.waited)));
        } else if let Some(winner) = self.winner().filter(|_| !is_winner) {
            against.push(format!("more of the wait is explained by {}", winner.kind.name()));
        }
        if rival.at_most {
            against.push("its threads may have run on other CPUs".to_owned());
        }
        (!against.is_empty()).then(|| against.join("; "))
    }

    /// Whether a rival took enough to be the cause.
    fn explains(&self, rival: &Rival) -> bool {
        rival.kind != Kind::Sibling && rival.took >= EXPLAINS * self.waited
    }

    /// What the others took, for the evidence; `None` where nothing else is known.
    pub(crate) fn others(&self) -> Option<String> {
        let losers = self.rivals.iter().skip(usize::from(self.winner().is_some()));
        let took = |rival: &Rival| {
            let sibling = if rival.kind == Kind::Sibling { " (slows a thread, makes none wait)" } else { "" };
            format!("{}{sibling} {}{}", rival.kind.name(), rival.up_to(), percent(rival.took))
        };
        let losers: Vec<String> = losers.filter(|rival| !rival.is_whole).map(took).collect();
        let half = if self.winner().is_some() { "" } else { ", none of which explains half of the wait" };
        (!losers.is_empty()).then(|| format!("{}{half}, as shares of {}", losers.join(", "), cpus_named(&self.cpus)))
    }
}

/// All verdicts about a machine, and the CPUs of which more is wanted than they have.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    all: Vec<Verdict>,
    /// The host as a whole first.
    pub(crate) pools: Vec<Pool>,
}

impl Verdicts {
    /// About every starved thread of a VM or a switch.
    pub(crate) fn of(machine: &Machine) -> Self {
        let waits = |thread: &Thread| starves(thread) || weigh::waits_with_others(machine, thread);
        let threads = machine.threads.iter().enumerate();
        let starved: Vec<usize> = threads
            .filter(|(_, thread)| (thread.vm.is_some() || thread.role != Role::Other) && waits(thread))
            .map(|(position, _)| position)
            .collect();
        let pools = pools::pools(machine, &starved);
        let scene = Scene::of(machine);
        let all = starved.into_iter().filter_map(|victim| judge(&scene, &pools, victim)).collect();
        Self { all, pools }
    }

    pub(crate) fn all(&self) -> &[Verdict] {
        &self.all
    }

    pub(crate) fn of_reporter(&self, reporter: Reporter) -> impl Iterator<Item = &Verdict> {
        self.all.iter().filter(move |verdict| verdict.reporter == reporter)
    }

    /// That of a thread, by its position.
    pub(crate) fn about(&self, thread: usize) -> Option<&Verdict> {
        self.all.iter().find(|verdict| verdict.victim == thread)
    }
}

/// Whether a thread's waiting was measured, and is too much.
pub(super) fn starves(thread: &Thread) -> bool {
    let shares = thread.run_share.as_ref().zip(thread.wait_share.as_ref());
    shares.is_some_and(|(run, wait)| is_starved(run.value, wait.value))
}

/// `vcpu 1 of web (4711)`; a thread of no VM by its own name: `make (4712)`.
pub(super) fn name(thread: &Thread) -> String {
    let name = thread.vm.as_ref().map_or_else(|| thread.name.clone(), |vm| format!("{} of {vm}", called(thread)));
    thread.tid.map_or(name.clone(), |tid| format!("{name} ({tid})"))
}

/// What a thread of a VM does, or what it is called where no role is known of it.
pub(super) fn called(thread: &Thread) -> String {
    if thread.role == Role::Other { thread.name.clone() } else { thread.role.to_string() }
}

/// `CPU 2`, `CPUs 2-3`.
pub(super) fn cpus_named(cpus: &CpuSet) -> String {
    format!("CPU{} {cpus}", if cpus.len() == 1 { "" } else { "s" })
}

/// The CPU that a thread was last on explains its wait, or else all that it may use.
fn judge(scene: &Scene<'_>, pools: &[Pool], victim: usize) -> Option<Verdict> {
    let thread = &scene.machine.threads[victim];
    let waited = thread.wait_share.as_ref()?.value;
    let online = &scene.machine.topology.online;
    let may =
        thread.affinity.as_ref().map(|set| if online.is_empty() { set.value.clone() } else { set.value.and(online) });
    let may = may.filter(|set| !set.is_empty());
    let last = thread.last_cpu.as_ref().map(|cpu| CpuSet::one(cpu.value));
    let verdict = |cpus: CpuSet| {
        let mut rivals: Vec<Rival> = kinds::KINDS
            .iter()
            .filter_map(|of_kind| of_kind(scene, &kinds::Wait { victim, thread, waited, cpus: &cpus, pools }))
            .collect();
        // Steal, interrupts and threads that are bound there are certain: those that may have run elsewhere count for no more than what
        // of these explains the wait.
        let is_certain = |rival: &&Rival| !rival.at_most && !rival.is_whole && rival.kind != Kind::Sibling;
        let certain =
            rivals.iter().filter(is_certain).map(|rival| rival.took).filter(|took| *took >= EXPLAINS * waited);
        let certain = certain.reduce(f64::max).unwrap_or(f64::INFINITY);
        let weight = |rival: &Rival| match rival.kind {
            _ if rival.is_whole => f64::INFINITY,
            Kind::Sibling => -1.0,
            _ if rival.at_most => rival.took.min(certain),
            _ => rival.took,
        };
        let order = |rival: &Rival| (rival.at_most, rival.kind);
        rivals.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(order(a).cmp(&order(b))));
        Verdict { victim, waited, cpus, rivals, reporter: Reporter::Starved }
    };
    let near = last.or_else(|| may.clone()).map(verdict)?;
    let wide = may.filter(|set| near.winner().is_none() && set.len() > 1).map(verdict);
    let mut best = wide.filter(|wide| wide.winner().is_some()).unwrap_or(near);
    best.reporter = report::reporter(scene.machine, &best);
    Some(best)
}
