//! Which latencies does the user accept, and does a recording keep to them?
//!
//! ```text
//! TOML --read--> Budget: Goals --------------+
//!                                            +--judge--> Judged: a goal, whose it is, the verdict and what it stands on
//! losses, samples and migrations of a Case --+
//! ```
//! In: a budget, a TOML file of schema `kvmscope.budget/1` or a built-in one, and what was measured. Out: a verdict for each
//! goal, by vCPU, thread or migration. Nothing here is of one question alone: whatever has a limit in time is judged by the same goals.
//! [docs/read/latency.md](../../../../../docs/read/latency.md) has the file's keys and the rules of the verdicts.

mod builtin;
mod episodes;
mod judged;
mod on_losses;
mod on_migrations;
mod on_samples;
mod quantity;
mod read;
mod verdict;
mod windows;

pub use crate::fields::Error;
pub use builtin::{BUILT_IN, built_in, built_in_text};
pub use episodes::{BLOCK_NS, Episodes, Exceeding};
pub use judged::WORKLOAD;
pub use judged::judged;
pub use judged::{Counts, Judged, Judgement, Whose};
pub use judged::{Verdicts, by_goal};
pub use on_losses::{Alone, alone};
pub use on_migrations::{Predicted, predicted};
pub use quantity::exact;
pub use read::{MOST_BYTES, SCHEMA, named};
pub use verdict::{Bounds, Doubt, Verdict};
pub use windows::{moment_ns, windows_ns};

use crate::losses::{Definition, Stretches, VcpuLosses};
use crate::samples::Measures;
use base::CpuSet;
use base::figure::{Limit, On};
use std::collections::BTreeSet;

/// What a user accepts.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    pub name: String,
    pub goals: Vec<Goal>,
}

/// One limit, and what it takes to judge it.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// Unique in its budget.
    pub id: String,
    pub metric: Metric,
    /// What counts as lost, for metrics of losses.
    pub definition: Definition,
    /// How long a window is, for metrics that have one.
    pub window_ns: Option<u64>,
    /// Which number of all that was measured is judged.
    pub stat: Stat,
    pub op: Op,
    pub limit_ns: u64,
    /// The limit that is wanted later: stated beside the verdict, and not judged.
    pub future_ns: Option<u64>,
    /// Whose goal it is.
    pub scope: Scope,
    /// The load under which it is to hold, as its author calls it: stated beside the verdict.
    pub environment: Option<String>,
    /// Of migrations: what the guest has to be busy with for the goal to be its own; `None`: whatever.
    pub workload: Option<Workload>,
    /// The evidence that a PASS takes.
    pub require: Require,
}

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Metric {
        /// From a timer's expiry to the code that waited for it, as a program in the guest measures it.
        TimerLatency = "timer_latency",
        /// From a device's edge to the guest's handler.
        IrqLatency = "irq_latency",
        /// How long a vCPU lost its CPU without a break.
        PreemptPeriod = "preempt_period",
        /// How much a vCPU lost in any window of a length.
        PreemptWindow = "preempt_window",
        /// From the command that migrates a guest until it runs on the target.
        TotalTime = "total_time",
        /// How long a migrated guest stood still.
        DowntimeVmm = "downtime_vmm",
        /// How long a migrated guest could not be reached.
        DowntimeNet = "downtime_net",
    }
}

base::named! {
    /// What a migrated guest is busy with.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Workload {
        Io = "io",
        Memory = "memory",
    }
}

base::named! {
    /// Which number of all that was measured is judged.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Stat {
        Mean = "mean",
        Max = "max",
        /// The largest over all windows, wherever they begin.
        Sup = "sup",
    }
}

base::named! {
    /// How a number is compared with its limit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Op {
        /// `<`
        Below = "<",
        /// `<=`
        AtMost = "<=",
    }
}

/// Whose goal it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The VM's name; `*` stands for any characters.
    pub vm: String,
    /// Its vCPUs; `None`: all of them.
    pub vcpus: Option<CpuSet>,
}

/// The evidence that a PASS takes; a FAIL takes none of it but the clock's.
#[derive(Debug, Clone, PartialEq)]
pub struct Require {
    /// How long a vCPU was recorded, at least.
    pub trace_ns: Option<u64>,
    /// Which share of that time may be unknown.
    pub unknown_share: Option<f64>,
    /// How far off the clocks may be, beside a quarter of the limit.
    pub clock_error_ns: Option<u64>,
    /// How many samples there are, at least.
    pub samples: Option<u64>,
    /// How sure the bound on the share of samples over the limit is.
    pub confidence: f64,
}

impl Budget {
    /// The lengths of the windows that its goals are about, in their order.
    pub fn windows_ns(&self) -> impl Iterator<Item = u64> {
        self.goals.iter().filter_map(|goal| goal.window_ns)
    }

    /// Its goals on this metric of losses, as far as they are judged by what the host took.
    pub fn on_losses(&self, metric: Metric) -> impl Iterator<Item = &Goal> {
        let is_of_losses = metric.is_of_losses();
        self.goals
            .iter()
            .filter(move |goal| is_of_losses && goal.metric == metric && goal.definition == Definition::Involuntary)
    }

