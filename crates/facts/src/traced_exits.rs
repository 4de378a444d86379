//! What did a recording's own exits cost, and what would come back without some of them?
//!
//! In: the ledger. Out: exits and chains of the recorded host by reason, with their time. Guests' own traces are left out
//! where the host's own is there, which saw the same exits.

use crate::Case;
use crate::estimate::Estimate;
use crate::ledger::measure::{Measures, measure};
use crate::ledger::model::{ChainSums, ExitSums, Vcpu};
use base::Level;
use std::collections::BTreeMap;
use walk::events::details::Detail;
use walk::events::reasons::Reason;
use walk::state::State;
use walk::thread::Handled;

/// States of a vCPU in which no CPU works for it.
const IDLE: [State; 5] = [State::Halted, State::Blocked, State::Preempted, State::WakeDelay, State::Unknown];

const L1: Level = Level::At(1);
const L2: Level = Level::At(2);

/// IA32_TSC_DEADLINE (Intel SDM vol. 4, table 2-2): a write of it arms the local APIC's timer.
const TSC_DEADLINE: u32 = 0x6e0;

/// Exits that last as long as what they ask for.
const LONG: &[&str] = &["VMRESUME", "VMLAUNCH", "VMRUN", "HLT", "MWAIT"];

/// Accesses that shadowing leaves in each chain: HOST_RSP is not in KVM's list of shadowed fields.
const STAYS: f64 = 1.0;

/// With shadowing a chain has one or two accesses, without it ten and more (intel/haxm pull request 130): fewer than this
/// and it is on.
const SHADOWED: f64 = 4.0;

/// Exits and chains of one host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TracedExits {
    /// Time of all vCPUs together.
    pub wall_ns: f64,
    /// Of that, time in which the CPU worked for them: not halted, blocked, pre-empted, waiting or unknown.
    pub busy_ns: f64,
    pub exits: u64,
    /// True if L1's own trace is all there is: its times leave out what L0 did meanwhile.
    pub from_guest: bool,
    /// How many of L2's exits ended in L1's VMM, by reason, where L1's own trace tells.
    pub userspace: BTreeMap<String, u64>,
    /// Exits by level and reason: count and time until the next entry.
    pub by_reason: BTreeMap<(Level, String), (u64, f64)>,
    /// Chains by the reason that L1 was told.
    pub chains: BTreeMap<String, TracedChains>,
    /// L1's exits in undisturbed chains, by reason.
    in_chains: BTreeMap<String, u64>,
    timers: Timers,
}

/// Chains of one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TracedChains {
    pub count: u64,
    /// Those that were closed, and in which L1 did not halt and L2 did not move.
    pub undisturbed: u64,
    /// From L2's exit until L2 runs again, in undisturbed ones.
    pub cost_ns: f64,
}

impl TracedChains {
    fn add(&mut self, sums: &ChainSums) {
        self.count += sums.count;
        self.undisturbed += sums.cost_ns.count();
        self.cost_ns += sums.cost_ns.sum() as f64;
    }

    /// What nesting adds to exits that without it would cost `plain_ns` each: no less than nothing.
    pub fn nested_ns(&self, plain_ns: f64) -> f64 {
        self.cost_ns - (plain_ns * self.undisturbed as f64).min(self.cost_ns)
    }
}

impl TracedExits {
    /// The exits of the case's own traces; `None` if they hold none.
    pub fn of(case: &Case) -> Option<Self> {
        let measures = measure(case.ledger(), case.given());
        let of_host = |measure: &&Measures<'_>| measure.part.level == Level::L0;
        let from_guest = measures.iter().filter(of_host).all(|measure| measure.vcpus.is_empty());
        let (guests, hosts): (Vec<_>, Vec<_>) = measures.iter().partition(|measure| measure.part.level != Level::L0);
        let mut seen = Self { from_guest, ..Self::default() };
        let seen_by = if from_guest { &guests } else { &hosts };
        seen_by.iter().for_each(|measure| seen.add(measure));
        for measure in guests {
            for (level, reason, sums) in measure.vcpus.iter().flat_map(|vcpu| measure.exits_of(vcpu)) {
                if level == L2 {
                    let by_vmm = sums.handled[ExitSums::handler(Handled::Userspace)];
                    *seen.userspace.entry(reason.name()).or_default() += by_vmm;
                }
            }
        }
        (seen.exits > 0 && seen.wall_ns > 0.0).then_some(seen)
    }

