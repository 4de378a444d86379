//! What did the host take from vCPUs in one recording, and for whom?

use super::parts::{Component, Parts};
use base::Span;
use facts::Case;
use facts::ledger::model::PartFlow;
use facts::ledger::witness::told_levels;
use facts::losses::{By, Cause, LostIn};
use facts::windows::tasks::known_as;
use std::collections::BTreeMap;

/// The losses of the vCPUs that are wanted, as shares of the time of which they are known; `None` where a trace does not show all of them.
pub(super) fn of(case: &Case) -> Option<Parts> {
    let parts = case.ledger().parts.iter().zip(case.losses());
    let told = told_levels(case);
    let is_told = |part: &PartFlow| part.twin_of.is_none() && told.contains(&part.level) && !part.vcpus.is_empty();
    let parts = parts.filter(|(part, _)| is_told(part));
    let (mut known_ns, mut sums) = (0_u64, BTreeMap::<Component, (u64, u64)>::new());
    for (part, losses) in parts {
        if !part.has_switches || part.lacks_exits() {
            return None;
        }
        let wanted = part.vcpus.iter().zip(&losses.vcpus);
        for (_, lost) in wanted.filter(|(vcpu, _)| case.given().narrow.wants_vcpu(&vcpu.vm, vcpu.vcpu)) {
            let unknown_ns: u64 = lost.unknown.iter().map(Span::length_ns).sum();
            known_ns += lost.span.length_ns().saturating_sub(unknown_ns);
            for (cause, taken) in lost.lost.culprits() {
                let sum = sums.entry(component(part, cause)).or_default();
                *sum = (sum.0 + taken.total_ns, sum.1 + taken.count);
            }
        }
    }
    let times = sums.into_iter().map(|(part, (ns, count))| (part, ns, count));
    (known_ns > 0).then(|| Parts::of_time(times, known_ns))
}

/// `stress-ng ran instead`: threads of one name are one cause.
fn component(part: &PartFlow, cause: Cause) -> Component {
    let name = match cause.by {
        By::Task(_) => known_as(cause.by.name(part).as_bytes()),
        _ => cause.by.name(part),
    };
    let title = match cause.state {
        LostIn::Preempted => format!("{name} ran instead"),
        LostIn::Irq | LostIn::Softirq | LostIn::Nmi => format!("{} {name}", cause.state.name()),
        LostIn::WakeDelay if cause.by == By::Task(0) => "waking up an idle CPU".to_owned(),
        LostIn::WakeDelay => format!("waking up while {name} ran"),
        LostIn::Blocked => format!("asleep, {name}"),
        LostIn::Handling => format!("{name}, caused by the host"),
        LostIn::Userspace => format!("{name}, VMM"),
    };
    Component::lost(cause.state.name(), title)
}
