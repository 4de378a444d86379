//! What does the model of shares expect of typed changes, thread by thread?
//!
//! ```text
//! Machine: threads, CPUs, use of each --> contenders --\
//! changes --> threads and interrupts that move ---------> Expected --> direction
//! ```
//! The solver scores units, of which one may be many threads, and prices more than CPU time. `apply` asks how much CPU each
//! thread will get, and refuses what makes that worse; whatever is proposed has passed the same question first. Nor may a
//! change narrow sets so far that less could be given to all threads together, whoever schedules them.

use super::model::Quotas;
use super::proposal::{ran, taken_by_interrupts};
use base::{Change, CpuSet, Setting};
use facts::shares::{Contender, Cpus, Direction, Expected, Move, missing_at_best};
use host::Machine;
use host::machine::{Role, Thread};
use std::collections::BTreeMap;

/// A machine as the model has it.
pub(super) struct Expectations<'a> {
    machine: &'a Machine,
    cpus: Cpus,
    threads: Vec<Contender>,
    /// What each of them wants, where it was measured all that it ran and waited, and the CPU where it was last seen.
    wishes: Vec<(f64, Option<u32>)>,
    /// The part of each CPU that each interrupt takes which may be moved.
    interrupts: BTreeMap<u32, BTreeMap<u32, f64>>,
}

/// CPUs that may be missing more, at best, after a change: our own limit.
const MORE_AT_BEST: f64 = 0.02;

impl<'a> Expectations<'a> {
    pub(super) fn of(machine: &'a Machine) -> Self {
        let quotas = Quotas::of(machine);
        let contender = |thread: &Thread| {
            let (tid, cpus) = (u32::try_from(thread.tid?).ok()?, thread.affinity.as_ref()?.value.clone());
            let demand = quotas.demand(thread);
            let measured = thread.run_share.is_some() && thread.wait_share.is_some();
            let wish =
                (if measured { demand.high } else { demand.likely }, thread.last_cpu.as_ref().map(|cpu| cpu.value));
            Some((Contender::new(tid, Some(thread.role), demand.likely, cpus), wish))
        };
        let (threads, wishes) = machine.threads.iter().filter_map(contender).unzip();
        Self {
            machine,
            cpus: Cpus::of(&machine.topology, &machine.cpu_use, machine.threads.iter().filter_map(ran)),
            threads,
            wishes,
            interrupts: taken_by_interrupts(machine),
        }
    }

    /// True if `apply` would refuse these changes, as this machine is.
    pub(super) fn refuses(&self, changes: &[Change]) -> bool {
        let (moves, interrupts) = self.moved(changes);
        let pairs: Vec<(CpuSet, CpuSet)> = interrupts.iter().map(|(_, from, to)| (from.clone(), to.clone())).collect();
        let expected = Expected::of(&self.cpus, &self.threads, &self.machine.cpu_use, &moves, &pairs);
        expected.direction() == Direction::Worse
            || self.missing_at_best(&moves, &interrupts) > self.missing_at_best(&[], &[]) + MORE_AT_BEST
    }

