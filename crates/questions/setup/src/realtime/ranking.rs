//! What did the vCPUs of a trace lose to causes that a knob is about? At most that is what the knob would have removed.
//!
//! ```text
//! losses of each vCPU, by cause --CAUSES--> a knob each, or none --> sums: they add up to all that was lost
//! ```
//! With a budget what counts first is what was lost while a goal of it was broken: the knobs are ranked for those goals.
//! Only causes count that a knob ends by what it is: ticks end with nohz_full, a worker that is tied to no CPU moves with the mask
//! of workqueues. Timers of the guest are local timer interrupts too, so that the amount is an upper bound.

use base::number::list;
use facts::Case;
use facts::ledger::model::PartFlow;
use facts::losses::{By, Cause};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use walk::events::host_interrupts::HostInterrupt;
use walk::kernel_threads::is_bound;

/// Causes that a knob is about.
enum Takes {
    /// Vectors of the kernel's own, by their names.
    Vectors(&'static [&'static str]),
    Devices,
    Softirqs(&'static [&'static str]),
    Nmis,
    /// Tasks whose names begin so.
    Tasks(&'static [&'static str]),
    /// Tasks that are no part of the kernel, no vCPU and no recorder.
    Programs,
}

/// Which knob is about a cause: the first that fits.
const CAUSES: &[(Takes, &str)] = &[
    (Takes::Vectors(&["local_timer"]), "LAT-NOHZ"),
    (Takes::Softirqs(&["TIMER", "SCHED"]), "LAT-NOHZ"),
    (Takes::Softirqs(&["RCU"]), "LAT-RCU"),
    (Takes::Tasks(&["rcuc/", "rcuo", "rcu_preempt", "rcu_sched"]), "LAT-RCU"),
    (Takes::Softirqs(&["NET_TX", "NET_RX", "BLOCK", "IRQ_POLL"]), "LAT-IRQAFFINITY"),
    (Takes::Devices, "LAT-IRQAFFINITY"),
    (Takes::Tasks(&["irq/"]), "LAT-IRQAFFINITY"),
    (Takes::Nmis, "LAT-NMI"),
    (Takes::Tasks(&["kworker/u"]), "LAT-WORKQUEUE"),
    (Takes::Tasks(&["ksmd"]), "LAT-KSM"),
    (Takes::Tasks(&["khugepaged", "kcompactd"]), "LAT-THP"),
    (Takes::Tasks(&["khungtaskd"]), "LAT-HUNGTASK"),
    (Takes::Programs, "LAT-ISOLCPUS"),
];

/// Programs that record: what they take ends with the recording.
const RECORDERS: &[&str] = &["kvmscope", "trace-cmd", "perf", "lttng-consumerd", "lttng-sessiond"];

/// Threads of the kernel that are tied to no CPU, and that no knob is about.
const OF_KERNEL: &[&str] = &["kthreadd", "kswapd", "kauditd", "oom_reaper", "jbd2/", "xfsaild/", "napi/", "nvme"];

/// Names in a sentence.
const MOST_NAMED: usize = 3;

/// What the vCPUs of a machine's traces lost, by the knob that is about the cause.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Without an id, what no knob is about.
    by_knob: BTreeMap<Option<&'static str>, Sums>,
}

/// What was lost to causes of one knob.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub count: u64,
    pub total_ns: u64,
    pub max_ns: u64,
    /// How much of it while a goal of the budget was broken; 0 without a budget.
    pub in_breaches_ns: u64,
    /// Names of the causes with what each took.
    by: BTreeMap<String, u64>,
}

impl Sums {
    /// The causes that took most.
    pub(super) fn names(&self) -> String {
        let mut names: Vec<(&String, u64)> = self.by.iter().map(|(name, ns)| (name, *ns)).collect();
        names.sort_by_key(|(name, ns)| (Reverse(*ns), *name));
        let more = names.len().saturating_sub(MOST_NAMED);
        let mut said: Vec<String> = names.iter().take(MOST_NAMED).map(|(name, _)| (*name).clone()).collect();
        said.extend((more > 0).then(|| format!("{more} more")));
        list(&said)
    }
}

impl Lost {
    /// What was lost to causes that a knob is about.
    pub(super) fn by_knob(&self, id: &'static str) -> Option<&Sums> {
        self.by_knob.get(&Some(id))
    }

