//! Checks of the recording itself: stale fields, losses, doubts.

use super::hit;
use base::number::{counted, exact_bytes, many, percent, thousands};
use base::{Cost, CostKind, Evidence, Severity};
use facts::ledger::measure::{Measures, STATED};
use facts::ledger::model::Loss;
use facts::rule::Hit;
use std::collections::BTreeSet;

/// Fields that LTTng's probes fill with something else.
pub(crate) fn stale(measure: &Measures<'_>) -> Vec<Hit> {
    let part = measure.part;
    if part.stale_entries == 0 {
        return Vec::new();
    }
    let total = |name: &str| part.tally.iter().find(|(event, _)| event == name).map_or(0, |(_, count)| *count);
    let evidence = vec![
        in_part(
            measure,
            format!("{} with an impossible vcpu_id", many(part.stale_entries, "kvm_entry event")),
            "flow.events",
        ),
        in_part(
            measure,
            format!(
                "{} kvm_nested_vmexit events used only by their position; {} nested entries derived from intercepts",
                thousands(total("kvm_x86_nested_vmexit") + total("kvm_nested_vmexit")),
                thousands(total("kvm_x86_nested_intercepts"))
            ),
            "flow.events",
        ),
    ];
    let title = "LTTng wrote stale KVM fields; levels and chains were determined without them".to_owned();
    let mut hits = hit(measure, Severity::Info, title, evidence, Cost::none());
    hits[0].subject = part.machine.clone();
    hits
}

/// Losses that make shares uncertain.
pub(crate) fn lost(measure: &Measures<'_>) -> Vec<Hit> {
    let losses: Vec<_> = measure.part.losses.iter().filter(|loss| LOSSES.contains(&loss.kind.as_str())).collect();
    if losses.is_empty() {
        return Vec::new();
    }
    let lost = measure.part.lost_events();
    let gaps: BTreeSet<Option<u32>> = losses.iter().map(|loss| loss.cpu).collect();
    let share = lost as f64 / (lost as f64 + measure.part.events as f64).max(1.0);
    let stated: BTreeSet<Option<u32>> =
        losses.iter().filter(|loss| STATED.contains(&loss.kind.as_str())).map(|loss| loss.cpu).collect();
    // The same events as gaps, where the recorder has counted them.
    let told = losses.iter().filter(|loss| loss.kind != "missed" || !stated.contains(&loss.cpu));
    let evidence = told.take(4).map(|loss| row(measure, loss)).collect();
    let severity = if share > 0.01 { Severity::Medium } else { Severity::Low };
    let title = match (lost, gaps.len()) {
        (0, gaps) => format!(
            "Events are missing, {} gaps; shares are of the recorded events",
            counted(gaps as u64, "CPU has", "CPUs have")
        ),
        _ => format!(
            "{} missing, {} of all; shares are of the recorded events",
            counted(lost, "event is", "events are"),
            percent(share)
        ),
    };
    let mut hits = hit(measure, severity, title, evidence, Cost::of(CostKind::Measured, share, "share of all events"));
    hits[0].subject = measure.part.machine.clone();
    hits
}

/// Something seen in a table of traces, in the rows of this one.
fn in_part(measure: &Measures<'_>, what: String, table: &'static str) -> Evidence {
    Evidence::in_table(what, table).key("part", measure.part.path.as_str())
}

fn in_row(measure: &Measures<'_>, loss: &Loss, what: String) -> Evidence {
    let seen = in_part(measure, what, "flow.losses").key("kind", loss.kind.as_str());
    match loss.cpu {
        Some(cpu) => seen.key("cpu", u64::from(cpu)),
        None => seen,
    }
}

fn row(measure: &Measures<'_>, loss: &Loss) -> Evidence {
    let place = loss.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    let kind = loss.kind.replace('_', " ");
    let what = match loss.count {
        0 if kind.ends_with("stream") => kind,
        0 => format!("an unknown number {kind}"),
        count => format!("{} {kind}", thousands(count)),
    };
    let bytes = if loss.bytes == 0 { String::new() } else { format!(", {}", exact_bytes(loss.bytes)) };
    in_row(measure, loss, format!("{what}{place}{bytes}"))
}

/// What the recorder dropped, as files state it and as gaps in their streams tell it.
const LOSSES: &[&str] = &["overrun", "commit_overrun", "discarded", "dropped", "missed", "lost_packets"];

/// What could not be read, or is not in the file.
const DAMAGE: &[&str] = &["salvaged", "damaged", "missing_stream", "late_stream", "truncated_stream", "partial_stream"];

/// Parts of the file are missing or damaged.
pub(crate) fn damaged(measure: &Measures<'_>) -> Vec<Hit> {
    let damage: Vec<_> = measure.part.losses.iter().filter(|loss| DAMAGE.contains(&loss.kind.as_str())).collect();
    if damage.is_empty() {
        return Vec::new();
    }
    let evidence = damage.iter().take(4).map(|loss| match loss.cpu {
        Some(cpu) => in_row(measure, loss, format!("{} of CPU {cpu}", loss.kind.replace('_', " "))),
        None => row(measure, loss),
    });
    let title = match measure.part.unseen_cpus.len() as u64 {
        0 => "Parts of the file are damaged; shares are of the readable events".to_owned(),
        cpus => {
            format!(
                "Part or all of {} is missing in the trace; shares are of the events that it has",
                many(cpus, "CPU")
            )
        }
    };
    let mut hits = hit(measure, Severity::Medium, title, evidence.collect(), Cost::none());
    hits[0].subject = measure.part.machine.clone();
    hits
}

pub(crate) fn level_conflicts(measure: &Measures<'_>) -> Vec<Hit> {
    let conflicts = measure.part.doubts.level_conflicts;
    if conflicts == 0 {
        return Vec::new();
    }
    // Conflicts are counted over the whole trace, whatever the question is narrowed to, and so are these exits.
    let tally = measure.part.tally.iter().filter(|(event, _)| matches!(event.as_str(), "kvm_exit" | "kvm_x86_exit"));
    let share = conflicts as f64 / tally.map(|(_, count)| *count).sum::<u64>().max(1) as f64;
    let evidence =
        vec![in_part(measure, format!("the two witnesses disagree on {}", many(conflicts, "exit")), "flow.losses")];
    let severity = if share > 0.01 { Severity::Medium } else { Severity::Info };
    let title = format!("The level of {} is doubtful: two witnesses disagree", many(conflicts, "exit"));
    hit(measure, severity, title, evidence, Cost::of(CostKind::Measured, share, "share of all exits"))
}
