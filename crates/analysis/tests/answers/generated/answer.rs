//! An answer in a form in which the generator's truth and the analysis's finding can be compared.

use base::Histogram;
use generate::Vendor;
use generate::truth::{self, ClosedChain, Truth, VcpuTruth};
use kvmscope_analysis::facts::ledger::model::{ChainSums, PartFlow, Vcpu};
use kvmscope_analysis::facts::stages::{IrqStage, TimerStage};
use kvmscope_analysis::facts::{Isa, Reason, State, TracedLevel};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Who ran where the trace does not tell it.
pub(super) const UNKNOWN_TASK: &str = "unknown";

pub(super) type Sum = (u64, u64);

/// What is known of one vCPU thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub vcpu: u32,
    /// Time by column of the table `vcpus`, absent ones being 0.
    pub ledger: BTreeMap<String, u64>,
    /// By level and name of the reason.
    pub exits: BTreeMap<(String, String), Sum>,
    /// By name of the reason as injected.
    pub chains: BTreeMap<String, Chains>,
    /// By name of the task.
    pub preemptors: BTreeMap<String, Sum>,
    pub host_interrupts: BTreeMap<String, Sum>,
    /// Stages of virtual interrupts by vector and name, those of the guest's timer behind `timer `; `merged` and `posted`
    /// have no time.
    pub stages: BTreeMap<(u8, String), Sum>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chains {
    pub count: u64,
    /// Not closed.
    pub censored: u64,
    /// With a halt inside, or closed by or behind another guest; what follows is of the others.
    pub disturbed: u64,
    /// With a halt inside.
    pub interrupted: u64,
    /// How many chains had which length.
    pub lengths: BTreeMap<u64, u64>,
    /// Median, p90, p99 and longest.
    pub quantiles: Vec<u64>,
    /// All exits in them.
    pub exits: u64,
    pub total_ns: u64,
}

impl Answer {
    /// What the generator's books say, by thread.
    pub(super) fn true_of(truth: &Truth) -> BTreeMap<i32, Answer> {
        let isa = match truth.vendor {
            Vendor::Vmx => Isa::Vmx,
            Vendor::Svm => Isa::Svm,
        };
        truth.vcpus.iter().map(|vcpu| (vcpu.tid, Self::of_books(vcpu, isa))).collect()
    }

    fn of_books(vcpu: &VcpuTruth, isa: Isa) -> Self {
        let name = |reason: u32| Reason::of(isa, reason.into()).name();
        let mut answer = Answer { vcpu: vcpu.vcpu, ..Answer::default() };
        for (state, ns) in &vcpu.ledger {
            add(&mut answer.ledger, state.column(), *ns);
        }
        for (key, tally) in &vcpu.exits {
            let sum = answer.exits.entry((format!("L{}", key.level), name(key.reason))).or_default();
            *sum = (sum.0 + tally.count, sum.1 + tally.total_ns);
        }
        for (reason, chains) in &vcpu.chains {
            answer.chains.insert(name(*reason), Chains::of_books(chains));
        }
        for (comm, tally) in &vcpu.preemptors {
            answer.preemptors.insert(comm.clone(), (tally.count, tally.total_ns));
        }
        for (name, tally) in &vcpu.host_interrupts {
            answer.host_interrupts.insert(name.clone(), (tally.count, tally.total_ns));
        }
        for (vector, interrupts) in &vcpu.interrupts {
            let stages = interrupts.stages.iter().map(|(name, tally)| (*name, (tally.count, tally.total_ns)));
            let counts = [("merged", (interrupts.merged, 0)), ("posted", (interrupts.posted, 0))];
            answer.add_stages(*vector, stages.chain(counts));
        }
        answer
    }

    /// What the analysis found, by thread.
    pub(super) fn found_in(part: &PartFlow) -> BTreeMap<i32, Answer> {
        part.vcpus.iter().map(|vcpu| (vcpu.tid, Self::of_sums(part, vcpu))).collect()
    }