    /// CPUs that are missing, whoever schedules, if these threads and interrupts move.
    fn missing_at_best(&self, moves: &[Move], interrupts: &[(u32, CpuSet, CpuSet)]) -> f64 {
        let mut cpus = self.cpus.clone();
        for (number, _, to) in interrupts {
            let Some(took) = self.interrupts.get(number) else { continue };
            for (cpu, part) in took {
                cpus.positions(&CpuSet::one(*cpu))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|at| cpus.taken[at] -= part);
            }
            let sum: f64 = took.values().sum();
            let to: Vec<usize> = cpus.positions(to).collect();
            to.iter().for_each(|at| cpus.taken[*at] += sum / to.len() as f64);
        }
        let threads = self.threads.iter().zip(&self.wishes).map(|(thread, (wish, last))| {
            let moved = moves.iter().find(|one| one.tid == thread.tid);
            (*wish, self.used(moved.map_or(&thread.cpus, |one| &one.cpus), *last))
        });
        missing_at_best(&cpus, threads)
    }

    /// The CPUs of a set that a thread really uses: nothing brings it to isolated ones beside others, nor from one to another.
    fn used(&self, cpus: &CpuSet, last: Option<u32>) -> CpuSet {
        let Some(isolated) = &self.machine.topology.isolated else { return cpus.clone() };
        let (running, balanced) = (cpus.and(&self.machine.topology.online), cpus.without(isolated));
        match last.filter(|last| running.contains(*last)).or_else(|| running.first()) {
            Some(one) if balanced.is_empty() => CpuSet::one(one),
            _ => balanced,
        }
    }

    /// Threads and interrupts that move: of these the number, and the CPUs that they leave and may then use.
    fn moved(&self, changes: &[Change]) -> (Vec<Move>, Vec<(u32, CpuSet, CpuSet)>) {
        let (mut moves, mut interrupts) = (Vec::new(), Vec::new());
        for change in changes {
            let cpus = &change.to;
            match &change.setting {
                Setting::TaskAffinity(thread) => moves.extend(moved(Some(thread.tid), cpus)),
                Setting::VcpuPin { domain, vcpu, .. } => {
                    moves.extend(self.of_domain(domain, cpus, |role| role == Role::Vcpu(*vcpu)));
                }
                Setting::IothreadPin { domain, iothread, .. } => {
                    moves.extend(self.of_domain(domain, cpus, |role| role == Role::IoThread(*iothread)));
                }
                Setting::EmulatorPin { domain, .. } => {
                    moves.extend(self.of_emulator(domain, cpus));
                }
                Setting::IrqAffinity { irq } => interrupts.extend(self.interrupt(*irq, cpus)),
                Setting::PmdMask => moves.extend(self.polling(cpus)),
                // Whom these give CPU time to is not known.
                Setting::TaskPolicy(_)
                | Setting::SysfsWrite { .. }
                | Setting::Sysctl { .. }
                | Setting::ModuleOption { .. } => {}
            }
        }
        (moves, interrupts)
    }

    /// The emulator and what is in its cgroup; a worker that was pinned outside its set is not.
    fn of_emulator(&self, domain: &str, cpus: &str) -> Vec<Move> {
        let threads = || self.machine.threads_of(domain);
        let set = |thread: &Thread| thread.affinity.as_ref().map(|set| set.value.clone());
        let emulator = threads().find(|thread| thread.role == Role::Emulator).and_then(set);
        let within = |thread: &&Thread| {
            let outside = emulator.as_ref().zip(set(thread)).is_some_and(|(all, own)| !own.is_within(all));
            matches!(thread.role, Role::Emulator | Role::Vhost | Role::Other) && !outside
        };
        threads().filter(within).filter_map(|thread| moved(thread.tid, cpus)).collect()
    }

    /// Polling threads under another mask: each that may stay does, the others take what is left.
    fn polling(&self, cpus: &str) -> Vec<Move> {
        let Some(mut left) = CpuSet::parse(cpus) else { return Vec::new() };
        let threads = self.machine.threads.iter().filter(|thread| thread.role == Role::Pmd);
        let now = threads.filter_map(|thread| Some((thread.tid?, thread.affinity.as_ref()?.value.clone())));
        let (stay, go): (Vec<_>, Vec<_>) = now.partition(|(_, now)| !now.is_empty() && now.is_within(&left));
        stay.iter().for_each(|(_, now)| left = left.without(now));
        let free: Vec<String> = left.iter().map(|cpu| cpu.to_string()).collect();
        go.iter().zip(&free).filter_map(|((tid, _), cpu)| moved(Some(*tid), cpu)).collect()
    }

    fn of_domain(&self, domain: &str, cpus: &str, wanted: impl Fn(Role) -> bool) -> Vec<Move> {
        let threads = self.machine.threads_of(domain).filter(|thread| wanted(thread.role));
        threads.filter_map(|thread| moved(thread.tid, cpus)).collect()
    }

    /// The CPUs that an interrupt leaves and those that it is to use.
    fn interrupt(&self, number: u32, cpus: &str) -> Option<(u32, CpuSet, CpuSet)> {
        let irq = self.machine.irqs.iter().find(|irq| irq.number == number)?;
        let asked = irq.affinity.as_ref().map(|asked| &asked.value);
        let from = irq.effective.as_ref().filter(|cpus| !cpus.is_empty()).or(asked)?;
        Some((number, from.clone(), CpuSet::parse(cpus)?))
    }
}

fn moved(tid: Option<i32>, cpus: &str) -> Option<Move> {
    Some(Move { tid: u32::try_from(tid?).ok()?, cpus: CpuSet::parse(cpus)? })
}
