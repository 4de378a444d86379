//! Table of samples: the folded stacks of a profile by VM, level, state and function.

use super::{U64, keys, shown};
use crate::Options;
use crate::facts::ledger::measure::Measures;
use crate::facts::state::State;
use crate::facts::walk::samples::Mode;
use base::{Column, Level, Table};

/// Samples by vCPU, level, state, whose code and function. `stack` is the row as one line of folded stacks.
pub fn profile(measures: &[Measures<'_>], options: &Options) -> Table {
    let mut columns = keys();
    columns.extend(["level", "state", "mode", "symbol"].map(Column::key));
    columns.push(Column::value("stack", "", base::ColumnType::Text));
    columns.extend(["samples", "period"].map(|name| Column::value(name, "count", U64)));
    let mut table = Table::new("profile", columns);
    for measure in measures {
        for row in &measure.part.profile {
            let (level, state) = named(measure, row.state);
            let wanted = options.level.is_none_or(|wanted| level == wanted.to_string())
                && options.vm.as_ref().is_none_or(|vm| *vm == row.vm)
                && options.vcpu.is_none_or(|vcpu| vcpu == row.vcpu);
            if !wanted {
                continue;
            }
            let mode = in_words(row.mode);
            let stack = [&row.vm, &format!("vCPU {}", row.vcpu), &level, state, mode, row.symbol.as_str()].map(folded);
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
fn named(measure: &Measures<'_>, state: State) -> (String, &'static str) {
    let own = measure.level_above(0);
    let level = |level| measure.part.level_of(level);
    let (level, name): (Level, &str) = match state {
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
    };
    (level.to_string(), name)
}