    fn of_sums(part: &PartFlow, vcpu: &Vcpu) -> Self {
        let mut answer = Answer { vcpu: vcpu.vcpu, ..Answer::default() };
        for (index, ns) in vcpu.sums.states_ns.iter().enumerate().filter(|(_, ns)| **ns > 0) {
            add(&mut answer.ledger, column(State::of_index(index)), *ns);
        }
        for ((level, reason), exits) in vcpu.sums.exits.iter() {
            let sum = answer.exits.entry((part.level_of(*level).to_string(), reason.name())).or_default();
            *sum = (sum.0 + exits.count, sum.1 + exits.cost_ns.sum());
        }
        for (reason, sums) in vcpu.sums.chains.iter() {
            answer.chains.insert(reason.name(), Chains::of_sums(sums));
        }
        for (tid, sums) in &vcpu.sums.preemptors {
            let name = tid.and_then(|tid| part.comms.get(&tid).cloned()).unwrap_or_else(|| UNKNOWN_TASK.to_owned());
            let sum = answer.preemptors.entry(name).or_default();
            *sum = (sum.0 + sums.count, sum.1 + sums.total_ns);
        }
        for (by, sums) in &vcpu.sums.host_interrupts {
            let name = part.handlers.title(*by).into_owned();
            answer.host_interrupts.insert(name, (sums.count, sums.total_ns));
        }
        for (vector, sums) in vcpu.sums.interrupts.iter() {
            let sum = |histogram: &Histogram| (histogram.count(), histogram.sum());
            let irq = IrqStage::ALL.map(|stage| (stage.name().to_owned(), sum(sums.irq(stage))));
            let timer = TimerStage::ALL.map(|stage| (format!("timer {}", stage.name()), sum(sums.timer(stage))));
            let counts = [("merged", sums.merged), ("posted", sums.posted)];
            let counts = counts.map(|(name, count)| (name.to_owned(), (count, 0)));
            answer.add_stages(vector.0, irq.into_iter().chain(timer).chain(counts));
        }
        answer
    }

    fn add_stages<N: Into<String>>(&mut self, vector: u8, stages: impl Iterator<Item = (N, Sum)>) {
        let met = stages.filter(|(_, sum)| sum.0 > 0);
        self.stages.extend(met.map(|(name, sum)| ((vector, name.into()), sum)));
    }

    pub(super) fn wall_ns(&self) -> u64 {
        self.ledger.values().sum()
    }
}

impl Chains {
    fn of_books(chains: &truth::Chains) -> Self {
        let (disturbed, others): (Vec<ClosedChain>, Vec<ClosedChain>) =
            chains.closed.iter().copied().partition(|chain| chain.halted || chain.moved);
        let mut sorted: Vec<u64> = others.iter().map(|chain| chain.exits).collect();
        sorted.sort_unstable();
        let mut lengths = BTreeMap::new();
        sorted.iter().for_each(|length| *lengths.entry(*length).or_default() += 1);
        // The smallest length at or below which the share lies.
        let place = |share: f64| ((share * sorted.len() as f64).ceil() as usize).max(1) - 1;
        let quantiles = [0.5, 0.9, 0.99, 1.0].into_iter().filter_map(|share| sorted.get(place(share)).copied());
        Self {
            count: chains.count,
            censored: chains.censored,
            disturbed: disturbed.len() as u64,
            interrupted: disturbed.iter().filter(|chain| chain.halted).count() as u64,
            quantiles: quantiles.collect(),
            exits: sorted.iter().sum(),
            lengths,
            total_ns: others.iter().map(|chain| chain.cost_ns).sum(),
        }
    }

    fn of_sums(sums: &ChainSums) -> Self {
        let mut lengths = BTreeMap::new();
        for (sequence, count) in &sums.sequences {
            *lengths.entry(sequence.len() as u64).or_default() += count;
        }
        Self {
            count: sums.count,
            censored: sums.censored,
            disturbed: sums.disturbed,
            interrupted: sums.interrupted,
            lengths,
            quantiles: [0.5, 0.9, 0.99, 1.0].into_iter().filter_map(|share| sums.exits.quantile(share)).collect(),
            exits: sums.exits.sum(),
            total_ns: sums.cost_ns.sum(),
        }
    }
}

fn add(ledger: &mut BTreeMap<String, u64>, column: String, ns: u64) {
    if ns > 0 {
        *ledger.entry(column).or_default() += ns;
    }
}

/// Column of the table `vcpus` that a state is in (CONTRACTS section 3).
fn column(state: State) -> String {
    let level = |what: &str, level: TracedLevel| match level.depth() {
        Some(depth) => format!("{what}_l{depth}_ns"),
        None => format!("{what}_unknown_level_ns"),
    };
    let plain = match state {
        State::Guest(depth) => return level("guest", depth),
        State::Handling(depth) => return level("handling", depth),
        State::Userspace => "userspace_ns",
        State::Irq => "irq_ns",
        State::Softirq => "softirq_ns",
        State::Nmi => "nmi_ns",
        State::HaltPoll => "halt_poll_ns",
        State::Halted => "halted_ns",
        State::WakeDelay => "wake_delay_ns",
        State::Preempted => "preempted_ns",
        State::Blocked => "blocked_ns",
        State::Unknown => "unknown_ns",
    };
    plain.to_owned()
}

/// Lines that say where `found` is not what is `true`.
pub(super) fn differences<K: Ord + Debug, V: PartialEq + Debug>(
    what: &str,
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
) -> Vec<String> {
    let mut keys: Vec<&K> = expected.keys().chain(found.keys()).collect();
    keys.sort();
    keys.dedup();
    let differs = keys.into_iter().filter(|key| expected.get(key) != found.get(key));
    differs.map(|key| format!("{what} {key:?}: true {:?}, found {:?}", expected.get(key), found.get(key))).collect()
}
