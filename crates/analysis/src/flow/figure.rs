//! The picture of section `flow`: where each vCPU's time went.

use super::measure::Measures;
use super::model::Vcpu;
use crate::shared::state::{Lv, STATES, State};
use base::Figure;
use base::figure::{Bar, BarGroup, Drawing};
use base::number::percent;

/// Bars of each vCPU's states, longest first.
pub fn where_the_time_went(measure: &Measures<'_>) -> Option<Figure> {
    if measure.vcpus.is_empty() {
        return None;
    }
    let groups = measure.vcpus.iter().map(|vcpu| group(measure, vcpu)).collect();
    let most = (0..STATES).max_by_key(|index| measure.state_ns(|state| state.index() == *index)).unwrap_or(0);
    let state = State::of_index(most);
    let share = measure.state_ns(|other| other == state) as f64 / measure.wall_ns.max(1) as f64;
    Some(Figure {
        id: format!("where-{}", measure.part.machine),
        title: "Where the time went".into(),
        caption: format!("Most of the vCPUs' time, {}, is \"{}\".", percent(share), label(measure, state)),
        drawing: Drawing::Bars(groups),
    })
}

fn group(measure: &Measures<'_>, vcpu: &Vcpu) -> BarGroup {
    let mut bars: Vec<Bar> = Vec::new();
    for (index, ns) in vcpu.sums.states_ns.iter().enumerate().filter(|(_, ns)| **ns > 0) {
        let state = State::of_index(index);
        let label = label(measure, state);
        match bars.iter_mut().find(|bar| bar.label == label) {
            Some(bar) => bar.value += *ns as f64,
            None => bars.push(Bar { label, value: *ns as f64, note: note(state), hue: hue(state) }),
        }
    }
    bars.sort_by(|a, b| b.value.total_cmp(&a.value));
    let assumed = if vcpu.vm_assumed { " (assumed)" } else { "" };
    BarGroup {
        title: format!("vm {}{assumed}   vCPU {}   tid {}", vcpu.vm, vcpu.vcpu, vcpu.tid),
        unit: "ns",
        total: vcpu.sums.wall_ns() as f64,
        bars,
    }
}

fn label(measure: &Measures<'_>, state: State) -> String {
    let host = measure.level_above(0);
    match state {
        State::Guest(level) => format!("{} guest", measure.part.level_of(level)),
        State::Handling(level) => format!("{host} working for {}", measure.part.level_of(level)),
        State::Userspace => "VMM in userspace".into(),
        State::Irq => "host interrupts".into(),
        State::Softirq => "host softirqs".into(),
        State::Nmi => "host NMIs".into(),
        State::HaltPoll => "halt polling".into(),
        State::Halted => "halted".into(),
        State::WakeDelay => "wake-up delay".into(),
        State::Preempted => "preempted".into(),
        State::Blocked => "blocked".into(),
        State::Unknown => "unknown".into(),
    }
}

fn note(state: State) -> String {
    match state {
        State::Unknown => "before its first KVM event, or lost".into(),
        State::Preempted => "ready, another task ran".into(),
        State::Guest(level) | State::Handling(level) if level.is_open() => "level not told".into(),
        _ => String::new(),
    }
}

/// The state's name in the ledger's columns, which decides its colour.
fn hue(state: State) -> String {
    let level = |level: Lv| level.depth().map_or("unknown_level".into(), |depth| format!("l{depth}"));
    match state {
        State::Guest(at) => format!("guest_{}", level(at)),
        State::Handling(at) => format!("handling_{}", level(at)),
        State::Userspace => "userspace".into(),
        State::Irq => "irq".into(),
        State::Softirq => "softirq".into(),
        State::Nmi => "nmi".into(),
        State::HaltPoll => "halt_poll".into(),
        State::Halted => "halted".into(),
        State::WakeDelay => "wake_delay".into(),
        State::Preempted => "preempted".into(),
        State::Blocked => "blocked".into(),
        State::Unknown => "unknown".into(),
    }
}
