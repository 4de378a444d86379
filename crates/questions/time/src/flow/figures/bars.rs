//! Where each vCPU's time went, state by state.

use base::Figure;
use base::figure::{Bar, BarGroup, Drawing};
use base::number::percent;
use facts::ledger::levels::{hue, title};
use facts::ledger::measure::{Measures, NO_TIME};
use facts::ledger::model::Vcpu;
use std::cmp::Reverse;
use walk::state::{STATES, State};

/// Bars of each vCPU's states, longest first.
pub(super) fn where_the_time_went(measure: &Measures<'_>) -> Figure {
    let mut vcpus = measure.vcpus.clone();
    if measure.is_of_many() {
        // Only the first are drawn in a terminal: those that lose most.
        vcpus.sort_by_key(|vcpu| Reverse(vcpu.sums.ns_where(State::is_overhead)));
    }
    let groups = vcpus.iter().map(|vcpu| group(measure, vcpu)).collect();
    Figure {
        id: format!("where-{}", measure.part.machine),
        title: "Where the time went".into(),
        caption: caption(measure),
        in_terminals: true,
        drawing: Drawing::Bars(groups),
    }
}

fn caption(measure: &Measures<'_>) -> String {
    if measure.wall_ns == 0 {
        return NO_TIME.into();
    }
    let most = (0..STATES).max_by_key(|index| measure.state_ns(|state| state.index() == *index)).unwrap_or(0);
    let state = State::of_index(most);
    let share = measure.state_ns(|other| other == state) as f64 / measure.wall_ns as f64;
    format!(
        "{} of the vCPU time, {}, is \"{}\".",
        if share > 0.5 { "Most" } else { "The largest part" },
        percent(share),
        title(measure.part.level, state)
    )
}

fn group(measure: &Measures<'_>, vcpu: &Vcpu) -> BarGroup {
    let mut bars: Vec<Bar> = Vec::new();
    for (index, ns) in vcpu.sums.states_ns.iter().enumerate().filter(|(_, ns)| **ns > 0) {
        let state = State::of_index(index);
        let label = title(measure.part.level, state);
        match bars.iter_mut().find(|bar| bar.label == label) {
            Some(bar) => bar.value += *ns as f64,
            None => bars.push(Bar {
                label,
                value: *ns as f64,
                note: note(measure, vcpu, state),
                hue: hue(measure.part.level, state),
            }),
        }
    }
    bars.sort_by(|a, b| b.value.total_cmp(&a.value));
    let assumed = if vcpu.vm_assumed { " (assumed)" } else { "" };
    BarGroup {
        title: format!("vm {}{assumed}   vCPU {}   tid {}", vcpu.vm, vcpu.vcpu, vcpu.tid),
        unit: "ns",
        total: vcpu.sums.wall_ns() as f64,
        bars,
        span: None,
    }
}

fn note(measure: &Measures<'_>, vcpu: &Vcpu, state: State) -> String {
    match state {
        State::Unknown if measure.part.lacks_exits() && measure.part.gone.contains(&vcpu.tid) => {
            "in KVM_RUN, not yet started, ended, or lost".into()
        }
        State::Unknown if measure.part.lacks_exits() => "in KVM_RUN: guest or KVM".into(),
        State::Unknown if measure.part.gone.contains(&vcpu.tid) => "not yet started, ended, or lost".into(),
        State::Unknown => "before its first KVM event, or lost".into(),
        State::Preempted => "runnable, another task ran".into(),
        State::Guest(level) | State::Handling(level) if level.is_open() => "level unknown".into(),
        _ => String::new(),
    }
}
