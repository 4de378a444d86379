//! The model becomes the numbers that tables, findings and sentences share.

use super::model::{ChainSums, ExitSums, Flow, PartFlow, Sums, Vcpu};
use crate::Given;
use base::{Histogram, Level};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use walk::events::details::Detail;
use walk::events::reasons::{Class, Isa, Reason};
use walk::state::{State, TracedLevel};

/// The ledgers of so many vCPUs can be read one by one: about a screen of 50 lines. More need an overview first.
const FEW_VCPUS: usize = 4;

/// What is said in place of shares where all events have one time stamp.
pub const NO_TIME: &str = "No time passes between the first and the last event, so shares of the time are unknown.";

/// The numbers of one trace.
pub struct Measures<'f> {
    pub part: &'f PartFlow,
    /// The vCPUs that the user did not narrow away.
    pub vcpus: Vec<&'f Vcpu>,
    /// The level whose exits, and the chains of whose exits, are wanted alone.
    pub level: Option<Level>,
    pub exits: u64,
    /// Exits per level and reason over all vCPUs, most frequent first.
    pub reasons: Vec<ReasonTotal>,
    /// Chains of all reasons and vCPUs together.
    pub chains: ChainTotal,
    /// Time of all vCPUs together.
    pub wall_ns: u64,
    /// True if a nested guest was seen.
    pub nested: bool,
}

/// All exits of one level and reason.
pub struct ReasonTotal {
    /// Level of the guest that left.
    pub level: Level,
    pub reason: Reason,
    pub count: u64,
    /// Time until the next entry.
    pub total_ns: u64,
    /// What they were about, most frequent first: count and time.
    pub details: Vec<(Detail, u64, u64)>,
    /// Who handled them: kernel, userspace, guest hypervisor.
    pub handled: [u64; 3],
}

#[derive(Default)]
pub struct ChainTotal {
    pub count: u64,
    /// Closed ones in which the guest hypervisor halted or whose nested guest moved; all that follows is of the others.
    pub disturbed: u64,
    /// Closed ones that nothing disturbed.
    pub undisturbed: u64,
    /// Exits per undisturbed chain.
    pub exits: Histogram,
    /// Cost per undisturbed chain.
    pub cost_ns: Histogram,
    /// Exits by reason over all undisturbed chains.
    pub per_reason: FxHashMap<Reason, u64>,
    /// Sequences of exits: how often each came after what the nested guest left for.
    sequences: FxHashMap<Vec<Reason>, BTreeMap<Reason, u64>>,
}

impl ChainTotal {
    /// Mean number of exits of class `class` in a chain.
    pub fn per_chain(&self, class: Class) -> f64 {
        let exits: u64 = self.per_reason.iter().filter(|(reason, _)| reason.class() == class).map(|(_, n)| n).sum();
        if self.undisturbed == 0 { 0.0 } else { exits as f64 / self.undisturbed as f64 }
    }

    /// The most frequent sequence of exits: what the nested guest left for most often before it, the exits, how often in all.
    pub fn typical(&self) -> Option<(Reason, &[Reason], u64)> {
        let all =
            self.sequences.iter().map(|(sequence, by_reason)| (by_reason.values().sum::<u64>(), sequence, by_reason));
        let (count, sequence, by_reason) = all.max_by_key(|(count, sequence, _)| (*count, Reverse(*sequence)))?;
        let (reason, _) = by_reason.iter().max_by_key(|(reason, count)| (**count, Reverse(**reason)))?;
        Some((*reason, sequence, count))
    }

    fn add(&mut self, reason: Reason, sums: &ChainSums) {
        self.count += sums.count;
        self.disturbed += sums.disturbed;
        self.undisturbed += sums.exits.count();
        self.exits.merge(&sums.exits);
        self.cost_ns.merge(&sums.cost_ns);
        sums.by_reason().for_each(|(exit, count)| *self.per_reason.entry(exit).or_default() += count);
        for (sequence, count) in &sums.sequences {
            *self.sequences.entry(sequence.clone()).or_default().entry(reason).or_default() += count;
        }
    }
}