    /// All of it, first what took most from breaches of the budget, then the largest amount, and last what no knob is about.
    pub(super) fn ranked(&self) -> Vec<(Option<&'static str>, &Sums)> {
        let mut ranked: Vec<_> = self.by_knob.iter().map(|(id, sums)| (*id, sums)).collect();
        ranked.sort_by_key(|(id, sums)| (id.is_none(), Reverse(sums.in_breaches_ns), Reverse(sums.total_ns), *id));
        ranked
    }
}

/// Of the traces of a machine.
pub(super) fn lost(case: &Case, machine: &str) -> Lost {
    let mut lost = Lost::default();
    if case.input().parts.iter().all(|part| part.machine != machine) {
        return lost;
    }
    for (part, losses) in case.ledger().parts.iter().zip(case.losses()).filter(|(part, _)| part.machine == machine) {
        for (cause, sums) in losses.vcpus.iter().flat_map(|vcpu| vcpu.lost.culprits()) {
            let own = lost.by_knob.entry(knob_of(part, cause)).or_default();
            own.count += sums.count;
            own.total_ns += sums.total_ns;
            own.max_ns = own.max_ns.max(sums.max_ns);
            *own.by.entry(cause.by.name(part)).or_default() += sums.total_ns;
        }
        let Some(budget) = case.budget() else { continue };
        for (vcpu, losses) in part.vcpus.iter().zip(&losses.vcpus) {
            let breaches = budget.breaches(&vcpu.vm, vcpu.vcpu, losses);
            for (cause, ns) in breaches.spans().iter().flat_map(|span| losses.lost.causes_within(*span)) {
                lost.by_knob.entry(knob_of(part, cause)).or_default().in_breaches_ns += ns;
            }
        }
    }
    lost.by_knob.retain(|_, sums| sums.total_ns > 0);
    lost
}

fn knob_of(part: &PartFlow, cause: Cause) -> Option<&'static str> {
    let name = cause.by.name(part);
    let begins = |names: &[&str]| names.iter().any(|known| name.starts_with(known));
    let interrupt = match cause.by {
        By::Interrupt(interrupt) => Some(interrupt),
        By::Task(_) | By::Exit(_) | By::Throttled | By::Stopped | By::Unknown => None,
    };
    let is_program = |tid: i32| {
        let is_vcpu = part.vcpus.iter().any(|vcpu| vcpu.tid == tid);
        let known = part.comms.contains_key(&tid);
        tid != 0 && known && !is_vcpu && !is_bound(&name) && !begins(RECORDERS) && !begins(OF_KERNEL)
    };
    let is = |takes: &Takes| match takes {
        Takes::Vectors(names) => matches!(interrupt, Some(HostInterrupt::Vector(vector)) if names.contains(&vector)),
        Takes::Devices => matches!(interrupt, Some(HostInterrupt::Irq(Some(_)))),
        Takes::Softirqs(names) => {
            matches!(interrupt, Some(HostInterrupt::Softirq(_))) && names.contains(&name.as_str())
        }
        Takes::Nmis => interrupt == Some(HostInterrupt::Nmi),
        Takes::Tasks(names) => cause.by.tid().is_some() && begins(names),
        Takes::Programs => cause.by.tid().is_some_and(is_program),
    };
    CAUSES.iter().find(|(takes, _)| is(takes)).map(|(_, knob)| *knob)
}

#[cfg(test)]
mod tests {
    use super::super::knobs;
    use super::*;

    #[test]
    fn what_took_most_from_breaches_is_first_and_what_no_knob_is_about_is_last() {
        let sums = |total_ns, in_breaches_ns| Sums { total_ns, in_breaches_ns, ..Sums::default() };
        let by_knob = [
            (Some("most"), sums(900, 1)),
            (None, sums(999, 99)),
            (Some("in breaches"), sums(50, 40)),
            (Some("a"), sums(7, 1)),
        ];
        let lost = Lost { by_knob: by_knob.into() };
        let order: Vec<_> = lost.ranked().into_iter().map(|(id, _)| id).collect();
        assert_eq!(order, [Some("in breaches"), Some("most"), Some("a"), None]);
    }

    #[test]
    fn causes_belong_to_knobs_that_there_are() {
        for (_, id) in CAUSES {
            assert!(knobs::all().any(|rule| rule.id == *id), "{id}");
        }
    }
}
