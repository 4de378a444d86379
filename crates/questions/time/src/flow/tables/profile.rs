//! Table of samples: the folded stacks of a profile by VM, level, state and function.

use base::timeline::Stacks;
use base::{Cell, Level, Table, TableSpec, shown, table};
use facts::Given;
use facts::ledger::measure::{Measures, measure};
use facts::ledger::model::{Flow, Sampled};
use walk::samples::Mode;
use walk::state::State;

/// Samples by vCPU, level, state, whose code and function. `stack` is the row as one line of folded stacks.
pub(super) const PROFILE: TableSpec = table! {
    flow.profile version 2: "Samples of a counter on one vCPU, at one level, in one state, in one function.";
    key machine, key vm, key_u64("") vcpu, key level, key state, key mode, key symbol, text stack, count samples,
    count period;
    shown![
        "Profile: samples by location", 20;
        vcpu: "vCPU", level, state, mode: "code of", symbol: "in", samples,
    ]
};

pub(super) fn profile(measures: &[Measures<'_>], given: &Given) -> Table {
    let mut table = Table::new(&PROFILE);
    for measure in measures {
        for (row, level, state) in wanted(measure, given) {
            let level = level.to_string();
            let mode = in_words(row.mode);
            let stack = frames(row, &level, state).map(|frame| folded(&frame));
            let machine = measure.part.machine.as_str();
            let mut cells: Vec<Cell> = vec![machine.into(), row.vm.as_str().into(), u64::from(row.vcpu).into()];
            cells.extend([
                level.as_str().into(),
                state.into(),
                mode.into(),
                row.symbol.as_str().into(),
                stack.join(";").into(),
            ]);
            cells.extend([row.samples.into(), row.period.into()]);
            table.push(cells);
        }
    }
    table
}

/// The samples of `flow` by stack: VM, vCPU, level, state, whose code, function. Empty where nothing was sampled.
pub fn stacks(flow: &Flow, given: &Given) -> Stacks {
    let mut stacks = Stacks::new();
    for measure in &measure(flow, given) {
        for (row, level, state) in wanted(measure, given) {
            *stacks.entry(frames(row, &level.to_string(), state).into()).or_default() += row.samples;
        }
    }
    stacks
}

/// The samples that are wanted, with their level and the name of their state.
fn wanted<'m>(measure: &'m Measures<'_>, given: &'m Given) -> impl Iterator<Item = (&'m Sampled, Level, &'static str)> {
    let named = measure.part.profile.iter().map(|row| {
        let (level, state) = named(measure, row.state);
        (row, level, state)
    });
    let narrow = &given.narrow;
    named.filter(|(row, level, _)| narrow.wants_level(*level) && narrow.wants_vcpu(&row.vm, row.vcpu))
}

fn frames(row: &Sampled, level: &str, state: &str) -> [String; 6] {
    let vcpu = format!("vCPU {}", row.vcpu);
    [&row.vm, &vcpu, level, state, in_words(row.mode), &row.symbol].map(str::to_owned)
}

/// A frame of a folded stack: `;` separates frames, a blank its count.
fn folded(frame: &str) -> String {
    frame.replace(';', ",").replace(' ', "_")
}

fn in_words(mode: Mode) -> &'static str {
    match mode {
        Mode::Unknown => "unknown",
        Mode::Kernel => "kernel",
        Mode::User => "user",
        Mode::GuestKernel => "guest kernel",
        Mode::GuestUser => "guest user",
    }
}

/// Level and name of a state: whose guest ran, or for whom; what has no level is the recorded machine's own.
fn named(measure: &Measures<'_>, state: State) -> (Level, &'static str) {
    let own = measure.level_above(0);
    let level = |level| measure.part.level_of(level);
    match state {
        State::Guest(known) => (level(known), "guest"),
        State::Handling(known) => (level(known), "handling"),
        State::Userspace => (own, "userspace"),
        State::Irq => (own, "irq"),
        State::Softirq => (own, "softirq"),
        State::Nmi => (own, "nmi"),
        State::HaltPoll => (own, "halt_poll"),
        State::Halted => (own, "halted"),
        State::WakeDelay => (own, "wake_delay"),
        State::Preempted => (own, "preempted"),
        State::Blocked => (own, "blocked"),
        State::Unknown => (own, "unknown"),
    }
}