impl<'f> Measures<'f> {
    /// The numbers of `part`, narrowed as the user asked.
    pub fn of(part: &'f PartFlow, given: &Given) -> Self {
        let vcpus: Vec<&Vcpu> = part.vcpus.iter().filter(|vcpu| given.narrow.wants_vcpu(&vcpu.vm, vcpu.vcpu)).collect();
        let mut measure = Self {
            exits: 0,
            wall_ns: vcpus.iter().map(|vcpu| vcpu.sums.wall_ns()).sum(),
            nested: !part.seen.nothing_nested(),
            level: given.narrow.level,
            part,
            vcpus,
            reasons: Vec::new(),
            chains: ChainTotal::default(),
        };
        let mut by_reason: FxHashMap<(Level, Reason), ReasonTotal> = FxHashMap::default();
        let mut chains = ChainTotal::default();
        for vcpu in &measure.vcpus {
            for (level, reason, sums) in measure.exits_of(vcpu) {
                let total = by_reason.entry((level, reason)).or_insert_with(|| ReasonTotal::new(level, reason));
                total.add(sums);
            }
            measure.chains_of(vcpu).for_each(|(reason, sums)| chains.add(*reason, sums));
        }
        let mut reasons: Vec<ReasonTotal> = by_reason.into_values().collect();
        reasons.iter_mut().for_each(ReasonTotal::sort_details);
        reasons.sort_by_key(|total| (std::cmp::Reverse(total.count), total.level, total.reason));
        measure.exits = reasons.iter().map(|total| total.count).sum();
        (measure.reasons, measure.chains) = (reasons, chains);
        measure
    }

    /// True if exits of guests at `level` are wanted.
    pub fn wants(&self, level: Level) -> bool {
        self.level.is_none_or(|wanted| wanted == level)
    }

    pub fn exits_of<'v>(&self, vcpu: &'v Vcpu) -> impl Iterator<Item = (Level, Reason, &'v ExitSums)> {
        let part = self.part;
        let exits = vcpu.sums.exits.iter().map(move |((level, reason), sums)| (part.level_of(*level), *reason, sums));
        exits.filter(|(level, ..)| self.wants(*level))
    }

    pub fn exit_count_of(&self, vcpu: &Vcpu) -> u64 {
        self.exits_of(vcpu).map(|(.., sums)| sums.count).sum()
    }

    /// The chains of a vCPU, which are about exits two levels above the recorded machine, if those are wanted.
    pub fn chains_of<'v>(&self, vcpu: &'v Vcpu) -> impl Iterator<Item = (&'v Reason, &'v ChainSums)> {
        vcpu.sums.chains.iter().filter(|_| self.wants(self.level_above(2)))
    }

    /// What shares of exits are taken from, in words.
    pub fn all_exits(&self) -> String {
        self.level.map_or_else(|| "all exits".to_owned(), |level| format!("the exits of {level}"))
    }

    /// Exits for which `wanted` holds: count and time.
    pub fn exits_where(&self, wanted: impl Fn(&ReasonTotal) -> bool) -> (u64, u64) {
        let hits = self.reasons.iter().filter(|total| wanted(total));
        hits.fold((0, 0), |(count, ns), total| (count + total.count, ns + total.total_ns))
    }

    /// Exits of details for which `wanted` holds: count and time.
    pub fn details_where(&self, wanted: impl Fn(&ReasonTotal, Detail) -> bool) -> (u64, u64) {
        let mut sums = (0, 0);
        for total in &self.reasons {
            for (detail, count, total_ns) in &total.details {
                if wanted(total, *detail) {
                    sums = (sums.0 + count, sums.1 + total_ns);
                }
            }
        }
        sums
    }

    /// `count` as a share of all exits.
    pub fn share(&self, count: u64) -> f64 {
        if self.exits == 0 { 0.0 } else { count as f64 / self.exits as f64 }
    }

    /// Time of all vCPUs in states for which `wanted` holds.
    pub fn state_ns(&self, wanted: impl Fn(State) -> bool) -> u64 {
        self.vcpus.iter().map(|vcpu| vcpu.sums.ns_where(&wanted)).sum()
    }

    /// Whether there are exits, and of no instant is it known what the vCPUs did: a trace of exits without entries.
    pub fn is_untimed(&self) -> bool {
        let all = |vcpu: &&Vcpu| vcpu.sums.ns(State::Unknown) == vcpu.sums.wall_ns();
        self.wall_ns > 0 && self.exits > 0 && self.vcpus.iter().all(all)
    }

    /// The vCPUs of each VM, in the order of names.
    pub fn by_vm(&self) -> BTreeMap<&'f str, Vec<&'f Vcpu>> {
        let mut vms: BTreeMap<&str, Vec<&Vcpu>> = BTreeMap::new();
        self.vcpus.iter().for_each(|vcpu| vms.entry(&vcpu.vm).or_default().push(vcpu));
        vms
    }

    /// True if the vCPUs are too many to be read one by one.
    pub fn is_of_many(&self) -> bool {
        self.vcpus.len() > FEW_VCPUS
    }

    /// The instruction set that the most frequent exit names, whatever the question is narrowed to.
    pub fn isa(&self) -> Option<Isa> {
        let exits = self.part.vcpus.iter().flat_map(|vcpu| vcpu.sums.exits.iter());
        let most = exits.max_by_key(|((_, reason), sums)| (sums.count, std::cmp::Reverse(*reason)));
        most.map(|((_, reason), _)| reason.isa)
    }

    /// The level `depth` above the machine that was recorded.
    pub fn level_above(&self, depth: u8) -> Level {
        match self.part.level {
            Level::At(base) => Level::At(base + depth),
            unnumbered => unnumbered,
        }
    }

    /// Name of a task; thread 0 of every CPU is its idle task.
    pub fn task_name(&self, tid: i32) -> String {
        match self.part.comms.get(&tid) {
            Some(name) => name.clone(),
            None if tid == 0 => "idle".into(),
            None => "unknown".into(),
        }
    }

    /// Exits whose level the trace does not tell.
    pub fn unknown_level(&self) -> u64 {
        self.exits_where(|total| total.level == Level::Unknown).0
    }
}

