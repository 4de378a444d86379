//! What did a recording's own exits cost?
//!
//! In: the ledger. Out: exits and chains of the recorded host by reason, with their time. Guests' own traces are left out
//! where the host's own is there, which saw the same exits.

use super::plan::model::Estimate;
use base::Level;
use facts::Case;
use facts::ledger::measure::{Measures, measure};
use facts::ledger::model::ExitSums;
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
    pub(crate) busy_ns: f64,
    /// How much of the exits for MSRs arms a timer, as a share.
    pub(crate) timer_share: f64,
    pub exits: u64,
    /// True if L1's own trace is all there is: its times leave out what L0 did meanwhile.
    pub(crate) from_guest: bool,
    /// How many of L2's exits ended in L1's VMM, by reason, where L1's own trace tells.
    pub userspace: BTreeMap<String, u64>,
    /// Exits by level and reason: count and time until the next entry.
    pub by_reason: BTreeMap<(Level, String), (u64, f64)>,
    /// Chains by the reason that L1 was told: count, and time from L2's exit until L2 runs again.
    pub chains: BTreeMap<String, (u64, f64)>,
    /// Mean number of L1's exits in a chain.
    pub exits_per_chain: f64,
}

impl TracedExits {
    /// The exits of the case's own traces; `None` if they hold none.
    pub fn of(case: &Case) -> Option<Self> {
        let measures = measure(case.ledger(), case.given());
        let of_host = |measure: &&Measures<'_>| measure.part.level == Level::L0;
        let from_guest = measures.iter().filter(of_host).all(|measure| measure.vcpus.is_empty());
        let (guests, hosts): (Vec<_>, Vec<_>) = measures.iter().partition(|measure| measure.part.level != Level::L0);
        let mut seen = Self { from_guest, ..Self::default() };
        let (mut of_chains, mut timers) = (0.0, Timers::default());
        for measure in if from_guest { &guests } else { &hosts } {
            for vcpu in &measure.vcpus {
                let (wall_ns, idle_ns) =
                    (vcpu.sums.wall_ns(), IDLE.iter().map(|state| vcpu.sums.ns(*state)).sum::<u64>());
                seen.wall_ns += wall_ns as f64;
                seen.busy_ns += (wall_ns - idle_ns) as f64;
                for (level, reason, sums) in measure.exits_of(vcpu) {
                    let sum = seen.by_reason.entry((level, reason.name())).or_default();
                    *sum = (sum.0 + sums.count, sum.1 + sums.cost_ns.sum() as f64);
                    seen.exits += sums.count;
                    timers.add(level, reason, sums);
                }
                for (reason, sums) in measure.chains_of(vcpu) {
                    of_chains += sums.count as f64 * sums.exits.mean().unwrap_or(0.0);
                    let sum = seen.chains.entry(reason.name()).or_default();
                    *sum = (sum.0 + sums.count, sum.1 + sums.cost_ns.sum() as f64);
                }
            }
        }
        let all = seen.chain_count();
        seen.exits_per_chain = if all == 0 { 0.0 } else { of_chains / all as f64 };
        seen.timer_share = timers.share();
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

    pub(crate) fn chain_count(&self) -> u64 {
        self.chains.values().map(|(count, _)| count).sum()
    }

    /// Exits of these reasons at any level: count and time.
    pub(crate) fn of_reasons(&self, reasons: &[&str]) -> (u64, f64) {
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
            self.chains.iter().map(|(reason, (count, _))| (reason, *count)).collect()
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
    pub(crate) fn plain_exit_ns(&self) -> f64 {
        let own = self.by_reason.iter().filter(|((level, reason), _)| *level == L1 && !LONG.contains(&reason.as_str()));
        let (count, ns) = own.fold((0, 0.0), |sum, (_, more)| (sum.0 + more.0, sum.1 + more.1));
        ns / count.max(1) as f64
    }

    /// What remains of what nesting adds, if these exits of L1 fell away: by their count at best (all exits cost the same
    /// switches), by their own time at worst. One of them stays in each chain: fields that no shadow holds.
    pub(crate) fn remains_without(&self, reasons: &[&str]) -> Option<Estimate> {
        let (count, ns) = self.of_reasons(reasons);
        let per_chain = self.per_chain(reasons);
        let all_ns: f64 = self.chains.values().map(|(_, ns)| ns).sum();
        let (stays, least) = if reasons.contains(&"VMWRITE") { (STAYS, SHADOWED) } else { (0.0, 0.0) };
        if count == 0 || per_chain <= least || all_ns <= 0.0 {
            return None;
        }
        let gone = (per_chain - stays) / per_chain;
        let by_count = (1.0 - gone * per_chain / self.exits_per_chain).clamp(0.0, 1.0);
        let by_time = (1.0 - gone * ns / all_ns).clamp(0.0, 1.0);
        let (low, high) = (by_count.min(by_time), by_count.max(by_time));
        Some(Estimate { low, mid: f64::midpoint(low, high), high })
    }

    /// A time as a share of all vCPUs' time.
    pub fn share(&self, ns: f64) -> f64 {
        ns / self.wall_ns
    }

    /// Exits of these reasons for each chain.
    pub fn per_chain(&self, reasons: &[&str]) -> f64 {
        self.of_reasons(reasons).0 as f64 / self.chain_count().max(1) as f64
    }
}

/// Exits for MSRs, and those of them that arm a timer.
#[derive(Default)]
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

    fn share(&self) -> f64 {
        if self.all > 0 { self.timers as f64 / self.all as f64 } else { 0.0 }
    }
}