    pub fn on_longest(&self, measures: Measures) -> impl Iterator<Item = &Goal> {
        let is_of = move |goal: &&Goal| on_samples::measures(goal.metric) == Some(measures) && goal.stat == Stat::Max;
        self.goals.iter().filter(is_of)
    }

    /// When a vCPU broke a goal on losses, for certain.
    pub fn breaches(&self, vm: &str, vcpu: u32, losses: &VcpuLosses) -> Stretches {
        on_losses::breaches(self.goals.iter().filter(|goal| goal.scope.has(vm, vcpu)), losses)
    }

    /// The limits that its goals set to samples of this kind, each once.
    pub fn limits_ns(&self, measures: Measures) -> BTreeSet<u64> {
        let judged = self.goals.iter().filter(|goal| on_samples::measures(goal.metric) == Some(measures));
        judged.map(|goal| goal.limit_ns).collect()
    }
}

impl Goal {
    /// The largest amount that keeps to the limit.
    pub fn most_ns(&self) -> u64 {
        match self.op {
            Op::AtMost => self.limit_ns,
            Op::Below => self.limit_ns.saturating_sub(1),
        }
    }

    /// The limit as a picture has it whose axis `on` is what the goal judges. What is lost in a window is no less in a longer one, so
    /// a limit on windows holds for all shorter ones as well.
    pub fn drawn(&self, on: On) -> Limit {
        let until = self.window_ns.map(|window_ns| window_ns as f64);
        Limit { label: self.id.clone(), on, value: self.limit_ns as f64, until }
    }
}

/// What may count as a loss.
const DEFINITIONS: [Definition; 2] = [Definition::Involuntary, Definition::ExitToEntry { include_halts: false }];

/// How sure a bound is where nobody says otherwise.
pub(crate) const CONFIDENCE: f64 = 0.95;

impl Metric {
    pub fn words(self) -> &'static str {
        match self {
            Metric::TimerLatency => "timer latency",
            Metric::IrqLatency => "interrupt latency",
            Metric::PreemptPeriod => "the longest preemption",
            Metric::PreemptWindow => "losses in windows",
            Metric::TotalTime => "the time that a migration takes",
            Metric::DowntimeVmm => "how long a migrated guest stands still",
            Metric::DowntimeNet => "how long a migrated guest cannot be reached",
        }
    }

    pub fn stats(self) -> &'static [Stat] {
        match self {
            Metric::TimerLatency | Metric::IrqLatency => &[Stat::Mean, Stat::Max],
            Metric::PreemptPeriod | Metric::TotalTime | Metric::DowntimeVmm | Metric::DowntimeNet => &[Stat::Max],
            Metric::PreemptWindow => &[Stat::Sup],
        }
    }

    /// True if a trace's losses are judged, and not samples that a program measured.
    pub fn is_of_losses(self) -> bool {
        match self {
            Metric::PreemptPeriod | Metric::PreemptWindow => true,
            Metric::TimerLatency
            | Metric::IrqLatency
            | Metric::TotalTime
            | Metric::DowntimeVmm
            | Metric::DowntimeNet => false,
        }
    }

    /// True if a live migration is judged, recorded or predicted.
    pub fn is_of_migrations(self) -> bool {
        match self {
            Metric::TotalTime | Metric::DowntimeVmm | Metric::DowntimeNet => true,
            Metric::TimerLatency | Metric::IrqLatency | Metric::PreemptPeriod | Metric::PreemptWindow => false,
        }
    }

    /// True if it is of windows, whose length the goal states.
    pub fn has_window(self) -> bool {
        self == Metric::PreemptWindow
    }
}

impl Op {
    /// Whether `value_ns` keeps to the limit.
    pub fn holds(self, value_ns: u64, limit_ns: u64) -> bool {
        match self {
            Op::Below => value_ns < limit_ns,
            Op::AtMost => value_ns <= limit_ns,
        }
    }
}

impl Scope {
    /// Whether the goal is one of this vCPU.
    pub fn has(&self, vm: &str, vcpu: u32) -> bool {
        self.may_have(Some(vm), Some(vcpu))
    }

    /// The same where the name or the number may not be known: then the goal is theirs if it is everybody's.
    pub(crate) fn may_have(&self, vm: Option<&str>, vcpu: Option<u32>) -> bool {
        let is_vm = vm.map_or(self.vm == "*", |vm| matches(&self.vm, vm));
        is_vm && self.vcpus.as_ref().is_none_or(|vcpus| vcpu.is_some_and(|vcpu| vcpus.contains(vcpu)))
    }
}

impl Default for Scope {
    /// Every vCPU of every VM.
    fn default() -> Self {
        Self { vm: "*".to_owned(), vcpus: None }
    }
}

impl Default for Require {
    fn default() -> Self {
        Self { trace_ns: None, unknown_share: None, clock_error_ns: None, samples: None, confidence: CONFIDENCE }
    }
}

/// Whether `name` is what `pattern` describes, in which each `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests;