    /// The exits of one trace.
    pub fn of_trace(measure: &Measures<'_>) -> Self {
        let mut seen = Self::default();
        seen.add(measure);
        seen
    }

    fn add(&mut self, measure: &Measures<'_>) {
        for vcpu in &measure.vcpus {
            let (wall_ns, idle_ns) = (vcpu.sums.wall_ns(), IDLE.iter().map(|state| vcpu.sums.ns(*state)).sum::<u64>());
            self.wall_ns += wall_ns as f64;
            self.busy_ns += (wall_ns - idle_ns) as f64;
            for (level, reason, sums) in measure.exits_of(vcpu) {
                let sum = self.by_reason.entry((level, reason.name())).or_default();
                *sum = (sum.0 + sums.count, sum.1 + sums.cost_ns.sum() as f64);
                self.exits += sums.count;
                self.timers.add(level, reason, sums);
            }
            for (reason, sums) in measure.chains_of(vcpu) {
                self.chains.entry(reason.name()).or_default().add(sums);
                sums.by_reason().for_each(|(exit, count)| *self.in_chains.entry(exit.name()).or_default() += count);
            }
        }
    }

    /// Chains whose exits and cost are those of one exit of L2.
    pub fn undisturbed(&self) -> u64 {
        self.chains.values().map(|chains| chains.undisturbed).sum()
    }

    /// Exits of these reasons at any level: count and time.
    pub fn of_reasons(&self, reasons: &[&str]) -> (u64, f64) {
        let hits = self.by_reason.iter().filter(|((_, reason), _)| reasons.contains(&reason.as_str()));
        hits.fold((0, 0.0), |sum, (_, more)| (sum.0 + more.0, sum.1 + more.1))
    }

    /// Exits of one reason at one level: count and time.
    pub fn at(&self, level: Level, reason: &str) -> (u64, f64) {
        self.by_reason.get(&(level, reason.to_owned())).copied().unwrap_or_default()
    }

    /// L2's exits a second and vCPU, by reason, and whether they end in L1's VMM: chains of the host's trace, or L2's exits
    /// in L1's own.
    pub fn rates(&self) -> Vec<(String, f64, bool)> {
        let per_second = |count: u64| count as f64 * 1e9 / self.wall_ns;
        let counts: Vec<(&String, u64)> = if self.chains.is_empty() {
            let of_l2 = self.by_reason.iter().filter(|((level, _), _)| *level == L2);
            of_l2.map(|((_, reason), (count, _))| (reason, *count)).collect()
        } else {
            self.chains.iter().map(|(reason, chains)| (reason, chains.count)).collect()
        };
        let split = |(reason, count): (&String, u64)| {
            let user = self.userspace.get(reason).copied().unwrap_or(0).min(count);
            [(reason.clone(), per_second(count - user), false), (reason.clone(), per_second(user), true)]
        };
        counts.into_iter().flat_map(split).filter(|(_, rate, _)| *rate > 0.0).collect()
    }

    /// Mean time of an exit of one reason at one level.
    pub fn mean_ns(&self, level: Level, reason: &str) -> Option<f64> {
        let (count, ns) = self.at(level, reason);
        (count > 0).then(|| ns / count as f64)
    }

    /// Mean time of L1's exits, those that request an entry or wait left out: they last as long as what they ask for.
    pub fn plain_exit_ns(&self) -> f64 {
        let own = self.by_reason.iter().filter(|((level, reason), _)| *level == L1 && !LONG.contains(&reason.as_str()));
        let (count, ns) = own.fold((0, 0.0), |sum, (_, more)| (sum.0 + more.0, sum.1 + more.1));
        ns / count.max(1) as f64
    }

    /// What an exit of this reason costs without nesting: the mean of L1's own, or of all that L1 has.
    pub fn plain_ns(&self, reason: &str) -> f64 {
        self.mean_ns(L1, reason).unwrap_or_else(|| self.plain_exit_ns())
    }

