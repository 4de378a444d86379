//! What a trace cannot tell, as amounts.

use super::rules::RULES;
use super::section::said_of;
use base::fact_kind::{FactKind, unjudged};
use base::number::{counted, duration, many, percent};
use base::{Clock, Unknown};
use facts::ledger::measure::Measures;
use facts::ledger::model::PartFlow;
use trace::facts::Coverage;
use walk::state::State;

/// What the trace cannot tell, as amounts.
pub(super) fn of(measure: &Measures<'_>) -> Vec<Unknown> {
    let part = measure.part;
    let unknown_ns = measure.state_ns(|state| state == State::Unknown);
    let unknown_level = measure.unknown_level();
    let assumed = measure.vcpus.iter().filter(|vcpu| vcpu.vm_assumed).count() as u64;
    let paused_ns = part.pauses.iter().map(base::Span::length_ns).sum::<u64>();
    let no_switches = !measure.vcpus.is_empty() && !part.has_switches;
    let amounts = [
        (
            "unknown_time",
            unknown_ns,
            "ns",
            format!(
                "{} of vCPU time ({}) is unknown: {}.",
                duration(unknown_ns as f64),
                percent(unknown_ns as f64 / measure.wall_ns.max(1) as f64),
                causes_of_unknown(part)
            ),
        ),
        (
            "unknown_level",
            unknown_level,
            "exits",
            format!(
                "The level of {} ({}) is unknown; record kvm_nested_vmexit to determine it.",
                many(unknown_level, "exit"),
                percent(measure.share(unknown_level))
            ),
        ),
        (
            "assumed_vm",
            assumed,
            "threads",
            format!(
                "The VM of {} was taken from thread names; --vm-map TID=NAME overrides it.",
                many(assumed, "thread")
            ),
        ),
        (
            "silent_vcpu",
            part.silent_vcpus,
            "vCPUs",
            format!(
                "{} neither exit nor entry in this recording; which threads are vCPUs is known from the recording that it was \
                 cut from.",
                if part.silent_vcpus == 1 {
                    "1 vCPU has".to_owned()
                } else {
                    format!("{} vCPUs have", part.silent_vcpus)
                }
            ),
        ),
        (
            "paused",
            paused_ns,
            "ns",
            format!(
                "The recorder paused {}, for {} in all: nothing is known of these times.",
                many(part.pauses.len() as u64, "time"),
                duration(paused_ns as f64)
            ),
        ),
        (
            "no_switches",
            u64::from(no_switches),
            "",
            no_switches_text(part.tally.iter().any(|(name, _)| name == facts::ledger::build::UNKNOWN_EVENTS))
                .to_owned(),
        ),
        (
            "unattributed",
            part.unattributed,
            "events",
            format!(
                "{} no known thread: no switch of the CPU came before.",
                counted(part.unattributed, "KVM event has", "KVM events have")
            ),
        ),
        (
            "crowded",
            part.doubts.crowded,
            "events",
            format!(
                "{} of threads beyond the first 65,536 that the trace names: nothing is reported of those.",
                counted(part.doubts.crowded, "KVM event is", "KVM events are")
            ),
        ),
    ];
    let amounts = amounts.into_iter().filter(|(_, amount, ..)| *amount > 0);
    let note = |(what, amount, unit, text): (&str, u64, &str, String)| Unknown {
        what: what.into(),
        amount: (!unit.is_empty()).then_some(amount as f64),
        unit: unit.into(),
        text,
    };
    let mut list: Vec<Unknown> = amounts.map(note).collect();
    list.extend(part.unseen_cpus.iter().map(|(cpu, coverage)| unseen_cpu(part, *cpu, *coverage)));
    let known = [(FactKind::Exits, !part.lacks_exits()), (FactKind::Switches, part.has_switches)];
    let known = known.into_iter().filter(|(_, is_told)| *is_told).map(|(known, _)| known).collect();
    // Of a trace without a vCPU nothing was asked.
    let asked =
        (!measure.vcpus.is_empty()).then(|| unjudged("about vCPUs", RULES.iter().map(|rule| rule.requires), &known));
    list.extend(asked.flatten());
    list.extend(part.clock_fitted_to.as_ref().map(|witness| clock_fitted(&part.clock, witness)));
    list.iter_mut().for_each(|unknown| unknown.text = said_of(part, &unknown.text));
    list
}

/// Why time is unknown, as far as this trace can have it so.
fn causes_of_unknown(part: &PartFlow) -> String {
    let lost = part.lost_events() > 0 || part.damaged_places() > 0;
    let unseen = part.doubts.unseen_switches + part.doubts.unseen_entries > 0;
    let causes = [
        (part.lacks_exits(), "in KVM_RUN, because kvm_exit did not fire and guest and KVM cannot be separated"),
        (true, "before a thread's first KVM event"),
        (part.vcpus.iter().any(|vcpu| part.gone.contains(&vcpu.tid)), "after a thread's end"),
        (lost, "where events are lost"),
        (!part.pauses.is_empty(), "while the recorder paused"),
        (!part.unseen_cpus.is_empty(), "while a CPU is missing"),
        (unseen, "where a switch or an entry is missing in the trace"),
    ];
    let causes: Vec<&str> = causes.into_iter().filter(|(holds, _)| *holds).map(|(_, cause)| cause).collect();
    causes.join(", or ")
}

/// A CPU of which the trace lacks a part or all.
fn unseen_cpu(part: &PartFlow, cpu: u32, coverage: Coverage) -> Unknown {
    let since = |at_ns: u64| duration(part.on_axis(at_ns) as f64);
    let missing = match coverage {
        Coverage::Whole | Coverage::Missing => "missing from the trace".to_owned(),
        Coverage::Part { from_ns, until_ns: u64::MAX } => format!("missing until {}", since(from_ns)),
        Coverage::Part { from_ns: 0, until_ns } => format!("missing from {} on", since(until_ns)),
        Coverage::Part { from_ns, until_ns } => {
            format!("missing until {} and from {} on", since(from_ns), since(until_ns))
        }
    };
    let and_so = if part.has_switches {
        "and so is what vCPUs did while they were on no other CPU"
    } else {
        "and without sched_switch, so is which vCPUs were there; their time on it counts as the state before it"
    };
    Unknown {
        what: "unseen_cpu".into(),
        amount: Some(cpu.into()),
        unit: "CPU".into(),
        text: format!("CPU {cpu} is {missing}: what ran there is unknown, {and_so}."),
    }
}

fn clock_fitted(clock: &Clock, witness: &str) -> Unknown {
    let ticks = clock.ticks(1_000_000_000) as f64 / 1e9;
    Unknown {
        what: "clock_fitted".into(),
        amount: Some(ticks),
        unit: "ticks per ns".into(),
        text: format!(
            "The file has no frequency for clock {}; {ticks:.4} ticks per ns were derived from {witness}.",
            clock.name
        ),
    }
}

/// What is said where no `sched_switch` was read: it may be among events that no format describes.
fn no_switches_text(has_unknown: bool) -> &'static str {
    if has_unknown {
        "No sched_switch was read, so time off the CPU counts as the state before it; it may be among the events \
         without a format in the file."
    } else {
        "No sched_switch was recorded, so time off the CPU counts as the state before it; record with -e sched_switch."
    }
}
