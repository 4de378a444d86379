//! What did a run come to, by the numbers that a budget judges?

use crate::Case;
use crate::budget::{Budget, Goal, exact};
use crate::losses::Definition;
use base::Span;
use base::number::{decimals, duration};

/// A number of a run; less is better.
#[derive(Debug, Clone, PartialEq)]
pub enum Measure {
    /// How often a goal was broken per second, over all vCPUs: disjoint losses, or disjoint stretches of windows.
    Broken(Goal),
    /// The largest number that a goal judges, in nanoseconds.
    Worst(Goal),
    /// What a vCPU lost of each known second on average, in nanoseconds.
    Lost,
}

/// What is measured of each run that `budget` judges, what decides first first; nothing if it has no goal on losses.
pub fn measures(budget: &Budget) -> Vec<Measure> {
    let goals = || budget.goals.iter().filter(|goal| goal.metric.is_of_losses()).cloned();
    let judged = goals().map(Measure::Broken).chain(goals().map(Measure::Worst));
    let lost = goals().next().map(|_| Measure::Lost);
    judged.chain(lost).collect()
}

impl Measure {
    pub fn name(&self) -> String {
        let limit = |goal: &Goal| format!("{} {} {}", goal.id, goal.op.name(), exact(goal.limit_ns));
        match self {
            Measure::Broken(goal) => format!("breaches of {}, per second", limit(goal)),
            Measure::Worst(goal) => match goal.window_ns {
                Some(window_ns) => format!("largest loss in {}", exact(window_ns)),
                None => "longest loss".to_owned(),
            },
            Measure::Lost => "lost per second of a vCPU".to_owned(),
        }
    }

    /// The unit of its values.
    pub fn unit(&self) -> &'static str {
        match self {
            Measure::Broken(_) => "1/s",
            Measure::Worst(_) | Measure::Lost => "ns",
        }
    }

    pub fn shown(&self, value: f64) -> String {
        match self {
            Measure::Broken(_) => decimals(value, 1),
            Measure::Worst(_) | Measure::Lost => duration(value),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub(super) values: Vec<f64>,
    /// How many vCPUs were judged.
    pub vcpus: usize,
    /// The share of their time that is unknown.
    pub unknown_share: f64,
}

impl Run {
    /// What the recording of a run shows, judged by the case's budget; `None` if it has none, or if no vCPU was judged by each
    /// of its goals on losses.
    pub fn of(case: &Case) -> Option<Self> {
        let budget = case.budget()?;
        let parts = case.ledger().parts.iter().zip(case.losses()).filter(|(part, _)| part.twin_of.is_none());
        let all = parts.flat_map(|(part, losses)| part.vcpus.iter().zip(&losses.vcpus));
        let in_scope = |vm: &str, vcpu: u32| budget.goals.iter().any(|goal| goal.scope.has(vm, vcpu));
        let vcpus: Vec<_> = all.filter(|(vcpu, _)| in_scope(&vcpu.vm, vcpu.vcpu)).map(|(_, losses)| losses).collect();
        let time_ns: u64 = vcpus.iter().map(|losses| losses.span.length_ns()).sum();
        let longest_ns = vcpus.iter().map(|losses| losses.span.length_ns()).max().filter(|ns| *ns > 0)?;
        let unknown_ns: u64 = vcpus.iter().flat_map(|losses| &losses.unknown).map(Span::length_ns).sum();
        let values = measures(budget).into_iter().map(|measure| match measure {
            Measure::Broken(goal) => {
                let over = judged(case, &goal).filter_map(|judged| Some(judged.judgement.counts?.over_low));
                let over: Vec<u64> = over.collect();
                (!over.is_empty()).then(|| over.iter().sum::<u64>() as f64 * 1e9 / longest_ns as f64)
            }
            Measure::Worst(goal) => {
                judged(case, &goal).filter_map(|judged| Some(judged.judgement.bounds?.value_ns as f64)).reduce(f64::max)
            }
            Measure::Lost => {
                let lost = vcpus.iter().map(|losses| losses.stretches(Definition::Involuntary).total_ns());
                let known_ns = time_ns.saturating_sub(unknown_ns);
                (known_ns > 0).then(|| lost.sum::<u64>() as f64 * 1e9 / known_ns as f64)
            }
        });
        let values = values.collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty())?;
        Some(Self { values, vcpus: vcpus.len(), unknown_share: unknown_ns as f64 / time_ns as f64 })
    }
}

impl Run {
    /// A value of each measure, in the budget's order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn for_tests(values: &[f64]) -> Self {
        Self { values: values.to_vec(), vcpus: 1, unknown_share: 0.0 }
    }
}

fn judged<'c>(case: &'c Case, goal: &Goal) -> impl Iterator<Item = &'c crate::budget::Judged> {
    let goals = case.budget().map_or(&[][..], |budget| &budget.goals);
    let place = goals.iter().position(|other| other.id == goal.id);
    case.judged().iter().filter(move |judged| Some(judged.goal) == place)
}