    /// What remains of what nesting adds, if these exits of L1 fell away: by their count at best (all exits cost the same
    /// switches), by their own time at worst. One of them stays in each chain: fields that no shadow holds.
    pub fn remains_without(&self, reasons: &[&str]) -> Option<Estimate> {
        let (count, ns) = self.of_reasons(reasons);
        let per_chain = self.per_chain(reasons);
        let all_ns: f64 = self.chains.values().map(|chains| chains.cost_ns).sum();
        let (stays, least) = if reasons.contains(&"VMWRITE") { (STAYS, SHADOWED) } else { (0.0, 0.0) };
        if count == 0 || per_chain == 0.0 || per_chain < least || all_ns <= 0.0 {
            return None;
        }
        let gone = (per_chain - stays) / per_chain;
        let in_chains_ns = ns * self.in_chains(reasons) as f64 / count as f64;
        let by_count = (1.0 - gone * per_chain / self.exits_per_chain()).clamp(0.0, 1.0);
        let by_time = (1.0 - gone * in_chains_ns / all_ns).clamp(0.0, 1.0);
        let (low, high) = (by_count.min(by_time), by_count.max(by_time));
        Some(Estimate { low, mid: f64::midpoint(low, high), high })
    }

    /// What would come back without these exits of L1, as a share of all vCPUs' time: as [`Self::saved_ns`] says, of all.
    pub fn saved_share(&self, reasons: &[&str]) -> Option<Estimate> {
        let remains = self.remains_without(reasons)?;
        let nested = self.chains.iter().map(|(reason, chains)| chains.nested_ns(self.plain_ns(reason))).sum();
        Some(Estimate::exact(self.share(nested)) * Estimate::exact(1.0).less(remains))
    }

    /// What a vCPU would get back, in ns, if these exits of L1 fell away: of what nesting adds to its chains.
    pub fn saved_ns(&self, measure: &Measures<'_>, vcpu: &Vcpu, remains: Estimate) -> Estimate {
        let mut chains: BTreeMap<String, TracedChains> = BTreeMap::new();
        measure.chains_of(vcpu).for_each(|(reason, sums)| chains.entry(reason.name()).or_default().add(sums));
        let nested_ns: f64 = chains.iter().map(|(reason, chains)| chains.nested_ns(self.plain_ns(reason))).sum();
        let gone = Estimate::exact(1.0).less(remains);
        Estimate::exact(nested_ns) * gone
    }

    /// How much of the exits for MSRs arms a timer, as a share.
    pub fn timer_share(&self) -> f64 {
        self.timers.share()
    }

    /// A time as a share of all vCPUs' time.
    pub fn share(&self, ns: f64) -> f64 {
        ns / self.wall_ns
    }

    fn in_chains(&self, reasons: &[&str]) -> u64 {
        reasons.iter().filter_map(|reason| self.in_chains.get(*reason)).sum()
    }

    /// Exits of these reasons for each undisturbed chain.
    pub fn per_chain(&self, reasons: &[&str]) -> f64 {
        self.in_chains(reasons) as f64 / self.undisturbed().max(1) as f64
    }

    /// Mean number of L1's exits in an undisturbed chain.
    pub fn exits_per_chain(&self) -> f64 {
        self.in_chains.values().sum::<u64>() as f64 / self.undisturbed().max(1) as f64
    }
}

/// Exits for MSRs, and those of them that arm a timer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Timers {
    all: u64,
    timers: u64,
}

impl Timers {
    /// Adds exits, if they are for MSRs; what L1's own are about is told by its chains.
    fn add(&mut self, level: Level, reason: Reason, sums: &ExitSums) {
        if level == L1 || !reason.is_msr_access() {
            return;
        }
        for (detail, (count, _)) in sums.details.iter() {
            self.all += count;
            self.timers += if matches!(detail, Detail::Msr(TSC_DEADLINE, _)) { *count } else { 0 };
        }
    }

    fn share(self) -> f64 {
        if self.all > 0 { self.timers as f64 / self.all as f64 } else { 0.0 }
    }
}
