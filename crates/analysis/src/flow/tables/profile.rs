//! Table of samples: the folded stacks of a profile by VM, level, state and function.

use super::{U64, keys, shown};
use crate::Options;
use crate::facts::ledger::measure::{Measures, measure};
use crate::facts::ledger::model::{Flow, Sampled};
use crate::facts::state::State;
use crate::facts::walk::samples::Mode;
use base::timeline::Stacks;
use base::{Column, Level, Table};

/// Samples by vCPU, level, state, whose code and function. `stack` is the row as one line of folded stacks.
pub fn profile(measures: &[Measures<'_>], options: &Options) -> Table {
    let mut columns = keys();
    columns.extend(["level", "state", "mode", "symbol"].map(Column::key));
    columns.push(Column::value("stack", "", base::ColumnType::Text));
    columns.extend(["samples", "period"].map(|name| Column::value(name, "count", U64)));
    let mut table = Table::new("profile", columns);
    for measure in measures {
        for (row, level, state) in wanted(measure, options) {
            let level = level.to_string();
            let mode = in_words(row.mode);
            let stack = frames(row, &level, state).map(|frame| folded(&frame));
            let mut cells = vec![row.vm.as_str().into(), u64::from(row.vcpu).into(), level.as_str().into()];
            cells.extend([state.into(), mode.into(), row.symbol.as_str().into(), stack.join(";").into()]);
            cells.extend([row.samples.into(), row.period.into()]);
            table.push(cells);
        }
    }
    let columns = [
        ("vcpu", "vCPU"),
        ("level", "level"),
        ("state", "state"),
        ("mode", "code of"),
        ("symbol", "in"),
        ("samples", "samples"),
    ];
    table.shown = shown("Profile: samples by location", &columns, 20);
    table
}

/// The samples of `flow` by stack: VM, vCPU, level, state, whose code, function. Empty where nothing was sampled.
pub fn stacks(flow: &Flow, options: &Options) -> Stacks {
    let mut stacks = Stacks::new();
    for measure in &measure(flow, options) {
        for (row, level, state) in wanted(measure, options) {
            *stacks.entry(frames(row, &level.to_string(), state).into()).or_default() += row.samples;
        }
    }
    stacks
}

/// The samples that are wanted, with their level and the name of their state.
fn wanted<'m>(
    measure: &'m Measures<'_>,
    options: &'m Options,
) -> impl Iterator<Item = (&'m Sampled, Level, &'static str)> {
    let named = measure.part.profile.iter().map(|row| {
        let (level, state) = named(measure, row.state);
        (row, level, state)
    });
    let narrow = &options.narrow;
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
