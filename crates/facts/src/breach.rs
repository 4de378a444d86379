//! Does a vCPU break a budget right now?
//!
//! ```text
//! pages that have come --> the walk, which goes on --> what was lost, as if the recording ended here --> goals --> Breach
//!                             '--- all that no window of a goal reaches any more is forgotten
//! ```
//! In: what has come to a recording that grows. Out: the goal that was exceeded by most. Nothing passes here; whether a budget
//! is kept is judged of a whole recording.

use crate::budget::{Budget, Goal, Metric};
use crate::ledger::identity;
use crate::ledger::model::Vcpu;
use crate::losses::{Collector, Definition as Counted, Stretches, VcpuLosses};
use base::Span;
use base::recording::VmProcesses;
use trace::Trace;
use walk::continued::{Come, Continued};
use walk::events::roles;

/// The goals of a budget, and what was lost lately.
pub struct Judge {
    goals: Vec<Goal>,
    walk: Continued<Collector>,
    /// How far back a window of any of the goals reaches.
    reach_ns: u64,
    /// Nothing is known of what was before.
    begun_ns: Option<u64>,
}

/// A goal that was broken.
#[derive(Debug, Clone, PartialEq)]
pub struct Breach {
    pub goal: Goal,
    /// The VM.
    pub vm: String,
    pub vcpu: u32,
    /// When it lost so much, on the trace's own clock.
    pub during: Span,
    /// How much of it was lost.
    pub loss_ns: u64,
    /// What took the time, most first.
    pub causes: Vec<(String, u64)>,
}

impl Judge {
    /// The goals of `budget` that the trace of a host can break; `None` if it has none.
    pub fn of(budget: &Budget) -> Option<Self> {
        let is_seen = |goal: &&Goal| goal.metric.is_of_losses() && goal.definition == Counted::Involuntary;
        let goals: Vec<Goal> = budget.goals.iter().filter(is_seen).cloned().collect();
        let reach_ns = goals.iter().map(|goal| goal.window_ns.unwrap_or(goal.limit_ns.saturating_add(1))).max()?;
        Some(Self { goals, walk: Continued::default(), reach_ns, begun_ns: None })
    }

    pub fn goals(&self) -> &[Goal] {
        &self.goals
    }

    /// Whether a goal was broken in `span`, on the trace's own clock, given `trace` that holds all its events; `skipped_ns`
    /// before it were passed over. Spans come in order. `processes` are known to run VMs.
    pub fn look(&mut self, trace: &dyn Trace, span: Span, skipped_ns: u64, processes: &VmProcesses) -> Option<Breach> {
        let facts = trace.facts();
        let request = roles::request(&[], |name| facts.event_types.iter().any(|event| event.name == name));
        if skipped_ns > 0 {
            self.begun_ns = None;
        }
        let begun_ns = *self.begun_ns.get_or_insert(span.from_ns);
        let from_ns = span.from_ns.saturating_sub(self.reach_ns).max(begun_ns);
        let go_on = |lost: Option<Collector>| {
            let mut lost = lost.unwrap_or_else(|| {
                let mut lost = Collector::default();
                lost.begin(Span { from_ns: 0, to_ns: u64::MAX });
                lost
            });
            lost.forget(from_ns);
            lost
        };
        let mut now = self.walk.go_on(Come { trace, span, skipped_ns }, &request, go_on, &mut |_| {}).clone();
        now.goes_on(span.to_ns);
        now.end(span.to_ns);
        let comms = identity::live_comms(&now.threads, facts);
        let vcpus = identity::live_vcpus(&now.threads, &comms, facts, Some(processes));
        let tids = vcpus.iter().map(|vcpu| vcpu.tid);
        now.sink.end(&now.threads);
        let losses = now.sink.of_threads(tids, Span { from_ns, to_ns: span.to_ns }, 0);
        let mut worst: Option<Broken<'_>> = None;
        for (vcpu, lost) in vcpus.iter().zip(&losses.vcpus) {
            let stretches = lost.stretches(Counted::Involuntary);
            for goal in self.goals.iter().filter(|goal| goal.scope.has(&vcpu.vm, vcpu.vcpu)) {
                let Some(during) = exceeded(goal, &stretches, Span { from_ns: begun_ns, ..span }, span.from_ns) else {
                    continue;
                };
                let broken = Broken { goal, vcpu, lost, during, loss_ns: stretches.within(during) };
                if worst.as_ref().is_none_or(|worst| broken.excess() > worst.excess()) {
                    worst = Some(broken);
                }
            }
        }
        worst.map(|Broken { goal, vcpu, lost, during, loss_ns }| {
            let causes = lost.lost.causes_within(during).into_iter();
            Breach {
                goal: goal.clone(),
                vm: vcpu.vm.clone(),
                vcpu: vcpu.vcpu,
                during,
                loss_ns,
                causes: causes.map(|(cause, ns)| (cause.by.name_among(&comms, &now.handlers), ns)).collect(),
            }
        })
    }
}

/// A goal that a vCPU broke.
struct Broken<'a> {
    goal: &'a Goal,
    vcpu: &'a Vcpu,
    lost: &'a VcpuLosses,
    during: Span,
    loss_ns: u64,
}

impl Broken<'_> {
    /// How many times the limit it is.
    fn excess(&self) -> f64 {
        self.loss_ns as f64 / self.goal.limit_ns.max(1) as f64
    }
}

/// When the losses of a vCPU broke `goal`, by windows in `span` that ended after `judged_ns`.
fn exceeded(goal: &Goal, lost: &Stretches, span: Span, judged_ns: u64) -> Option<Span> {
    let during = match goal.metric {
        Metric::PreemptWindow => {
            let window_ns = goal.window_ns?;
            let from_ns = judged_ns.saturating_sub(window_ns).max(span.from_ns);
            let at_ns = lost.sup(Span { from_ns, ..span }, window_ns)?.at_ns;
            Span { from_ns: at_ns, to_ns: at_ns + window_ns }
        }
        Metric::PreemptPeriod => lost.longest()?,
        // Neither samples nor migrations are in a trace.
        Metric::TimerLatency | Metric::IrqLatency | Metric::TotalTime | Metric::DowntimeVmm | Metric::DowntimeNet => {
            return None;
        }
    };
    (!goal.op.holds(lost.within(during), goal.limit_ns)).then_some(during)
}
