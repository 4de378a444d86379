//! The pictures of section `flow`, of each trace: the levels at a glance, what the time was used up by, and each vCPU's states.

mod bars;
mod levels;
mod waterfall;

use base::{Figure, Finding, Level};
use facts::ledger::levels::{hue, title};
use facts::ledger::measure::Measures;
use facts::ledger::model::Vcpu;
use walk::state::{STATES, State, TracedLevel};

/// All of a trace, the one that answers at a glance first.
pub(crate) fn of(measure: &Measures<'_>, findings: &[Finding]) -> Vec<Figure> {
    if measure.vcpus.is_empty() {
        return Vec::new();
    }
    if measure.is_untimed() {
        return Vec::new();
    }
    let bars = bars::where_the_time_went(measure);
    // A trace of one instant has exits and no rates, and no time that anything could have used up.
    if measure.wall_ns == 0 || measure.part.window.length_ns() == 0 {
        return vec![bars];
    }
    [levels::at_a_glance(measure), waterfall::used_up(measure, findings), bars].into()
}

/// A state of the ledger with its time, as people and renderers know it.
struct Spent {
    state: State,
    label: String,
    hue: String,
    ns: u64,
}

/// What a caption adds where a guest's own trace tells: it cannot see who took time below it.
fn seen_from_above(measure: &Measures<'_>) -> String {
    match measure.part.level {
        Level::At(0) | Level::Below | Level::Unknown => String::new(),
        level => format!(" This is as {level} saw it: what the level below took meanwhile is inside."),
    }
}

/// The time of some vCPUs by state, in the order in which the time of a vCPU is used up: guests from the deepest on, KVM for
/// them, the VMM, the host's interrupts, polling, waiting, sleeping, unknown.
fn spent(measure: &Measures<'_>, vcpus: &[&Vcpu]) -> Vec<Spent> {
    let host = measure.part.level;
    let mut all: Vec<Spent> = Vec::new();
    for state in (0..STATES).map(State::of_index) {
        let ns = vcpus.iter().map(|vcpu| vcpu.sums.ns(state)).sum();
        let label = title(host, state);
        match all.iter_mut().find(|known| known.label == label) {
            Some(known) => known.ns += ns,
            None => all.push(Spent { state, label, hue: hue(host, state), ns }),
        }
    }
    all.retain(|spent| spent.ns > 0);
    all.sort_by_key(|spent| place(spent.state));
    all
}

fn place(state: State) -> (u8, u8) {
    let deepest_first = |level: TracedLevel| u8::MAX - level.depth().unwrap_or(0);
    match state {
        State::Guest(level) => (0, deepest_first(level)),
        State::Handling(level) => (1, level.depth().unwrap_or(u8::MAX)),
        State::Userspace => (2, 0),
        State::Irq => (3, 0),
        State::Softirq => (3, 1),
        State::Nmi => (3, 2),
        State::HaltPoll => (4, 0),
        State::Preempted => (5, 0),
        State::WakeDelay => (5, 1),
        State::Blocked => (6, 0),
        State::Halted => (6, 1),
        State::Unknown => (7, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::Given;
    use facts::ledger::measure::NO_TIME;
    use facts::ledger::quiet::{quiet, sums};
    use walk::events::reasons::Isa;

    #[test]
    fn a_trace_of_one_instant_has_no_rates() {
        let mut part = quiet(Isa::Vmx);
        let drawn = |part: &_| of(&Measures::of(part, &Given::default()), &[]).len();
        assert_eq!(drawn(&part), 3);
        part.window.to_ns = part.window.from_ns;
        assert_eq!(drawn(&part), 1);
        sums(&mut part).states_ns.fill(0);
        let bars = of(&Measures::of(&part, &Given::default()), &[]).remove(0);
        assert_eq!(bars.caption, NO_TIME);
    }
}
