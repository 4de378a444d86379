//! What were vCPUs busy with in one recording?

use crate::Case;
use crate::facts::ledger::levels;
use crate::facts::ledger::measure::measure;
use crate::facts::state::{State, TracedLevel};
use base::Level;
use std::collections::BTreeMap;

/// States in which no CPU works for a vCPU, or nobody knows; by their columns' names.
const NOT_BUSY: [&str; 5] = ["halted", "blocked", "preempted", "wake_delay", "unknown"];
/// How the name of a state begins in which KVM worked on an exit of a guest of that level.
const HANDLING: &str = "handling_l";
const USERSPACE: &str = "userspace";
const POLLING: &str = "halt_poll";

/// A part of the time, by the state's name and title and the reason of the exit that was worked on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Component {
    state: String,
    title: String,
    reason: String,
}

impl Component {
    /// One of that state, by the names that columns and people have for it, and of that reason.
    pub fn new(state: &str, title: &str, reason: &str) -> Self {
        Self { state: state.to_owned(), title: title.to_owned(), reason: reason.to_owned() }
    }

    /// `VMREAD of L1 in L0`: what people call it.
    pub fn title(&self) -> String {
        match (self.level(), self.reason.as_str()) {
            (_, "") => self.title.clone(),
            (Some(level), reason) => format!("{reason} of L{level}"),
            (None, reason) => format!("{reason}, {}", self.title),
        }
    }

    /// The level of the guest whose exits are worked on.
    pub fn level(&self) -> Option<u8> {
        self.state.strip_prefix(HANDLING)?.parse().ok()
    }

    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// KVM or the VMM works on exits.
    pub fn is_work(&self) -> bool {
        self.level().is_some() || self.state == USERSPACE
    }

    pub fn is_polling(&self) -> bool {
        self.state == POLLING
    }

    /// What it took where it was not seen.
    pub fn nothing(&self) -> Spent {
        Spent { share: 0.0, per_s: (self.level().is_some() && !self.reason.is_empty()).then_some(0.0) }
    }
}

/// What a part took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Of the vCPUs' time.
    pub share: f64,
    /// Exits in a second of that, for work on exits.
    pub per_s: Option<f64>,
}

impl Spent {
    /// Of several recordings.
    pub fn mean(values: &[Self]) -> Self {
        let mean = |of: &dyn Fn(&Self) -> f64| values.iter().map(of).sum::<f64>() / values.len().max(1) as f64;
        let are_exits = values.iter().any(|spent| spent.per_s.is_some());
        Self { share: mean(&|spent| spent.share), per_s: are_exits.then(|| mean(&|spent| spent.per_s.unwrap_or(0.0))) }
    }

    /// What one exit takes.
    pub fn cost_ns(self) -> Option<f64> {
        self.per_s.filter(|per_s| *per_s > 0.0).map(|per_s| self.share / per_s * 1e9)
    }
}

/// All parts of one recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shares {
    pub parts: BTreeMap<Component, Spent>,
}

impl Shares {
    /// What the vCPUs that are wanted were busy with; `None` if there are none.
    pub fn of(case: &Case) -> Option<Self> {
        let mut wall_ns = 0_u64;
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut wanted = std::collections::BTreeSet::new();
        for measure in measure(case.ledger(), case.given()).iter().filter(|measure| measure.part.aligned.is_none()) {
            wall_ns += measure.wall_ns;
            for vcpu in &measure.vcpus {
                wanted.insert((vcpu.vm.clone(), vcpu.vcpu));
                for (level, reason, sums) in measure.exits_of(vcpu) {
                    let name = levels::name(measure.part.level, State::Handling(traced(measure.part.level, level)));
                    *counts.entry((name, reason.name())).or_default() += sums.count;
                }
            }
        }
        if wall_ns == 0 {
            return None;
        }
        let mut times: BTreeMap<Component, u64> = BTreeMap::new();
        for vcpu in case.stacks().iter().filter(|vcpu| wanted.contains(&(vcpu.vm.clone(), vcpu.vcpu))) {
            for ((state, reason), sum) in &vcpu.sums {
                if NOT_BUSY.contains(&state.name.as_str()) {
                    continue;
                }
                *times.entry(Component::new(&state.name, &state.title, reason)).or_default() += sum.time_ns;
            }
        }
        let spent = |(part, ns): (Component, u64)| {
            let count = counts.get(&(part.state.clone(), part.reason.clone())).copied();
            let per_s = part.nothing().per_s.map(|_| count.unwrap_or(0) as f64 / (wall_ns as f64 / 1e9));
            let spent = Spent { share: ns as f64 / wall_ns as f64, per_s };
            (part, spent)
        };
        Some(Self { parts: times.into_iter().map(spent).collect() })
    }

    /// Of the vCPUs' time.
    pub fn busy(&self) -> f64 {
        self.parts.values().map(|spent| spent.share).sum()
    }
}

/// A level as a trace of `host` counts it.
fn traced(host: Level, level: Level) -> TracedLevel {
    match (host, level) {
        (Level::At(host), Level::At(level)) if level > host => TracedLevel::at(level - host),
        (Level::Below | Level::Unknown, Level::At(level)) if level > 0 => TracedLevel::at(level),
        _ => TracedLevel::Lost,
    }
}