impl ReasonTotal {
    fn new(level: Level, reason: Reason) -> Self {
        Self { level, reason, count: 0, total_ns: 0, details: Vec::new(), handled: [0; 3] }
    }

    fn add(&mut self, sums: &ExitSums) {
        self.count += sums.count;
        self.total_ns += sums.cost_ns.sum();
        for (sum, more) in self.handled.iter_mut().zip(sums.handled) {
            *sum += more;
        }
        self.details.extend(sums.details.iter().map(|(detail, (count, ns))| (*detail, *count, *ns)));
    }

    /// Joins equal details of several vCPUs and puts the most frequent first.
    fn sort_details(&mut self) {
        self.details.sort_unstable_by_key(|(detail, ..)| *detail);
        self.details.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1 += next.1;
                first.2 += next.2;
            }
            same
        });
        self.details.sort_by_key(|(detail, count, _)| (std::cmp::Reverse(*count), *detail));
    }
}

/// Events that recorders count as lost; `missed` ones are met as gaps, and are the same where both are there.
pub const STATED: &[&str] = &["overrun", "commit_overrun", "discarded", "dropped"];

impl PartFlow {
    /// Events that are missing. What a file states of its CPUs and the gaps met in their streams are the same events,
    /// so the larger sum counts. Files claim these numbers; absurd ones saturate.
    pub fn lost_events(&self) -> u64 {
        let sum = |kinds: &[&str]| {
            let of_kinds = self.losses.iter().filter(|loss| kinds.contains(&loss.kind.as_str()));
            of_kinds.fold(0u64, |sum, loss| sum.saturating_add(loss.count))
        };
        sum(&["missed"]).max(sum(STATED))
    }

    /// Places at which the trace is damaged or breaks off: how many events that cost, nobody knows.
    pub fn damaged_places(&self) -> u64 {
        let damage = self.losses.iter().filter(|loss| matches!(loss.kind.as_str(), "salvaged" | "damaged"));
        damage.fold(0, |places, loss| places.saturating_add(loss.count))
    }

    /// A level as everybody counts it: the trace's own guests are one above the machine it was recorded on.
    pub fn level_of(&self, level: TracedLevel) -> Level {
        crate::ledger::levels::level_of(self.level, level)
    }
}

/// The state of overhead in which most time went, and how much.
pub fn worst_state(sums: &Sums) -> Option<(State, u64)> {
    let states = sums.states_ns.iter().enumerate().map(|(index, ns)| (State::of_index(index), *ns));
    states.filter(|(state, ns)| state.is_overhead() && *ns > 0).max_by_key(|(_, ns)| *ns)
}

/// A sequence of exits as people write it: each reason once, with how often, in the order of first occurrence.
pub fn grouped(sequence: &[Reason]) -> Vec<(String, usize)> {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for reason in sequence {
        let name = reason.name();
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => groups.push((name, 1)),
        }
    }
    groups
}

/// A sequence of exits in its order; neighbours of one reason are one entry with how often.
pub fn in_order(sequence: &[Reason]) -> Vec<(String, usize)> {
    let runs = sequence.chunk_by(|one, next| one == next);
    runs.map(|run| (run[0].name(), run.len())).collect()
}

/// The numbers of all traces that answer for a machine; the same narrowing for each.
pub fn measure<'f>(flow: &'f Flow, given: &Given) -> Vec<Measures<'f>> {
    let answering = flow.parts.iter().filter(|part| part.twin_of.is_none());
    answering.map(|part| Measures::of(part, given)).collect()
}
