//! How the ledger's states are called in tables, figures and timelines.
//!
//! A trace counts levels from the machine it was recorded on; names count them as everybody does.

use base::Level;
use walk::state::{State, TracedLevel};

/// A level as everybody counts it: a trace's own guests are one above `host`, the machine it was recorded on.
pub fn level_of(host: Level, level: TracedLevel) -> Level {
    let base = match host {
        Level::At(base) => base,
        Level::Below | Level::Unknown => 0,
    };
    level.depth().map_or(Level::Unknown, |depth| Level::At(depth + base))
}

/// The state for people: `L2 guest`, `L0 working for L2`.
pub fn title(host: Level, state: State) -> String {
    match state {
        State::Guest(level) => format!("{} guest", level_of(host, level)),
        State::Handling(level) => format!("{host} working for {}", level_of(host, level)),
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

/// What decides the state's colour: that of the level at work, so that L1's own work for L2 looks the same in a trace of L1 as
/// in one of L0.
pub fn hue(host: Level, state: State) -> String {
    match (host, state) {
        (Level::At(1), State::Handling(level)) if level_of(host, level) == Level::At(2) => {
            "handling_l2_by_l1".to_owned()
        }
        _ => name(host, state),
    }
}

/// The state's name in the ledger's columns without its unit: `guest_l2`.
pub fn name(host: Level, state: State) -> String {
    let level = |level: TracedLevel| match level_of(host, level) {
        Level::At(depth) => format!("l{depth}"),
        Level::Below | Level::Unknown => "unknown_level".to_owned(),
    };
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
