//! The levels at a glance: which machines run inside each other, what leaves them, and where all time went.

use super::spent;
use crate::flow::rates::{self, per_second};
use base::figure::{Column, Drawing, Ground, Levels, Storey, TimePart};
use base::number::{duration, many, percent, plain, rate};
use base::{Figure, Level};
use facts::ledger::levels::{level_of, name};
use facts::ledger::measure::Measures;
use facts::ledger::model::{PartFlow, Vcpu};
use std::collections::BTreeSet;
use walk::state::{STATES, State, TracedLevel};

/// VMs that get a column; the others share one.
const MOST_COLUMNS: usize = 4;

/// The picture of the answer.
pub(super) fn at_a_glance(measure: &Measures<'_>) -> Figure {
    let mut vms: Vec<(&str, Vec<&Vcpu>)> = measure.by_vm().into_iter().collect();
    vms.sort_by_key(|(vm, vcpus)| (std::cmp::Reverse(exits(measure, vcpus)), *vm));
    let first = vms.first().map_or(0, |(_, vcpus)| exits(measure, vcpus));
    let own = if vms.len() > MOST_COLUMNS { MOST_COLUMNS - 1 } else { vms.len() };
    let others = vms.split_off(own);
    let mut columns: Vec<Column> = vms.iter().map(|(vm, vcpus)| column(measure, (*vm).to_owned(), vcpus)).collect();
    if !others.is_empty() {
        let title = many(others.len() as u64, "more VM");
        columns.push(column(measure, title, &others.into_iter().flat_map(|(_, vcpus)| vcpus).collect::<Vec<_>>()));
    }
    let wall_ns = measure.wall_ns.max(1) as f64;
    let part = |spent: super::Spent| TimePart { label: spent.label, hue: spent.hue, share: spent.ns as f64 / wall_ns };
    let levels = Levels {
        columns,
        ground: ground(measure),
        time: spent(measure, &measure.vcpus).into_iter().map(part).collect(),
    };
    Figure {
        id: format!("levels-{}", measure.part.machine),
        title: "The levels at a glance".into(),
        caption: format!("{}{}", caption(measure, &levels, first), super::seen_from_above(measure)),
        in_terminals: true,
        drawing: Drawing::Levels(levels),
    }
}

fn exits(measure: &Measures<'_>, vcpus: &[&Vcpu]) -> u64 {
    vcpus.iter().map(|vcpu| measure.exit_count_of(vcpu)).sum()
}

fn ground(measure: &Measures<'_>) -> Ground {
    let share = |wanted: fn(State) -> bool| measure.state_ns(wanted) as f64 / measure.wall_ns.max(1) as f64;
    let to_vmm: u64 = measure.reasons.iter().map(|total| total.handled[1]).sum();
    Ground {
        level: measure.part.level.to_string(),
        kvm_share: share(|state| matches!(state, State::Handling(_) | State::HaltPoll)),
        vmm_share: share(|state| state == State::Userspace),
        to_vmm_per_s: per_second(measure, to_vmm).filter(|_| shows_vmm(measure.part)),
    }
}

/// Whether the trace tells when KVM_RUN returns to the VMM. A text names the events that it has: one without it may have been
/// filtered.
fn shows_vmm(part: &PartFlow) -> bool {
    let has = || part.tally.iter().any(|(event, count)| event == "kvm_userspace_exit" && *count > 0);
    part.seen.exit && (part.format != trace::Format::Text || has())
}

fn column(measure: &Measures<'_>, title: String, vcpus: &[&Vcpu]) -> Column {
    let host = measure.part.level;
    let guests = (0..STATES).filter_map(|index| match State::of_index(index) {
        State::Guest(level) => Some(level),
        _ => None,
    });
    let ran = |level: &TracedLevel| vcpus.iter().any(|vcpu| vcpu.sums.ns(State::Guest(*level)) > 0);
    let mut levels: BTreeSet<Level> = guests.filter(ran).map(|level| level_of(host, level)).collect();
    levels.extend(vcpus.iter().flat_map(|vcpu| measure.exits_of(vcpu)).map(|(level, ..)| level));
    let storeys = levels.into_iter().rev().map(|level| storey(measure, vcpus, level)).collect();
    Column { title, about: many(vcpus.len() as u64, "vCPU"), storeys }
}

fn storey(measure: &Measures<'_>, vcpus: &[&Vcpu], level: Level) -> Storey {
    let host = measure.part.level;
    let is_here = |state: State| matches!(state, State::Guest(at) if level_of(host, at) == level);
    let wall_ns: u64 = vcpus.iter().map(|vcpu| vcpu.sums.wall_ns()).sum();
    let guest_ns: u64 = vcpus.iter().map(|vcpu| vcpu.sums.ns_where(is_here)).sum();
    let all = vcpus.iter().flat_map(|vcpu| measure.exits_of(vcpu));
    let exits: u64 = all.filter(|(at, ..)| *at == level).map(|(.., sums)| sums.count).sum();
    let chains = || vcpus.iter().flat_map(|vcpu| measure.chains_of(vcpu)).map(|(_, sums)| sums);
    let (closed, exits_inside) =
        chains().fold((0, 0), |(closed, inside), sums| (closed + sums.exits.count(), inside + sums.exits.sum()));
    let reflected: u64 = chains().map(|sums| sums.count).sum();
    let is_nested = level == measure.level_above(2);
    let hue = (0..STATES)
        .map(State::of_index)
        .find(|state| is_here(*state))
        .map_or_else(String::new, |state| name(host, state));
    Storey {
        level: level.to_string(),
        hue,
        share: guest_ns as f64 / wall_ns.max(1) as f64,
        exits_per_s: per_second(measure, exits).filter(|_| measure.part.seen.exit),
        reflected_per_s: per_second(measure, reflected).filter(|_| is_nested && measure.part.seen.inject),
        for_each: (level == measure.level_above(1) && closed > 0).then(|| exits_inside as f64 / closed as f64),
    }
}

/// The picture in a sentence: what the busiest VM does, which has so many exits.
fn caption(measure: &Measures<'_>, levels: &Levels, first_exits: u64) -> String {
    let Some(column) = levels.columns.first() else { return String::new() };
    let host = &levels.ground.level;
    let whose = if levels.columns.len() > 1 { format!("{}: ", column.title) } else { String::new() };
    let storey = |depth: u8| {
        let level = measure.level_above(depth).to_string();
        column.storeys.iter().find(|storey| storey.level == level)
    };
    if let (Some(nested), Some(outer)) = (storey(2), storey(1))
        && let (Some(reflected), Some(each)) = (nested.reflected_per_s, outer.for_each)
    {
        return format!(
            "{whose}{} exits {} times per second; {} handles {} of these exits, with {} of its own to {host} for each.",
            nested.level,
            rate(nested.exits_per_s.unwrap_or(0.0)),
            outer.level,
            rate(reflected),
            plain(each)
        );
    }
    let guests: f64 = column.storeys.iter().map(|storey| storey.share).sum();
    let exits: Option<f64> = column.storeys.iter().map(|storey| storey.exits_per_s).sum();
    let exits = exits.filter(|_| measure.part.seen.exit);
    let ran = match guests == 0.0 && !measure.part.seen.exit {
        true => "how long guest code ran is not known".to_owned(),
        false => format!("guest code ran for {} of the vCPU time", percent(guests)),
    };
    let length_ns = measure.part.window.length_ns();
    if measure.part.seen.exit && length_ns < rates::SHORTEST_NS {
        let exits = many(first_exits, "exit");
        return format!("{whose}{exits} in {}, too short for a rate; {ran}.", duration(length_ns as f64));
    }
    let begin = if whose.is_empty() { "Exits" } else { "exits" };
    exits.map_or_else(
        || format!("{whose}{begin} were not recorded; {ran}."),
        |exits| {
            let exits = if exits == 1.0 { "1 exit".to_owned() } else { format!("{} exits", rate(exits)) };
            format!("{whose}{exits} to {host} per second; {ran}.")
        },
    )
}
